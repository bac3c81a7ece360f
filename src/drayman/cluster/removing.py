"""The end of an object that somebody still holds: what holds it is taken away, and the object goes.

A controller that protects objects by a finalizer gives them up by a write, and deletes them by another. Over HTTP these are requests one
after the other. In the same process they are one change: whoever watches sees the object go, and not first what it was stripped of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.parts import Parts, PartsWrite, by_endpoint, check_uid, write_parts

if TYPE_CHECKING:
    from drayman.cluster.client import Client

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoveWrite(Generic[T]):
    """Replaces parts of an object a last time, and deletes it. Where others hold it too it is marked, and goes when they let it."""

    last: PartsWrite[T]
    """Its conditions are those of the deletion too."""

    @property
    def options(self) -> WriteOptions:
        return self.last.options


async def remove(client: Client, write: RemoveWrite[T]) -> None:
    """By calls. The finalizers, which are no part of the status, come last: without them an object may be gone at any time."""
    last = write.last
    # A status is written whatever uid comes with it.
    await check_uid(client, last)
    steps = list(reversed(by_endpoint(last.parts, last.subresource)))
    last = await _change(client, last, *steps[0])
    try:
        for step in steps[1:]:
            last = await _change(client, last, *step)
        await client.delete(
            last.resource, last.name, last.namespace, options=DeleteOptions(uid=last.uid)
        )
    except NotFoundError:
        return  # it was marked before, and has waited for no more than that


async def _change(
    client: Client, last: PartsWrite[T], subresource: str, parts: Parts
) -> PartsWrite[T]:
    """Makes one of several changes. The next is for the version that this one made."""
    written = await write_parts(client, replace(last, parts=parts, subresource=subresource))
    if not last.resource_version:
        return last
    version = last.resource.codec.identity(written).resource_version
    return replace(last, resource_version=version)

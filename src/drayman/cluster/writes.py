"""Several writes at once.

A `Write` is one request as a value. `Client.write_many` carries out a sequence of them: in one transaction where the backend has
transactions, and one after the other where it has none, as over HTTP. In the latter case a refusal leaves earlier writes behind,
so those are taken back as far as they can be: what was created is deleted, if nobody has touched it since (by uid and
resourceVersion). Updates, patches and deletes cannot be undone without risk to what others wrote; they stay and are named in a
PartialWriteError. So put creates first and the write that makes them count last.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from msgspec import Struct

from drayman.cluster.errors import ClusterError, NotFoundError, PartialWriteError
from drayman.cluster.options import AT_ONCE, PLAINLY, DeleteOptions, WriteOptions
from drayman.cluster.parts import PartsWrite, write_parts
from drayman.cluster.patches import Patch
from drayman.cluster.removing import RemoveWrite, remove
from drayman.cluster.resources import JsonObject, Resource

if TYPE_CHECKING:
    from drayman.cluster.client import Client

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


class CreateWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    value: T
    namespace: str | None = None
    """Where the object itself does not say it."""
    options: WriteOptions = PLAINLY


class UpdateWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    value: T
    subresource: str = ""
    options: WriteOptions = PLAINLY


class PatchWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    name: str
    patch: Patch
    namespace: str | None = None
    subresource: str = ""
    options: WriteOptions = PLAINLY


class DeleteWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    name: str
    namespace: str | None = None
    options: DeleteOptions = AT_ONCE


class BindWrite(Struct, frozen=True):
    """Assigns a pod to a node."""

    name: str
    namespace: str
    node: str
    uid: str = ""
    """Of the pod that is meant; another one of the same name is left alone."""

    def body(self) -> JsonObject:
        metadata = {"name": self.name, "namespace": self.namespace}
        if self.uid:
            metadata["uid"] = self.uid
        return {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node},
        }


Write = (
    CreateWrite[Any]
    | UpdateWrite[Any]
    | PatchWrite[Any]
    | PartsWrite[Any]
    | DeleteWrite[Any]
    | RemoveWrite[Any]
    | BindWrite
)
"""One request of several. What it is about is in its own type parameter; a batch mixes them."""


async def write_in_order(client: Client, writes: Sequence[Write]) -> tuple[object, ...]:
    """One after the other; at the first refusal, what was created before is deleted and the refusal raised."""
    done: list[object] = []
    for write in writes:
        try:
            done.append(await _carry_out(client, write))
        except (ClusterError, ValueError) as refusal:
            await _take_back(client, writes, done, refusal)
            raise
    return tuple(done)


async def _carry_out(client: Client, write: Write) -> object:
    match write:
        case CreateWrite():
            return await client.create(
                write.resource, write.value, write.namespace, options=write.options
            )
        case UpdateWrite():
            return await client.update(
                write.resource, write.value, subresource=write.subresource, options=write.options
            )
        case PatchWrite():
            return await client.patch(
                write.resource,
                write.name,
                write.patch,
                write.namespace,
                subresource=write.subresource,
                options=write.options,
            )
        case PartsWrite():
            return await write_parts(client, write)
        case RemoveWrite():
            await remove(client, write)
            return None
        case DeleteWrite():
            return await client.delete(
                write.resource, write.name, write.namespace, options=write.options
            )
        case BindWrite():
            await client.bind(write.name, write.namespace, write.node, uid=write.uid)
            return None


async def _take_back(
    client: Client, writes: Sequence[Write], done: Sequence[object], refusal: Exception
) -> None:
    """Deletes what was created, the latest first. Raises PartialWriteError where something has to stay."""
    left_behind: list[str] = []
    for write, outcome in reversed(tuple(zip(writes, done, strict=False))):
        if not await _is_taken_back(client, write, outcome):
            left_behind.append(_describe(write))
    if left_behind:
        raise PartialWriteError(tuple(left_behind)) from refusal


async def _is_taken_back(client: Client, write: Write, outcome: object) -> bool:
    """Whether nothing of a write is left. A dry run never left anything."""
    if not isinstance(write, BindWrite) and write.options.dry_run:
        return True
    return isinstance(write, CreateWrite) and await _delete_unchanged(client, write, outcome)


async def _delete_unchanged(client: Client, write: CreateWrite[Any], created: object) -> bool:
    found = write.resource.codec.identity(created)
    # Foreground and orphan finalizers would keep the object; nothing depends on one that was just made.
    unchanged = DeleteOptions(
        uid=found.uid,
        resource_version=found.resource_version,
        grace_period_seconds=0,
        propagation="Background",
    )
    try:
        await client.delete(write.resource, found.name, found.namespace or None, options=unchanged)
    except NotFoundError:
        return True
    except ClusterError as error:
        _log.warning("could not take back %s: %s", _describe(write), error)
        return False
    return True


def _describe(write: Write) -> str:
    match write:
        case CreateWrite() | UpdateWrite():
            name = write.resource.codec.identity(write.value).name
            verb = "create" if isinstance(write, CreateWrite) else "update"
            return f"{verb} of {write.resource.qualified} {name!r}"
        case PatchWrite():
            return f"patch of {write.resource.qualified} {write.name!r}"
        case PartsWrite():
            return f"write of parts of {write.resource.qualified} {write.name!r}"
        case DeleteWrite():
            return f"delete of {write.resource.qualified} {write.name!r}"
        case RemoveWrite():
            return f"removal of {write.last.resource.qualified} {write.last.name!r}"
        case BindWrite():
            return f"binding of pods {write.name!r}"

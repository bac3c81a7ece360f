"""Read, change, write, and repeat on a conflict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, cast

from drayman.api import codec
from drayman.api.carrying import Carried
from drayman.api.struct import ApiStruct
from drayman.cluster.backoff import Backoff
from drayman.cluster.client import Client
from drayman.cluster.errors import ConflictError
from drayman.cluster.options import PLAINLY, WriteOptions
from drayman.cluster.resources import JsonObject, Resource, StructCodec

T = TypeVar("T")

ATTEMPTS: Final = 8
_BETWEEN: Final = Backoff(initial=0.01, cap=1.0)


async def update_with_retry(
    client: Client,
    resource: Resource[T],
    name: str,
    change: Callable[[T], T],
    namespace: str | None = None,
    *,
    subresource: str = "",
    options: WriteOptions = PLAINLY,
    backoff: Backoff = _BETWEEN,
) -> T:
    """The object after `change`, which gets the latest version and may be called several times.

    Fields that T does not declare stay as they are. Where `change` changes nothing, nothing is written. Raises ConflictError
    after eight attempts that each met another change.
    """
    values = resource.as_values()
    failures = 0
    while True:
        before = await client.get(values, name, namespace)
        after = _changed(resource, before, change)
        try:
            if after != before:
                before = await client.update(
                    values, after, subresource=subresource, options=options
                )
            return _read(resource, before)
        except ConflictError:
            failures += 1
            if failures == ATTEMPTS:
                raise
        await asyncio.sleep(backoff.delay(failures))


def _changed(resource: Resource[T], value: JsonObject, change: Callable[[T], T]) -> JsonObject:
    """The object after the change, unknown fields included."""
    if not isinstance(resource.codec, StructCodec):
        return resource.codec.to_value(change(_read(resource, value)))
    struct_type: type[ApiStruct] = resource.codec.type
    carried = Carried.convert(struct_type, value)
    # A StructCodec is a Codec[T] only for the T that is its struct, which a type checker cannot conclude.
    changed = cast(Callable[[ApiStruct], ApiStruct], change)(carried.object)
    # Compared as structs: written out, an object may differ from what it was read from in form alone.
    return value if changed == carried.object else carried.replace(changed).to_dict()


def _read(resource: Resource[T], value: JsonObject) -> T:
    return resource.codec.decode(codec.encode_json(value))

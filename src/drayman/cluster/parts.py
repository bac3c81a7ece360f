"""Writes that replace parts of an object and leave the rest alone.

A scheduler or a kubelet knows a few fields and must not touch what it does not know. Over HTTP that is a patch for each endpoint that
the parts belong to: the status has one of its own. In the same process it is one write and one revision, however many parts there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from drayman.api.struct import Json
from drayman.cluster.errors import ConflictError, InvalidError, NotFoundError, Status
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import Patch, json_patch, merge_patch
from drayman.cluster.resources import JsonObject, Resource

if TYPE_CHECKING:
    from drayman.cluster.client import Client

T = TypeVar("T")

Path = tuple[str, ...]
Parts = Mapping[Path, Json]
"""The new values of fields by their path, such as ("status", "allocation"); None takes the field away."""


@dataclass(frozen=True, slots=True)
class PartsWrite(Generic[T]):
    """Replaces parts of an object. With a uid or a resourceVersion, only of the object that has them: ConflictError otherwise.

    What holds a part must be there where it is not the object's metadata or status, unless the part is a list or a scalar.
    """

    resource: Resource[T]
    name: str
    namespace: str | None
    parts: Parts
    _: KW_ONLY
    subresource: str = ""
    """The endpoint that all parts go through. By default parts of the status go through `status` and others through the object."""
    uid: str = ""
    resource_version: str = ""
    field_manager: str = ""

    @staticmethod
    def of(
        resource: Resource[T], value: T, parts: Parts, *, field_manager: str = ""
    ) -> PartsWrite[T]:
        """For an object as it is known here: ConflictError if somebody has written it meanwhile."""
        known = resource.codec.identity(value)
        return PartsWrite(
            resource,
            known.name,
            known.namespace or None,
            parts,
            uid=known.uid,
            resource_version=known.resource_version,
            field_manager=field_manager,
        )

    @property
    def options(self) -> WriteOptions:
        return WriteOptions(field_manager=self.field_manager)


def by_endpoint(parts: Parts, subresource: str) -> list[tuple[str, Parts]]:
    """The endpoints that parts belong to, in the order in which they are written. Raises ValueError where there are no parts."""
    if not parts or not all(parts):
        raise ValueError("a write of parts names at least one, by its path")
    if subresource:
        return [(subresource, parts)]
    main = {path: value for path, value in parts.items() if path[0] != "status"}
    status = {path: value for path, value in parts.items() if path[0] == "status"}
    return [(name, some) for name, some in (("", main), ("status", status)) if some]


async def write_parts(client: Client, write: PartsWrite[T]) -> T:
    """One patch after the other. The later ones are made for the version that the earlier ones made."""
    resource = write.resource
    version = write.resource_version
    for subresource, parts in by_endpoint(write.parts, write.subresource):
        try:
            written = await client.patch(
                resource,
                write.name,
                _patch(parts, write.uid, version),
                write.namespace,
                subresource=subresource,
                options=write.options,
            )
        except InvalidError:
            # Servers say that a uid cannot be changed where they mean that it is another object.
            await check_uid(client, write)
            raise
        if version:
            version = resource.codec.identity(written).resource_version
    return written


def _patch(parts: Parts, uid: str, version: str) -> Patch:
    conditions: dict[Path, Json] = {
        ("metadata", name): value
        for name, value in (("uid", uid), ("resourceVersion", version))
        if value
    }
    wanted = {**conditions, **parts}
    # A merge patch makes what is missing on the way but merges objects, where a part is to be replaced.
    if any(isinstance(value, dict) for value in parts.values()):
        return json_patch(
            [{"op": "add", "path": _pointer(path), "value": v} for path, v in wanted.items()]
        )
    return merge_patch(_nested(wanted))


def _pointer(path: Path) -> str:
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path)


def _nested(parts: Parts) -> JsonObject:
    result: JsonObject = {}
    for path, value in parts.items():
        place = result
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
    return result


async def check_uid(client: Client, write: PartsWrite[T]) -> None:
    """Raises ConflictError if the object is not the one that was meant."""
    if not write.uid:
        return
    try:
        found = await client.get(write.resource, write.name, write.namespace)
    except NotFoundError:
        return
    uid = write.resource.codec.identity(found).uid
    if uid != write.uid:
        message = (
            f"{write.resource.qualified} {write.name!r} is another object by now:"
            f" its uid is {uid}, not {write.uid}"
        )
        raise ConflictError(Status(status="Failure", message=message, reason="Conflict", code=409))

"""Writes as values: one request of several that `Client.write_many` carries out.

All of them at once where the cluster has transactions, and elsewhere one after the other (`drayman.cluster.in_order`). So put creates
first, and the write that makes them count last.

A `PartsWrite` replaces parts of an object and leaves the rest alone: a scheduler or a kubelet knows a few fields and must not touch what
it does not know. Over HTTP that is a patch for each endpoint that the parts belong to: the status has one of its own. In the same
process it is one write and one revision, however many parts there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar

from msgspec import Struct

from drayman.api.struct import Json
from drayman.cluster.options import AT_ONCE, PLAINLY, DeleteOptions, WriteOptions
from drayman.cluster.patches import Patch
from drayman.cluster.resources import JsonObject, Resource

T = TypeVar("T")

Path = tuple[str, ...]
Parts = Mapping[Path, Json]
"""The new values of fields by their path, such as ("status", "allocation"); None takes the field away."""


class CreateWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    value: T
    namespace: str | None = None
    """Where the object itself does not say it."""
    options: WriteOptions = PLAINLY


class PatchWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    name: str
    patch: Patch
    namespace: str | None = None
    subresource: str = ""
    options: WriteOptions = PLAINLY


@dataclass(frozen=True, slots=True)
class PartsWrite(Generic[T]):
    """Replaces parts of an object. With a uid or a resourceVersion, only of the object that has them: ConflictError otherwise.

    The parent of a part must exist unless it is the object's metadata or status, or the part is a list or a scalar.
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
        """For an object as it is known here: ConflictError if it has been written meanwhile."""
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


class DeleteWrite(Struct, Generic[T], frozen=True):
    resource: Resource[T]
    name: str
    namespace: str | None = None
    options: DeleteOptions = AT_ONCE


@dataclass(frozen=True, slots=True)
class RemoveWrite(Generic[T]):
    """Replaces parts of an object one last time, and deletes it. If others hold it too, it stays marked until they let go."""

    last: PartsWrite[T]
    """Its conditions apply to the deletion too."""

    @property
    def options(self) -> WriteOptions:
        return self.last.options


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
    | PatchWrite[Any]
    | PartsWrite[Any]
    | DeleteWrite[Any]
    | RemoveWrite[Any]
    | BindWrite
)
"""One request of several. What it is about is in its own type parameter; a batch mixes them."""


def by_endpoint(parts: Parts, subresource: str) -> list[tuple[str, Parts]]:
    """The endpoints that parts belong to, in the order in which they are written. Raises ValueError where there are no parts."""
    if not parts or not all(parts):
        raise ValueError("a write of parts names at least one, by its path")
    if subresource:
        return [(subresource, parts)]
    main = {path: value for path, value in parts.items() if path[0] != "status"}
    status = {path: value for path, value in parts.items() if path[0] == "status"}
    return [(name, some) for name, some in (("", main), ("status", status)) if some]


def describe(write: Write) -> str:
    """A write in words, for messages."""
    match write:
        case CreateWrite():
            name = write.resource.codec.identity(write.value).name
            return f"create of {write.resource.qualified} {name!r}"
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

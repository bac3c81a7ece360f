"""What a watch yields: changes to objects, and bookmarks that say how far it has come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, Literal, TypeVar

from msgspec import Struct

from drayman.api import codec
from drayman.api.struct import ApiStruct
from drayman.cluster.resources import Resource

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
CHANGE_TYPES: Final[frozenset[str]] = frozenset(("ADDED", "MODIFIED", "DELETED"))


class Change(Struct, Generic[T_co], frozen=True):
    """An object was added, modified or deleted. A deleted one carries the version of its deletion."""

    type: ChangeType
    object: T_co
    resource_version: str


class Bookmark(Struct, frozen=True):
    """Everything up to this version has been sent."""

    resource_version: str


Watch = AbstractAsyncContextManager[AsyncIterator[Change[T] | Bookmark]]


class _BookmarkMeta(ApiStruct):
    resource_version: str = ""


class _BookmarkObject(ApiStruct):
    metadata: _BookmarkMeta = _BookmarkMeta()


def decode_bookmark(data: bytes) -> Bookmark:
    """Raises DecodeError."""
    return Bookmark(codec.decode(_BookmarkObject, data).metadata.resource_version)


def change_of(resource: Resource[T], type_: ChangeType, value: T) -> Change[T]:
    return Change(type_, value, resource.codec.identity(value).resource_version)

"""What the store holds and reports: objects as bytes, the changes asked for, and the events they become.

Objects are kept as the JSON that is served, so that a get or a list copies bytes and decodes nothing. `value` is the decoded object,
decoded once and shared. `read` gives it as a struct: the writer and all watchers in the process get the same one. Decoded objects take
several times the memory of their JSON, so each store bounds how much it keeps decoded (`DecodedValues`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from drayman.cluster.backend import Reader

T = TypeVar("T")

DECODED_BYTES = 32 * 2**20
"""JSON bytes of the objects that a store keeps decoded: the most recent ones, some hundred MiB as Python objects."""


class Key(NamedTuple):
    """The identity of an object. Keys sort by namespace, then name, within a resource."""

    resource: str  # plural and group: "pods", "resourceclaims.resource.k8s.io"
    namespace: str  # empty for cluster-scoped resources
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


class DecodedValues:
    """Forgets the decoded forms of objects, oldest first, once too much is decoded. Objects may be read in any thread."""

    __slots__ = ("_bytes", "_limit", "_lock", "_recent")

    def __init__(self, limit: int = DECODED_BYTES) -> None:
        self._recent: deque[Stored] = deque()
        self._bytes = 0
        self._limit = limit
        self._lock = Lock()

    def remember(self, stored: Stored) -> None:
        """Note that `stored` now holds a decoded form, or one more."""
        with self._lock:
            self._recent.append(stored)
            self._bytes += len(stored.data)
            while self._bytes > self._limit:
                forgotten = self._recent.popleft()
                self._bytes -= len(forgotten.data)
                force_setattr(forgotten, "_value", None)
                force_setattr(forgotten, "_read", None)


# gc=False: no reference cycle can go through these, and a store of 100,000 objects need not be walked by the collector.
class Stored(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One object as of one revision."""

    key: Key
    revision: int
    data: bytes  # JSON in the hub version, metadata.resourceVersion included
    _decoded: DecodedValues | None = None
    _value: dict[str, Any] | None = None
    _read: tuple[Reader[Any], object] | None = None

    @property
    def value(self) -> dict[str, Any]:
        """The object decoded. Shared by all callers: do not change it."""
        value = self._value
        if value is None:
            decoded: dict[str, Any] = msgspec.json.decode(self.data)
            force_setattr(self, "_value", decoded)
            if self._decoded is not None:
                self._decoded.remember(self)
            return decoded
        return value

    @property
    def is_status(self) -> bool:
        return False

    def read(self, reader: Reader[T]) -> T:
        """The object as a reader reads it. If the result is immutable, it is decoded once for all uses of that reader."""
        known = self._read
        if known is not None and known[0] is reader:
            return cast(T, known[1])
        found = reader.decode(self.data)
        if reader.is_immutable:
            force_setattr(self, "_read", (reader, found))
            if self._decoded is not None:
                self._decoded.remember(self)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stored):
            return NotImplemented
        return (self.revision, self.key, self.data) == (other.revision, other.key, other.data)

    def __hash__(self) -> int:
        return hash((self.revision, self.key))

    def __repr__(self) -> str:
        return f"Stored({self.key} at revision {self.revision}, {len(self.data)} bytes)"


class Put(msgspec.Struct, frozen=True):
    """Create or replace an object."""

    key: Key
    encode: Callable[[int], bytes]  # from the revision that the object will have
    expected: int | None = None  # 0: must not exist; None: whatever is there


class Delete(msgspec.Struct, frozen=True):
    """Remove an object. `encode` gives its last form, which watchers see."""

    key: Key
    encode: Callable[[int], bytes]
    expected: int | None = None  # None: any revision, but it must exist


Operation = Put | Delete


class EventType(StrEnum):
    """What happened to an object, as in watches of the Kubernetes API."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. Every change has its own revision, even within a transaction."""

    type: EventType
    stored: Stored  # of a deletion: the last form, at the revision of the deletion
    previous: Stored | None

    @property
    def revision(self) -> int:
        return self.stored.revision

    @property
    def key(self) -> Key:
        return self.stored.key

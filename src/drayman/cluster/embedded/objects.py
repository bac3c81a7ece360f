"""The objects as they are now, in memory, in the order in which they are listed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from drayman.cluster.embedded.model import Event, EventType, Key, Stored

# Names cannot contain it, so (namespace + this) sorts after every object of the namespace and before the next namespace.
_AFTER = "\0"


class _Resource:
    """All objects of one resource. A sorted list is enough: inserting moves pointers, which is quicker than any tree in Python."""

    __slots__ = ("by_key", "keys", "stored")

    def __init__(self) -> None:
        self.by_key: dict[Key, Stored] = {}
        self.keys: list[Key] = []
        self.stored: list[Stored] = []
        """By the position of their keys, so that listing them is copying."""

    def sort(self) -> None:
        """Put in order what was added to `by_key` directly."""
        self.keys = sorted(self.by_key)
        self.stored = [self.by_key[key] for key in self.keys]

    def put(self, stored: Stored) -> None:
        key = stored.key
        is_new = key not in self.by_key
        self.by_key[key] = stored
        if is_new and (not self.keys or key > self.keys[-1]):
            self.keys.append(key)
            self.stored.append(stored)
            return
        position = bisect_left(self.keys, key)
        if is_new:
            self.keys.insert(position, key)
            self.stored.insert(position, stored)
        else:
            self.stored[position] = stored

    def remove(self, key: Key) -> None:
        del self.by_key[key]
        position = bisect_left(self.keys, key)
        del self.keys[position]
        del self.stored[position]


class ObjectTable:
    """Every object by key, and every resource in order."""

    __slots__ = ("_resources",)

    def __init__(self, stored: Iterable[Stored] = ()) -> None:
        self._resources: dict[str, _Resource] = {}
        for one in stored:
            self._table(one.key.resource).by_key[one.key] = one
        for table in self._resources.values():
            table.sort()

    def get(self, key: Key) -> Stored | None:
        resource = self._resources.get(key.resource)
        return None if resource is None else resource.by_key.get(key)

    def list(self, resource: str, namespace: str | None) -> tuple[Stored, ...]:
        """The objects of a resource, of one namespace or of all, sorted by namespace and name."""
        table = self._resources.get(resource)
        if table is None:
            return ()
        if namespace is None:
            return tuple(table.stored)
        begin = bisect_left(table.keys, Key(resource, namespace, ""))
        end = bisect_left(table.keys, Key(resource, namespace + _AFTER, ""))
        return tuple(table.stored[begin:end])

    def list_all(self) -> tuple[Stored, ...]:
        """Every object, resource by resource."""
        return tuple(
            stored for table in self._resources.values() for stored in table.by_key.values()
        )

    def count(self, resource: str) -> int:
        table = self._resources.get(resource)
        return 0 if table is None else len(table.keys)

    def apply(self, event: Event) -> None:
        """Make one change. Changes come in the order of their revisions."""
        key = event.key
        if event.type is EventType.DELETED:
            self._resources[key.resource].remove(key)
            return
        self._table(key.resource).put(event.stored)

    def _table(self, resource: str) -> _Resource:
        table = self._resources.get(resource)
        if table is None:
            table = self._resources[resource] = _Resource()
        return table

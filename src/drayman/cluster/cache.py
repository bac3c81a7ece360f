"""The objects an informer knows, by name and by other keys that are often looked up.

Readers and the informer share one event loop, so a read sees all of a change or nothing of it. Objects are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace and name."""
Indexer = Callable[[T], Iterable[str]]
"""The values under which an object is found in an index: none, one or several."""


class Cache(Generic[T]):
    """Objects by (namespace, name), and by value in each index."""

    def __init__(self, indexers: Mapping[str, Indexer[T]]) -> None:
        self._objects: dict[Key, T] = {}
        self._indexers = dict(indexers)
        self._indexes: dict[str, dict[str, dict[Key, T]]] = {name: {} for name in indexers}

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get((namespace, name))

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        """Every object, as of now: changes made meanwhile do not disturb the iteration."""
        return iter(tuple(self._objects.values()))

    def names(self) -> tuple[Key, ...]:
        return tuple(self._objects)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """The objects that an indexer gave this value. Raises KeyError for an index that does not exist."""
        return tuple(self._indexes[index].get(value, {}).values())

    def add_indexers(self, indexers: Mapping[str, Indexer[T]]) -> None:
        """Index present and future objects. Raises ValueError for a name that another indexer has."""
        for name, indexer in indexers.items():
            if self._indexers.get(name, indexer) is not indexer:
                raise ValueError(f"there is another index {name!r}")
            if name not in self._indexers:
                self._indexers[name], self._indexes[name] = indexer, {}
                for key, value in self._objects.items():
                    self._enter(name, key, value)

    def put(self, key: Key, value: T) -> None:
        self.remove(key)
        self._objects[key] = value
        for name in self._indexers:
            self._enter(name, key, value)

    def _enter(self, name: str, key: Key, value: T) -> None:
        index = self._indexes[name]
        for found in self._indexers[name](value):
            index.setdefault(found, {})[key] = value

    def remove(self, key: Key) -> None:
        """Forget an object; an unknown one is not an error."""
        if key not in self._objects:
            return
        value = self._objects.pop(key)
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for found in indexer(value):
                entries = index.get(found, {})
                entries.pop(key, None)
                if not entries:
                    index.pop(found, None)

"""Several writes as one transaction: each decided on top of the ones before it, all written at once at the end."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.cluster.embedded.model import Delete, Key, Operation, Stored
from drayman.cluster.embedded.store import Store, Subscription


class Batch:
    """Stands in for a store while the writes of a batch are decided. Nothing is written until `commit`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: dict[Key, Stored | None] = {}
        self.operations: list[Operation] = []

    @property
    def revision(self) -> int:
        return self._store.revision

    def get(self, key: Key) -> Stored | None:
        return self.latest(key)

    def latest(self, key: Key) -> Stored | None:
        return self._changed[key] if key in self._changed else self._store.latest(key)

    def list(self, resource: str, namespace: str | None = None) -> tuple[Stored, ...]:
        found = {stored.key: stored for stored in self._store.list(resource, namespace)}
        for key, stored in self._changed.items():
            if key.resource != resource or namespace not in (None, key.namespace):
                continue
            if stored is None:
                found.pop(key, None)
            else:
                found[key] = stored
        return tuple(found[key] for key in sorted(found))

    def list_at(self, resource: str, namespace: str | None, revision: int) -> tuple[Stored, ...]:
        return self._store.list_at(resource, namespace, revision)

    def watch(self, resource: str, namespace: str | None = None, *, since: int) -> Subscription:
        return self._store.watch(resource, namespace, since=since)

    async def write(self, operations: Sequence[Operation]) -> tuple[Stored, ...]:
        """Remember the operations. What is answered has a revision that will not be the real one."""
        results = []
        for operation in operations:
            key = operation.key
            if key in self._changed:
                # Decided on top of an earlier write of this batch, so there is no revision to expect.
                operation = type(operation)(key, operation.encode)
            revision = self._store.revision + len(self.operations) + 1
            stored = Stored(key, revision, operation.encode(revision))
            self._changed[key] = None if isinstance(operation, Delete) else stored
            self.operations.append(operation)
            results.append(stored)
        return tuple(results)

    async def commit(self) -> tuple[Stored, ...]:
        """Write everything. One result per operation, in order."""
        return await self._store.write(self.operations)

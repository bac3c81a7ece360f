"""Several writes as one transaction: each decided on top of the ones before it, all written at once at the end.

Writes to the same object become one change: watchers see the object as the transaction leaves it, never an intermediate state.
"""

from __future__ import annotations

from collections.abc import Sequence

from drayman.apiserver.protocol.errors import (
    StatusCause,
    StatusError,
    Subject,
    already_exists,
    conflict,
)
from drayman.apiserver.verbs.core import ObjectStore
from drayman.cluster.embedded.errors import ConflictError, RefusedError
from drayman.cluster.embedded.model import Key, Operation, Put, Stored
from drayman.cluster.embedded.watching import Subscription
from drayman.cluster.errors import HELD_BY


class Batch:
    """Stands in for a store while the writes of a batch are decided. Nothing is written until `commit`.

    It may stand in for another batch, which then receives its writes.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._changed: dict[str, dict[Key, Stored | None]] = {}
        self.operations: list[Operation] = []
        self._puts: dict[Key, int] = {}  # where in `operations` an object is written

    @property
    def revision(self) -> int:
        return self._store.revision

    def get(self, key: Key) -> Stored | None:
        return self.latest(key)

    def latest(self, key: Key) -> Stored | None:
        changed = self._changed.get(key.resource)
        if changed is not None and key in changed:
            return changed[key]
        return self._store.latest(key)

    def list(self, resource: str, namespace: str | None = None) -> tuple[Stored, ...]:
        before = self._store.list(resource, namespace)
        changed = self._changed.get(resource)
        if changed is None:
            return before
        found: dict[Key, Stored | None] = {stored.key: stored for stored in before}
        found.update((k, s) for k, s in changed.items() if namespace in (None, k.namespace))
        return tuple(stored for _, stored in sorted(found.items()) if stored is not None)

    def list_at(self, resource: str, namespace: str | None, revision: int) -> tuple[Stored, ...]:
        return self._store.list_at(resource, namespace, revision)

    def remember_list(self, resource: str, namespace: str | None) -> None:
        self._store.remember_list(resource, namespace)

    def watch(self, resource: str, namespace: str | None = None, *, since: int) -> Subscription:
        return self._store.watch(resource, namespace, since=since)

    async def write(self, operations: Sequence[Operation]) -> tuple[Stored, ...]:
        """Remember the operations. The objects returned have provisional revisions, not the real ones."""
        results = []
        for operation in operations:
            key = operation.key
            changed = self._changed.setdefault(key.resource, {})
            position = self._puts.get(key)
            if position is not None and isinstance(operation, Put):
                earlier = self.operations[position]
                self.operations[position] = Put(key, operation.encode, earlier.expected)
            else:
                if key in changed:
                    # Decided on top of an earlier write of this batch, so there is no revision to expect.
                    operation = type(operation)(key, operation.encode)
                position = len(self.operations)
                self.operations.append(operation)
            revision = self._store.revision + position + 1
            stored = Stored(key, revision, operation.encode(revision))
            if isinstance(operation, Put):
                changed[key] = stored
                self._puts[key] = position
            else:
                changed[key] = None
                self._puts.pop(key, None)
            results.append(stored)
        return tuple(results)

    async def commit(self) -> tuple[Stored, ...]:
        """Write everything. One result per operation, in order.

        Raises StatusError 409 if one of the objects has been written by others since the decision, or violates a constraint together
        with what others have written; then nothing is written.
        """
        try:
            return await self._store.write(self.operations)
        except (ConflictError, RefusedError) as error:
            raise conflict_of(error) from error


def conflict_of(error: ConflictError | RefusedError) -> StatusError:
    """The API's answer if the store finds another revision than the one a write was based on, or refuses what it comes to."""
    plural, _, group = error.key.resource.partition(".")
    subject = Subject(plural, group, error.key.name)
    if isinstance(error, RefusedError):
        held = [
            StatusCause(HELD_BY, f"{holder.namespace}/{holder.name}", "status.allocation")
            for holder in error.holders
        ]
        return conflict(subject, error.why, held)
    return already_exists(subject) if error.expected == 0 else conflict(subject)

"""Jobs that were made by something which waits in a queue itself, directly or through others: they wait with it, and not once more."""

from __future__ import annotations

from collections.abc import Callable

from drayman.controllers.quota.loop import Key
from drayman.workloads.queued.entering import DEEPEST, controller_of, kind_of_owner
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.places import Object


class Ancestors:
    """Finds objects of all kinds that are queued as a whole."""

    def __init__(self) -> None:
        self._finders: dict[tuple[str, str], Callable[[Key], Object | None]] = {}

    def add(self, kind: QueuedKind, find: Callable[[Key], Object | None]) -> None:
        self._finders[kind.group, kind.kind] = find

    def of(self, obj: Object) -> list[Object]:
        """The owners of an object that are of such kinds, the nearest first."""
        found: list[Object] = []
        while len(found) < DEEPEST:
            above = self._owner(obj)
            if above is None:
                break
            found.append(above)
            obj = above
        return found

    def finder(self, namespace: str) -> Callable[[QueuedKind, str], Object | None]:
        """Finds objects of a namespace."""
        return lambda kind, name: self._finders[kind.group, kind.kind]((namespace, name))

    def _owner(self, obj: Object) -> Object | None:
        owner = controller_of(obj)
        kind = None if owner is None else kind_of_owner(owner)
        if owner is None or kind is None:
            return None
        namespace = obj["metadata"].get("namespace", "")
        found = self.finder(namespace)(kind, str(owner.get("name")))
        return found if found and found["metadata"].get("uid") == owner.get("uid") else None

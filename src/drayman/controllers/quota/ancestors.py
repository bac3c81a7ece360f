"""Jobs that were made by something which waits in a queue itself, directly or through others: they wait with it, and not once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.controllers.quota.loop import Key
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.places import Object, read

_DEEPEST: Final = 10
"""How many owners above each other are looked at."""


class Ancestors:
    """Finds objects of all kinds that are queued as a whole."""

    def __init__(self) -> None:
        self._finders: dict[tuple[str, str], Callable[[Key], Object | None]] = {}

    def add(self, kind: QueuedKind, find: Callable[[Key], Object | None]) -> None:
        self._finders[kind.group, kind.kind] = find

    def of(self, obj: Object) -> list[Object]:
        """The owners of an object that are of such kinds, the nearest first."""
        found: list[Object] = []
        while len(found) < _DEEPEST:
            above = self._owner(obj)
            if above is None:
                break
            found.append(above)
            obj = above
        return found

    def _owner(self, obj: Object) -> Object | None:
        metadata = obj["metadata"]
        for owner in read(obj, ("metadata", "ownerReferences")) or ():
            group = str(owner.get("apiVersion") or "").rpartition("/")[0]
            find = self._finders.get((group, str(owner.get("kind"))))
            if owner.get("controller") and find is not None:
                found = find((metadata.get("namespace", ""), str(owner.get("name"))))
                if found is not None and found["metadata"].get("uid") == owner.get("uid"):
                    return found
        return None

"""Whose a Workload is, and whether its owner is one that this loop stops before the quota is free."""

from __future__ import annotations

from collections.abc import Callable

from drayman.api.meta import OwnerReference
from drayman.controllers.quota.book import Known

Exists = Callable[[str, str, str], bool]
"""Whether an object exists: by namespace, name and uid."""


class Owners:
    """The kinds that this loop starts and stops."""

    def __init__(self) -> None:
        self._exists: dict[tuple[str, str], Exists] = {}

    def add(self, group: str, kind: str, exists: Exists) -> None:
        self._exists[group, kind] = exists

    def present(self, known: Known) -> list[OwnerReference]:
        """The owners that exist and that this loop starts and stops."""
        found = []
        for owner in known.workload.metadata.owner_references:
            exists = self._exists.get((owner.api_version.rpartition("/")[0], owner.kind))
            if exists is not None and exists(known.key[0], owner.name, owner.uid):
                found.append(owner)
        return found

    def will_let_go(self, known: Known) -> bool:
        """Whether somebody else here gives back the quota and takes off the finalizer, when nothing runs any more."""
        return bool(self.present(known))

    def has_pods(self, known: Known) -> bool:
        """Whether there is something whose pods can become ready."""
        return bool(self.present(known))

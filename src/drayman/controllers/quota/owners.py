"""Whose a Workload is, and whether its owner is one that this loop stops before the quota is free."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from drayman.api.meta import OwnerReference
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JsonObject, Resource
from drayman.controllers.quota.book import Known

Exists = Callable[[str, str, str], bool]
"""Whether an object exists: by namespace, name and uid."""


class Owners:
    """The kinds that this loop starts and stops."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._exists: dict[tuple[str, str], Exists] = {}
        self._resources: dict[tuple[str, str], Resource[JsonObject]] = {}

    def add(self, resource: Resource[JsonObject], exists: Exists) -> None:
        self._exists[resource.group, resource.kind] = exists
        self._resources[resource.group, resource.kind] = resource

    def present(self, known: Known) -> list[OwnerReference]:
        """The owners that exist and that this loop starts and stops."""
        found = []
        for owner in known.workload.metadata.owner_references:
            exists = self._exists.get((owner.api_version.rpartition("/")[0], owner.kind))
            if exists is not None and exists(known.key[0], owner.name, owner.uid):
                found.append(owner)
        return found

    async def delete(self, known: Known) -> None:
        """Delete the owners, exactly these, and with them what they own."""
        for owner in self.present(known):
            resource = self._resources[owner.api_version.rpartition("/")[0], owner.kind]
            options = DeleteOptions(uid=owner.uid, propagation="Background")
            with suppress(NotFoundError):
                await self._client.delete(resource, owner.name, known.key[0], options=options)

    def will_let_go(self, known: Known) -> bool:
        """Whether somebody else here gives back the quota and takes off the finalizer, when nothing runs any more."""
        return bool(self.present(known))

    def has_pods(self, known: Known) -> bool:
        """Whether there is something whose pods can become ready."""
        return bool(self.present(known))

"""Jobs that something made which waits in a queue, directly or through others: they are charged through it and do not wait themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import JsonObject, Resource
from drayman.controllers.quota.loop import Key
from drayman.workloads.queued.entering import (
    Finder,
    Intake,
    charged_owner,
    controller_of,
    kind_of_owner,
)
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.places import Object


class Ancestors:
    """Finds objects of all kinds that are queued as a whole."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._finders: dict[tuple[str, str], Callable[[Key], Object | None]] = {}
        self._resources: dict[tuple[str, str], Resource[JsonObject]] = {}

    def add(
        self,
        kind: QueuedKind,
        resource: Resource[JsonObject],
        find: Callable[[Key], Object | None],
    ) -> None:
        self._finders[kind.group, kind.kind] = find
        self._resources[kind.group, kind.kind] = resource

    def charged_owner(self, obj: Object, intake: Intake) -> Mapping[str, Json] | None:
        """The owner through which an object is charged; None if it is charged for itself, if at all."""
        found = charged_owner(obj, intake, self.finder(obj["metadata"].get("namespace", "")))
        return None if found is None else found.obj

    def finder(self, namespace: str) -> Finder:
        """Finds objects of a namespace."""
        return lambda kind, name: self._finders[kind.group, kind.kind]((namespace, name))

    async def is_late(self, obj: Object) -> bool:
        """Whether the owner of an object exists and is not known here yet, because each kind has a watch of its own."""
        owner = controller_of(obj)
        kind = None if owner is None else kind_of_owner(owner)
        if owner is None or kind is None:
            return False
        namespace, name = obj["metadata"].get("namespace", ""), str(owner.get("name"))
        known = self.finder(namespace)(kind, name)
        if known is not None and known["metadata"].get("uid") == owner.get("uid"):
            return False
        try:
            found = await self._client.get(
                self._resources[kind.group, kind.kind], name, namespace or None
            )
        except NotFoundError:
            return False
        return bool(found["metadata"].get("uid") == owner.get("uid"))

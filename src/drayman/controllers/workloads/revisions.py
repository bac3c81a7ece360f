"""Makes, renumbers and removes the revisions of templates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from drayman.api import codec
from drayman.api.workloads import ControllerRevision
from drayman.cluster.client import Client
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import CONTROLLER_REVISIONS
from drayman.controllers.workloads.holdings import Holdings
from drayman.workloads.revisions import Revised, new_revision, template_data

_BODIES: Final = CONTROLLER_REVISIONS.as_values()


class Present(NamedTuple):
    """The revision of the present template, and how many names for it were taken."""

    revision: ControllerRevision
    collisions: int | None


class Revisions:
    """The revisions of all objects of one kind."""

    def __init__(self, client: Client, informers: Informers, owner_kind: str) -> None:
        self._client = client
        informer = informers.informer(CONTROLLER_REVISIONS)
        # Nothing acts on a revision alone, so nothing is notified.
        self._held: Holdings[ControllerRevision] = Holdings(informer, owner_kind, lambda _: None)

    def of(self, uid: str) -> list[ControllerRevision]:
        """The revisions of an object, the newest last."""
        return sorted(self._held.of(uid), key=lambda r: (r.revision, r.metadata.name))

    async def present(self, owner: Revised, labels: Mapping[str, str]) -> Present:
        """The revision of the present template, made where there is none and moved up where it is an earlier one."""
        known, data = self.of(owner.metadata.uid), template_data(owner)
        collisions = owner.status.collision_count
        number = max((revision.revision for revision in known), default=0) + 1
        for revision in reversed(known):
            if revision.data == data:
                if revision is known[-1]:
                    return Present(revision, collisions)
                return Present(await self._renumber(revision, number), collisions)
        return await self._make(owner, labels, collisions, number)

    async def truncate(self, uid: str, live: Collection[str], limit: int | None) -> None:
        """Deletes the oldest revisions that no pod and no status names, down to the limit."""
        if limit is None:
            return
        spare = [r for r in self.of(uid) if r.metadata.name not in live]
        for revision in spare[: max(0, len(spare) - limit)]:
            metadata = revision.metadata
            options = DeleteOptions(uid=metadata.uid)
            try:
                await self._client.delete(
                    CONTROLLER_REVISIONS, metadata.name, metadata.namespace, options=options
                )
            except NotFoundError:
                pass
            self._held.deleted(revision, None)

    async def _renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        change = merge_patch({"metadata": {"uid": revision.metadata.uid}, "revision": number})
        written = await self._client.patch(
            CONTROLLER_REVISIONS, revision.metadata.name, change, revision.metadata.namespace
        )
        self._held.wrote(written)
        return written

    async def _make(
        self, owner: Revised, labels: Mapping[str, str], collisions: int | None, number: int
    ) -> Present:
        while True:
            body = new_revision(owner, labels, collisions, number)
            name, namespace = body["metadata"]["name"], owner.metadata.namespace
            try:
                made = codec.convert(ControllerRevision, await self._client.create(_BODIES, body))
            except AlreadyExistsError:
                found = await self._client.get(CONTROLLER_REVISIONS, name, namespace)
                owners = {each.uid for each in found.metadata.owner_references}
                if found.data == body["data"] and owner.metadata.uid in owners:
                    return Present(found, collisions)
                collisions = (collisions or 0) + 1
                continue
            self._held.wrote(made)
            return Present(made, collisions)

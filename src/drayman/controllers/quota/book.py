"""The Workloads of a cluster as this loop knows them, its own writes included.

Everything that decides about a Workload reads it here and writes it here. A write names the version it is based on, so two that decide at
the same time do not undo each other's work: the second is refused and decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api import codec
from drayman.api.core import EventType
from drayman.api.custom_groups import spec_of
from drayman.api.errors import DecodeError
from drayman.api.kueue import status_of
from drayman.api.kueue_workload import Workload, WorkloadSpec, WorkloadStatus
from drayman.api.meta import ObjectMeta
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ForbiddenError, NotFoundError, is_final
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Handler, Notice
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import json_patch, merge_patch
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import JsonObject, typed
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import PatchWrite, Write
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.tally import QueueTally
from drayman.controllers.workloads.holdings import version_of
from drayman.workloads.queued.bodies import status_body
from drayman.workloads.queued.names import IN_USE

WORKLOADS: Final = typed(Workload)
_VALUES: Final = WORKLOADS.as_values()
_OWNERS: Final = "quota:owners"


@dataclass(frozen=True, slots=True)
class Known:
    """A Workload and what it says."""

    workload: Workload
    spec: WorkloadSpec
    status: WorkloadStatus
    owners: frozenset[str]
    """By their uids. A group of pods has many."""
    problem: str = ""
    """Why it cannot be understood; empty if it can."""

    @property
    def key(self) -> Key:
        return self.workload.metadata.namespace, self.workload.metadata.name

    @property
    def name(self) -> str:
        return self.workload.metadata.name

    @property
    def metadata(self) -> ObjectMeta:
        return self.workload.metadata

    @property
    def generation(self) -> int:
        return self.workload.metadata.generation

    @property
    def is_leaving(self) -> bool:
        return self.workload.metadata.deletion_timestamp is not None


def _owner_uids(workload: Workload) -> Iterable[str]:
    return [owner.uid for owner in workload.metadata.owner_references]


def _version(known_: Known) -> JsonObject:
    """The part of a patch that has it refused if the object has changed meanwhile."""
    version = known_.workload.metadata.resource_version
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": version}


def known(workload: Workload) -> Known:
    """A Workload, decoded."""
    owners = frozenset(_owner_uids(workload))
    try:
        spec, status = spec_of(WorkloadSpec, workload), status_of(WorkloadStatus, workload)
        return Known(workload, spec, status, owners)
    except DecodeError as error:
        return Known(workload, WorkloadSpec(), WorkloadStatus(), owners, str(error))


class WorkloadBook:
    """All Workloads, by key and by what owns them."""

    def __init__(
        self, client: Client, informers: Informers, recorder: EventRecorder, tally: QueueTally
    ) -> None:
        self._client = client
        self._tally = tally
        self._recorder = recorder
        self._informer = informers.informer(WORKLOADS, indexers={_OWNERS: _owner_uids})
        self._own: dict[Key, Workload] = {}
        """Workloads as our own last write left them, while the cache may not have them yet."""
        self._own_of: dict[str, set[Key]] = {}
        """Their keys, by the uid of an owner."""
        self._decoded: dict[Key, tuple[str, Known]] = {}
        self._handlers: list[Handler[Workload]] = []
        self._informer.add_handler(self._changed)
        self.holds_back: Callable[[Known], bool] = lambda _: False
        """Whether the quota of a Workload cannot be released, because pods that were placed with it are still on nodes."""
        self.pods_on_nodes: Callable[[Known], int] = lambda _: 0
        """How many these are."""

    def listen(self, handler: Handler[Workload]) -> None:
        """Be told of changes, after they can be found here."""
        self._handlers.append(handler)

    def find(self, key: Key) -> Known | None:
        """A Workload as it is known to be."""
        found = self._newest(key)
        if found is None:
            self._decoded.pop(key, None)
            return None
        version = found.metadata.resource_version
        decoded = self._decoded.get(key)
        if decoded is None or decoded[0] != version:
            decoded = self._decoded[key] = (version, known(found))
        return decoded[1]

    def of_owner(self, uid: str) -> list[Known]:
        """The Workloads of an object, by name."""
        keys = {
            (each.metadata.namespace, each.metadata.name)
            for each in self._informer.cache.by_index(_OWNERS, uid)
        }
        keys |= self._own_of.get(uid, set())
        found = [each for key in sorted(keys) if (each := self.find(key)) is not None]
        return [each for each in found if uid in each.owners]

    def all(self) -> list[Known]:
        return [
            each for key in self._informer.cache.names() if (each := self.find(key)) is not None
        ]

    async def create(self, body: JsonObject, refused: Callable[[str], None]) -> Known:
        """Make a Workload. `refused` is called with the reason if the server will not have it, for its name or its content.

        Raises ClusterError, in that case as well.
        """
        try:
            made = await self._client.create(_VALUES, body)
        except ClusterError as error:
            if is_final(error) or isinstance(error, ForbiddenError):
                refused(str(error))
            raise
        return self._wrote(codec.convert(Workload, made))

    async def write_status(self, known_: Known, status: WorkloadStatus) -> Known:
        """Replaces a status. Raises ConflictError where the object has changed meanwhile."""
        if status == known_.status:
            return known_
        change: JsonObject = {"op": "add", "path": "/status", "value": status_body(status)}
        written = await self._patch(known_, [change], "status")
        self._tally.note(known_.workload, known_.spec, known_.status, written.status)
        return written

    async def write_noted(
        self, known_: Known, status: WorkloadStatus, annotations: Mapping[str, str]
    ) -> Known:
        """Replaces a status, and annotations with it. Raises ConflictError where the object has changed meanwhile."""
        refusals: list[ClusterError] = []
        answers: list[Known] = []
        changed = {
            name: text
            for name, text in annotations.items()
            if known_.workload.metadata.annotations.get(name, "") != text
        }
        bundle = self.bundle(known_, status, refusals.append, answers.append, changed)
        await write_together(self._client, [bundle])
        if refusals:
            raise refusals[0]
        return answers[0]

    def bundle(
        self,
        known_: Known,
        status: WorkloadStatus,
        refused: Callable[[ClusterError], None],
        written: Callable[[Known], None],
        annotations: Mapping[str, str] | None = None,
    ) -> Bundle:
        """A status, and annotations, to be written together with others; the functions are told what became of it."""
        metadata = known_.workload.metadata
        change: JsonObject = {"op": "add", "path": "/status", "value": status_body(status)}
        operations = [change] if annotations else [_version(known_), change]
        writes: list[Write] = [
            PatchWrite(
                WORKLOADS,
                metadata.name,
                json_patch(operations),
                metadata.namespace,
                subresource="status",
            )
        ]
        if annotations:
            # The version is that before both writes, so only the first can name it; they stand or fall together.
            version = metadata.resource_version
            noted = {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}}
            patch = merge_patch(noted)
            writes.insert(0, PatchWrite(WORKLOADS, metadata.name, patch, metadata.namespace))

        def taken(answers: Sequence[object]) -> None:
            answer = answers[-1]
            assert isinstance(answer, Workload)
            found = self._wrote(answer)
            self._tally.note(known_.workload, known_.spec, known_.status, found.status)
            written(found)

        return Bundle(writes, refused, taken)

    async def change(self, known_: Known, operations: Sequence[JsonObject]) -> Known:
        """Changes the spec or the metadata. Raises ConflictError where the object has changed meanwhile."""
        return await self._patch(known_, operations)

    async def let_go(self, known_: Known) -> None:
        """Takes off the finalizer that keeps it while it is in use; as long as it is, nothing is done."""
        if self.holds_back(known_):
            return
        kept = [each for each in known_.workload.metadata.finalizers if each != IN_USE]
        if len(kept) == len(known_.workload.metadata.finalizers):
            return
        try:
            await self.change(
                known_, [{"op": "add", "path": "/metadata/finalizers", "value": kept}]
            )
        except NotFoundError:
            self._drop_own(known_.key)

    async def delete(self, known_: Known) -> None:
        """Deletes exactly this one; one that is gone is not an error."""
        await self.let_go(known_)
        await self.retire(known_)

    async def retire(self, known_: Known) -> None:
        """Deletes exactly this one, as soon as it is not in use any more."""
        if known_.is_leaving:
            return
        options = DeleteOptions(uid=known_.workload.metadata.uid, propagation="Background")
        try:
            await self._client.delete(WORKLOADS, known_.name, known_.key[0], options=options)
        except NotFoundError:
            self._drop_own(known_.key)

    def record(self, known_: Known, type_: EventType, reason: str, note: str) -> None:
        self._recorder.record(Reference.to(WORKLOADS, known_.workload), type_, reason, note, reason)

    async def _patch(
        self, known_: Known, operations: Sequence[JsonObject], subresource: str = ""
    ) -> Known:
        metadata = known_.workload.metadata
        patch = json_patch([_version(known_), *operations])
        written = await self._client.patch(
            WORKLOADS, metadata.name, patch, metadata.namespace, subresource=subresource
        )
        return self._wrote(written)

    def _wrote(self, workload: Workload) -> Known:
        key = (workload.metadata.namespace, workload.metadata.name)
        self._drop_own(key)
        self._own[key] = workload
        for uid in _owner_uids(workload):
            self._own_of.setdefault(uid, set()).add(key)
        found = self.find(key)
        return known(workload) if found is None else found

    def _newest(self, key: Key) -> Workload | None:
        cached, own = self._informer.cache.get(key[1], key[0]), self._own.get(key)
        if own is None:
            return cached
        seen = version_of(self._informer.resource_version)
        if cached is not None:
            seen = max(seen, version_of(cached.metadata.resource_version))
        if seen < version_of(own.metadata.resource_version):
            return own
        self._drop_own(key)
        return cached

    def _drop_own(self, key: Key) -> None:
        own = self._own.pop(key, None)
        for uid in () if own is None else _owner_uids(own):
            keys = self._own_of.get(uid, set())
            keys.discard(key)
            if not keys:
                self._own_of.pop(uid, None)

    def _changed(self, notice: Notice[Workload]) -> None:
        for handler in self._handlers:
            handler(notice)

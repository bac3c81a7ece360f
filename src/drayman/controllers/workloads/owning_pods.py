"""What controllers whose objects own pods have in common: making them and giving them up.

Pods are written in batches. The first batch is a single pod and each is twice as large as the one before, so that a template that the
server refuses costs one request and not thousands. Large pods are written one at a time, since other requests wait meanwhile. While very
many pods of an object wait for a node, no more are made (`workloads.restraint`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.bounded import Bounded
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ForbiddenError,
    NotFoundError,
    StatusError,
)
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import PODS, JsonObject
from drayman.cluster.together import LARGEST, Bundle, write_together
from drayman.cluster.writes import CreateWrite, DeleteWrite
from drayman.controllers.workloads.owning import Owner, Selecting
from drayman.controllers.workloads.reconciling import Clock, Key
from drayman.workloads.pod_state import next_available
from drayman.workloads.restraint import most_waiting, room_for, weight_of

_NAMES_TRIED: Final = 5
_POD_BODIES: Final = PODS.as_values()
_BATCH_BYTES: Final = 1 << 16
"""The JSON of the pods in one transaction: as many as usual of usual ones, and one that is large."""
HELD_BACK_S: Final = 10.0
"""How long no pod may be made before that is reported: a burst of pods that nodes can take is held back for a moment only."""
_REMEMBERED: Final = 4096
"""Objects that are held back. One that is forgotten is reported later."""

T = TypeVar("T", bound=Selecting)
S = TypeVar("S")


class PodOwner(Owner[T, Pod]):
    """A controller whose objects own pods."""

    owned = PODS

    def __init__(self, client: Client, informers: Informers, *, clock: Clock = time.time) -> None:
        self._held_back: Bounded[str, tuple[float, int]] = Bounded(_REMEMBERED)
        """Since when no pods are made for an object, by its uid, and how many of its pods may wait."""
        super().__init__(client, informers, clock=clock)

    def creation_note(self, value: T, name: str) -> str:
        """What the event says about a pod that was made."""
        return f"Created pod: {name}"

    def deletion_note(self, value: T, name: str) -> str:
        return f"Deleted pod: {name}"

    def look_again(
        self, key: Key, pods: Iterable[Pod], min_ready_seconds: int, *, at_once: bool
    ) -> None:
        """After something was made or deleted, and when a pod becomes available by the passing of time alone.

        It is not enough that something was to be made: in a namespace that is being deleted it never is, and retries would never end.
        """
        if at_once:
            self.queue.add(key)
        if (wait := next_available(pods, min_ready_seconds, self.clock())) is not None:
            self.queue.add_after(key, wait)

    def allowed(
        self, value: T, wanted: Sequence[S], template: dict[str, Json], *, claims: int = 0
    ) -> Sequence[S]:
        """The first of the pods that are to be made, as far as there is room for pods that wait.

        `claims` are those that are made for each of them. Pods that get a node bring the object back into the queue.
        """
        uid = value.metadata.uid
        if not wanted:
            self._held_back.pop(uid, None)
            return wanted
        weight = weight_of(template, claims)
        allowed = wanted[: room_for(self.holdings.of(uid), weight)]
        if allowed:
            self._held_back.pop(uid, None)
            return allowed
        if uid not in self._held_back:
            self._held_back[uid] = (self.clock(), most_waiting(weight))
        if (why := self.restraint(value)) is not None:
            self.record(value, "Warning", "FailedCreate", why)
        else:
            key = (value.metadata.namespace, value.metadata.name)
            self.queue.add_after(key, HELD_BACK_S)
        return allowed

    def restraint(self, value: T) -> str | None:
        """Why no more pods are made for an object, once that has been so for a while."""
        since, most = self._held_back.get(value.metadata.uid, (self.clock(), 0))
        if self.clock() - since < HELD_BACK_S:
            return None
        return f"{most} pods wait for a node; more are made as soon as some of them have one"

    async def create_pods(self, value: T, bodies: Sequence[JsonObject]) -> None:
        """Makes pods, few at first. Raises the first refusal, after recording an event."""
        begun, size = 0, 1
        largest = _largest_batch(bodies[0]) if bodies else LARGEST
        while begun < len(bodies):
            batch = bodies[begun : begun + size]
            try:
                made = await self._create_batch(batch)
            except ClusterError as error:
                if is_namespace_ending(error):
                    return
                self.record(value, "Warning", "FailedCreate", f"Error creating: {error}")
                raise
            for answer in made:
                pod = codec.convert(Pod, answer)
                self.holdings.wrote(pod)
                note = self.creation_note(value, pod.metadata.name)
                self.record(value, "Normal", "SuccessfulCreate", note)
            begun += len(batch)
            size = min(2 * size, largest)

    async def _create_batch(self, batch: Sequence[JsonObject]) -> tuple[object, ...]:
        for _ in range(_NAMES_TRIED):
            try:
                return await self._write_batch(batch)
            except AlreadyExistsError:
                # Now and then one of many random names is taken; a name that was given stays taken.
                if any("name" in body["metadata"] for body in batch):
                    raise
        return await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[JsonObject]) -> tuple[object, ...]:
        if len(batch) == 1:
            # Not as a transaction, in which the server cannot set a large pod aside while it answers others.
            return (await self.client.create(_POD_BODIES, batch[0]),)
        return await self.client.write_many([CreateWrite(_POD_BODIES, body) for body in batch])

    async def delete_pods(self, value: T, pods: Sequence[Pod]) -> None:
        """Deletes exactly these pods; one that is already gone is not an error."""
        await write_together(
            self.client,
            [
                Bundle(
                    [_deletion(pod)],
                    partial(self._deletion_refused, value, pod),
                    partial(self._note_deletion, value, pod),
                )
                for pod in pods
            ],
        )

    def _deletion_refused(self, value: T, pod: Pod, error: ClusterError) -> None:
        if isinstance(error, NotFoundError):
            self.holdings.deleted(pod, None)
            return
        if isinstance(error, StatusError):
            self.record(value, "Warning", "FailedDelete", f"Error deleting: {error}")
        raise error

    def _note_deletion(self, value: T, pod: Pod, answers: Sequence[object]) -> None:
        (answer,) = answers
        self.holdings.deleted(pod, answer if isinstance(answer, Pod) else None)
        note = self.deletion_note(value, pod.metadata.name)
        self.record(value, "Normal", "SuccessfulDelete", note)


def _largest_batch(body: JsonObject) -> int:
    """How many pods like this one are written at a time."""
    return max(1, min(LARGEST, _BATCH_BYTES // len(msgspec.json.encode(body))))


def is_namespace_ending(error: ClusterError) -> bool:
    """Whether a create was refused because its namespace is being deleted, after which nothing is left to do."""
    return isinstance(error, ForbiddenError) and any(
        cause.reason == "NamespaceTerminating" for cause in error.causes
    )


def _deletion(pod: Pod) -> DeleteWrite[Pod]:
    options = DeleteOptions(uid=pod.metadata.uid)
    return DeleteWrite(PODS, pod.metadata.name, pod.metadata.namespace, options)

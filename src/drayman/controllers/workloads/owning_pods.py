"""What controllers whose objects own pods have in common: making them and giving them up.

Pods are written in batches. The first batch is a single pod and each is twice as large as the one before, so that a template that the
server refuses costs one request and not thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from drayman.api import codec
from drayman.api.core import Pod
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ForbiddenError,
    NotFoundError,
    StatusError,
)
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import PODS, JsonObject
from drayman.cluster.together import LARGEST, Bundle, write_together
from drayman.cluster.writes import CreateWrite, DeleteWrite
from drayman.controllers.workloads.owning import Owner, Selecting
from drayman.controllers.workloads.reconciling import Key
from drayman.workloads.pod_state import next_available

_NAMES_TRIED: Final = 5
_POD_BODIES: Final = PODS.as_values()

T = TypeVar("T", bound=Selecting)


class PodOwner(Owner[T, Pod]):
    """A controller whose objects own pods."""

    owned = PODS

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

    async def create_pods(self, value: T, bodies: Sequence[JsonObject]) -> None:
        """Makes pods, few at first. Raises the first refusal, after recording an event."""
        begun, size = 0, 1
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
            size = min(2 * size, LARGEST)

    async def _create_batch(self, batch: Sequence[JsonObject]) -> tuple[object, ...]:
        writes = [CreateWrite(_POD_BODIES, body) for body in batch]
        for _ in range(_NAMES_TRIED):
            try:
                return await self.client.write_many(writes)
            except AlreadyExistsError:
                # Now and then one of many random names is taken; a name that was given stays taken.
                if any("name" in body["metadata"] for body in batch):
                    raise
        return await self.client.write_many(writes)

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


def is_namespace_ending(error: ClusterError) -> bool:
    """Whether a create was refused because its namespace is being deleted, after which nothing is left to do."""
    return isinstance(error, ForbiddenError) and any(
        cause.reason == "NamespaceTerminating" for cause in error.causes
    )


def _deletion(pod: Pod) -> DeleteWrite[Pod]:
    options = DeleteOptions(uid=pod.metadata.uid)
    return DeleteWrite(PODS, pod.metadata.name, pod.metadata.namespace, options)

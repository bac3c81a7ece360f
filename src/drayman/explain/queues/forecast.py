"""When workloads that wait would start: everything that has quota ends when it is expected to, and the engine gives away what that frees.

What is known of run times is what placement knows (`placement/runs`): what pods and Jobs declare, deadlines, and what was observed. To
that is added the longest time that a Workload may run. A workload whose end is not known keeps its quota for ever, and so does one
that starts in this forecast without saying how long it will run. Those who have to give up quota to others do so at once and wait again.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import ceil
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.custom_groups import spec_of
from drayman.api.errors import ApiError
from drayman.api.jobs import Job
from drayman.api.kueue import pod_template_of, status_of
from drayman.api.kueue_workload import ADMITTED, Workload, WorkloadSpec, WorkloadStatus
from drayman.api.meta import ObjectMeta, controller_of
from drayman.api.pods import is_finished
from drayman.api.times import seconds_of, timestamp_at
from drayman.explain.answer import AwaitedWorkload, Estimate
from drayman.explain.queues.engine import Queues
from drayman.explain.queues.settling import settle
from drayman.explain.queues.standing import Line
from drayman.placement.runs.book import HORIZON_S
from drayman.placement.runs.declaring import RUNTIME, Basis
from drayman.placement.trial import Trial
from drayman.quota.fitting.belonging import handles_of, handles_of_pod, pods_of
from drayman.reasons.reason import Outlook, Reason
from drayman.reasons.reserved import span
from drayman.reasons.wording import counted

MOST_EVENTS: Final = 2_000
"""Ends and evictions that are played through. What starts after them has no estimate."""
MOST_NAMED: Final = 8
_IN_SENTENCE: Final = 3
_NOT_ITS_TURN: Final = frozenset(
    {Reason.QUEUE_INACTIVE, Reason.QUEUE_MISSING, Reason.WORKLOAD_INACTIVE, Reason.NO_PRICE}
)
"""Something has to be done before it waits for quota at all."""


class Ending(Struct, frozen=True):
    """When a workload will have ended, and what that rests on."""

    at: float
    basis: str


class Forecast:
    """The starts of all workloads that wait in a world."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._queues = line.queues
        self._endings = _Endings(line.queues)
        self.starts: dict[str, float] = {}
        self.ended: list[tuple[str, Ending]] = []
        """In the order of their ends, those that hold quota now or would until then."""
        self._roots: dict[str, str] = {}
        self._touched: set[str] = set()
        with line.queues.room.trial() as trial:
            self._play(trial)
        self._restore()

    def ending_of(self, key: str) -> Ending | None:
        """When a workload that holds quota now will have ended."""
        return self._endings.of_holder(key)

    def estimate(self, key: str) -> Estimate:
        """When a workload that waits will start, or why that cannot be told."""
        reason = self._line.headline(key).reason
        if reason.kind is Outlook.NEVER or reason in _NOT_ITS_TURN:
            return Estimate(sentence="No start can be estimated: waiting alone does not help.")
        if reason is Reason.QUOTA_WITHOUT_ROOM:
            return Estimate(
                sentence="No start can be estimated: it waits for room on nodes, not for quota."
            )
        at, now = self.starts.get(key), self._queues.now
        root = self._root(key)
        unknown = self._unknown(root)
        if at is None:
            return Estimate(
                sentence=f"No start can be estimated: {_why_not(unknown)}.", unknown=unknown
            )
        before = [
            (name, ending)
            for name, ending in self.ended
            if ending.at <= at and self._root(name) == root
        ]
        # The last to end are what it waits for most.
        before.reverse()
        return Estimate(
            sentence=_sentence(at, now, before),
            start=timestamp_at(at),
            seconds=max(round(at - now), 0),
            workloads=tuple(
                AwaitedWorkload(workload=name, ends=timestamp_at(ending.at), basis=ending.basis)
                for name, ending in before[:MOST_NAMED]
            ),
            more=max(len(before) - MOST_NAMED, 0),
            unknown=unknown,
        )

    # Playing.

    def _play(self, trial: Trial | None) -> None:
        queues = self._queues
        ends: list[tuple[float, str, Ending]] = []
        for key, entry in queues.state.entries.items():
            if entry.holding is not None:
                ending = self._endings.of_holder(key)
                if ending is not None:
                    ends.append((ending.at, key, ending))
        heapify(ends)
        self._start(queues.now, ends, trial)
        for _ in range(MOST_EVENTS):
            if not ends:
                return
            at, key, ending = heappop(ends)
            if key not in queues.state.entries or queues.state.entries[key].holding is None:
                continue  # it had to give up its quota before
            self._root(key)
            self._touched.add(key)
            queues.room.leave(trial, (key,))
            queues.state.remove_workload(key)
            self.ended.append((key, ending))
            if ends and ends[0][0] == at:
                continue
            self._start(at, ends, trial)

    def _start(self, at: float, ends: list[tuple[float, str, Ending]], trial: Trial | None) -> None:
        """Have everything start that can, with those gone that have to give way."""
        queues = self._queues
        evicted: set[str] = set()
        while True:
            settled = settle(queues, at)
            for key in settled.given:
                self._touched.add(key)
                self._root(key)
                self.starts.setdefault(key, at)
                ending = self._endings.of_start(key, at)
                if ending is not None:
                    heappush(ends, (ending.at, key, ending))
            victims = {each.key for those in settled.victims.values() for each in those} - evicted
            if not victims or len(evicted) > MOST_EVENTS:
                return
            evicted |= victims
            queues.room.leave(trial, victims)
            for key in victims:
                self._touched.add(key)
                queues.state.remove_workload(key)
                queues.state.set_workload(replace(queues.workloads[key], status=None), at)

    def _restore(self) -> None:
        queues = self._queues
        for key in self._touched:
            queues.state.remove_workload(key)
        for key in self._touched:
            queues.state.set_workload(queues.workloads[key], queues.now)
        for queue in queues.state.books.queues.values():
            queues.state.books.wake(queue.name)
        queues.forget_use()

    def _root(self, key: str) -> str:
        """The tree that a workload belongs to, by the name of its root: noted while it is known."""
        if key not in self._roots:
            entry = self._line.entry(key)
            queue = None if entry is None else self._line.queue_of(entry)
            node = None if queue is None else queue.node
            self._roots[key] = "" if node is None else node.root.name
        return self._roots[key]

    def _unknown(self, root: str) -> int:
        """How many workloads of a tree hold quota and do not say for how long."""
        return sum(
            entry.holding is not None and self._root(key) == root and self.ending_of(key) is None
            for key, entry in self._queues.state.entries.items()
        )


class _Endings:
    """What is known of the run times of workloads."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._runs = queues.world.state.runs
        self._jobs: dict[str, Job] = {job.metadata.uid: job for job in queues.world.objects.jobs}
        self._pods: dict[str, list[Pod]] = {}
        for pod in queues.world.objects.pods:
            for handle in handles_of_pod(pod):
                self._pods.setdefault(handle, []).append(pod)
        self._known: dict[str, Ending | None] = {}

    def of_holder(self, key: str) -> Ending | None:
        if key not in self._known:
            self._known[key] = self._of_holder(self._queues.workloads[key])
        return self._known[key]

    def _of_holder(self, workload: Workload) -> Ending | None:
        now = self._queues.now
        status = status_of(WorkloadStatus, workload)
        admitted = status.condition(ADMITTED)
        started = seconds_of(admitted.last_transition_time) if admitted is not None else None
        begun = now if started is None or not status.is_true(ADMITTED) else started
        running = [
            pod
            for pod in pods_of(handles_of(workload), self._of_handle).values()
            if pod.spec.node_name and not is_finished(pod)
        ]
        found = self._as_declared(workload, begun)
        if running and self._waves(workload) == 1:
            endings = [self._runs.ending_of(pod, now) for pod in running]
            known = [each for each in endings if each is not None]
            if len(known) == len(endings):
                last = max(known, key=lambda each: each.at)
                found = Ending(last.at, last.basis.value)
        limit = self._limit(workload, status, begun)
        if limit is not None and (found is None or limit.at < found.at):
            found = limit
        return found if found is not None and now < found.at <= now + HORIZON_S else None

    def _of_handle(self, handle: str) -> list[Pod]:
        return self._pods.get(handle, [])

    def of_start(self, key: str, at: float) -> Ending | None:
        """When a workload would have ended that starts at some time."""
        workload = self._queues.workloads[key]
        found = self._as_declared(workload, at)
        limit = self._limit(workload, WorkloadStatus(), at)
        if limit is not None and (found is None or limit.at < found.at):
            return limit
        return found

    def _as_declared(self, workload: Workload, begun: float) -> Ending | None:
        """As its templates and its owner say: the last of its pods ends it."""
        try:
            spec = spec_of(WorkloadSpec, workload)
            templates = [pod_template_of(each.template) for each in spec.pod_sets if each.count]
        except ApiError:
            return None
        last: Ending | None = None
        for template in templates:
            metadata = ObjectMeta(
                namespace=workload.metadata.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=workload.metadata.owner_references,
            )
            ending = self._runs.would_end(Pod(metadata=metadata, spec=template.spec), begun)
            if ending is None:
                return None
            if last is None or ending.at > last.at:
                last = Ending(ending.at, ending.basis.value)
        if last is None or last.basis == Basis.DEADLINE.value:
            return last
        return Ending(begun + (last.at - begun) * self._waves(workload), last.basis)

    def _waves(self, workload: Workload) -> int:
        """How many times as many pods as run at once a Job needs."""
        owner = controller_of(workload.metadata)
        job = None if owner is None else self._jobs.get(owner.uid)
        if job is None or not job.spec.completions or not job.spec.parallelism:
            return 1
        return max(1, ceil(job.spec.completions / job.spec.parallelism))

    @staticmethod
    def _limit(workload: Workload, status: WorkloadStatus, begun: float) -> Ending | None:
        try:
            most = spec_of(WorkloadSpec, workload).maximum_execution_time_seconds
        except ApiError:
            return None
        if most is None:
            return None
        past = status.accumulated_past_execution_time_seconds or 0
        return Ending(begun + most - past, Basis.DEADLINE.value)


def _why_not(unknown: int) -> str:
    if unknown:
        runs = "runs" if unknown == 1 else "run"
        return f"it is not known how long {counted(unknown, 'workload')} with quota {runs} ({RUNTIME} says it)"
    return "it gets no quota after the end of all workloads that are known to end either"


def _sentence(at: float, now: float, before: list[tuple[str, Ending]]) -> str:
    if at <= now:
        return (
            "as soon as it is its turn: nothing has to end for it that is not being ended already."
        )
    ends = [
        f"workload {key} at {timestamp_at(ending.at)} ({ending.basis})"
        for key, ending in before[:_IN_SENTENCE]
    ]
    said = "; ".join(ends)
    if len(before) > _IN_SENTENCE:
        said += f"; and {counted(len(before) - _IN_SENTENCE, 'more workload')}"
    return f"about {timestamp_at(at)}, in {span(at - now)}. This is an estimate: it rests on the end of {said}."

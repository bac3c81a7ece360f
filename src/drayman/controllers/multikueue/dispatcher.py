"""What is to be done about each workload that is handed over: one look, at most one step.

What that is follows from the Workload on the manager and from its copies on the workers that answer, so it does not matter when this is
called, how often, or by which process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from drayman.api.kueue_workload import WorkloadStatus
from drayman.controllers.multikueue.copying import Copying
from drayman.controllers.multikueue.links import Link
from drayman.controllers.multikueue.mirroring import Mirroring
from drayman.controllers.multikueue.withdrawing import withdraw
from drayman.controllers.multikueue.workers import Worker
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.configuration import Dispatching
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Shared
from drayman.workloads.dispatching import life as away
from drayman.workloads.dispatching.copies import (
    Needs,
    importance_changes,
    is_copy_of,
    workload_content,
    workload_copy,
)
from drayman.workloads.dispatching.life import RemoteState
from drayman.workloads.dispatching.ranking import Outlook, Room, first_admitted, offer
from drayman.workloads.queued import life

_UNSUPPORTED = "only jobs, pods and their like can run in another cluster, not a Workload alone"


@dataclass(frozen=True, slots=True)
class Route:
    """Where the workloads of a queue go."""

    check: str
    clusters: tuple[str, ...]


class Dispatcher:
    """Looks at workloads, one by one."""

    def __init__(
        self,
        shared: Shared,
        copying: Copying,
        mirroring: Sequence[Mirroring],
        links: Mapping[str, Link],
        route: Callable[[Known], Route | None],
        drained: Callable[[str], None],
    ) -> None:
        """`route` says where a workload goes, if anywhere; `drained` is called with the worker that something was taken back from."""
        self._shared = shared
        self._copying = copying
        self._mirroring = mirroring
        self._links = links
        self._route = route
        self._drained = drained
        self.loop = Loop("dispatched workloads", self.attend)

    @property
    def _options(self) -> Dispatching:
        return self._shared.configuration.dispatching

    async def attend(self, key: Key) -> None:
        known = self._shared.book.find(key)
        if known is not None and known.problem:
            return
        route = None if known is None else self._route(known)
        if known is None or (route is None and not away.is_elsewhere(known.status)):
            await self._withdraw(key, self._workers())
        elif (
            route is not None
            and not known.is_leaving
            and away.wants_worker(known.spec, known.status)
        ):
            await self._dispatch(known, route)
        else:
            await self._recall(known)

    def _workers(self, *but: str) -> list[Worker]:
        """Those that answer."""
        found = [link.worker for link in self._links.values() if link.name not in but]
        return [worker for worker in found if worker is not None]

    def _mirroring_of(self, known: Known) -> Mirroring | None:
        """Who knows the kind that a Workload was made for."""
        return next((each for each in self._mirroring if each.covers(known)), None)

    # Back to the manager.

    async def _withdraw(self, key: Key, workers: Iterable[Worker]) -> bool:
        """Take a workload back from workers. True when nothing of it is left there."""
        clean = True
        for worker in workers:
            if await withdraw(worker, key):
                self._drained(worker.name)
            else:
                clean = False
        return clean

    async def _recall(self, known: Known) -> None:
        """It must not run anywhere any more."""
        clean = await self._withdraw(known.key, self._workers())
        status = known.status
        if not clean or not away.is_elsewhere(status) or life.is_finished(status):
            return
        if not self._is_over(known, status.cluster_name):
            return
        mirroring = self._mirroring_of(known)
        if mirroring is None or await mirroring.clear(known):
            await self._shared.book.write_status(known, away.nowhere(status))

    def _is_over(self, known: Known, cluster: str | None) -> bool:
        """Whether nothing runs on a worker that was found without anything, or that does not answer."""
        link = None if cluster is None else self._links.get(cluster)
        if link is None or link.worker is not None:
            return True
        left = self._patience_left(link)
        if left > 0:
            self.loop.queue.add_after(known.key, left)
        return left <= 0

    def _patience_left(self, link: Link) -> float:
        return link.silence.since + self._options.lost_after_s - self._shared.clock()

    # To a worker.

    async def _dispatch(self, known: Known, route: Route) -> None:
        state = away.check_state(known.status, route.check)
        if state is None or state.state in (life.RETRY, life.REJECTED):
            return
        mirroring = self._mirroring_of(known)
        if mirroring is None:
            await self._reject(known, route)
        elif known.status.cluster_name is not None:
            await self._follow(known, route, known.status.cluster_name, mirroring)
        elif mirroring.is_here(known):
            await self._offer(known, route, mirroring)

    async def _reject(self, known: Known, route: Route) -> None:
        now = self._shared.clock()
        status = away.with_check(known.status, route.check, life.REJECTED, _UNSUPPORTED, now)
        await self._shared.book.write_status(known, status)

    async def _offer(self, known: Known, route: Route, mirroring: Mirroring) -> None:
        """Ask workers that have room, until one of them has admitted it."""
        needs = self._copying.needs(known.key[0], known.spec)
        outlooks = [self._outlook(known, needs, name, mirroring) for name in route.clusters]
        offered = offer(outlooks, known.status.nominated_cluster_names)
        now, check = self._shared.clock(), route.check
        winner = first_admitted(offered.clusters, self._admitted(known))
        if winner is not None:
            known = await self._write(known, away.taken(known.status, check, winner, now))
            self._report(known, check)
            self._shared.tally.taken[_queue_of(known), winner] += 1
            await self._follow(known, route, winner, mirroring)
            return
        status = away.offered(known.status, check, offered.clusters, offered.message, now)
        known = await self._write(known, status)
        for name in offered.clusters:
            worker = self._links[name].worker
            if worker is not None:
                await self._hand_over(worker, known, needs)
        await self._withdraw(known.key, self._workers(*offered.clusters))

    def _admitted(self, known: Known) -> set[str]:
        """The workers that have admitted what they were offered."""
        return {
            worker.name
            for worker in self._workers()
            if (copy := self._current_copy(worker, known)) is not None
            and away.may_be_taken(copy.status)
        }

    def _current_copy(self, worker: Worker, known: Known) -> Known | None:
        copy = worker.copy(known.key)
        if copy is None or copy.is_leaving or not copy.spec.active:
            return None
        content, uid = workload_content(known.spec), known.workload.metadata.uid
        return copy if is_copy_of(copy.workload.metadata, uid, content) else None

    def _outlook(self, known: Known, needs: Needs, name: str, mirroring: Mirroring) -> Outlook:
        link, origin = self._links.get(name), self._options.origin
        worker = None if link is None else link.worker
        if link is None or link.is_removed:
            return Outlook(name, Room.AWAY, "there is no such MultiKueueCluster")
        if worker is None:
            trouble = "" if link.trouble is None else f": {link.trouble.message}"
            return Outlook(name, Room.AWAY, f"it does not answer{trouble}")
        if not worker.has_namespace(known.key[0]):
            return Outlook(name, Room.REFUSED, f"it has no namespace {known.key[0]}")
        if worker.has_other(known.key):
            return Outlook(name, Room.REFUSED, f"it has a Workload {known.name} of its own")
        obstacle = self._copying.obstacle(worker, needs, origin) or mirroring.obstacle(
            worker, known, origin
        )
        if obstacle:
            return Outlook(name, Room.REFUSED, obstacle)
        now = self._shared.clock()
        if self._current_copy(worker, known) is not None and self._is_admitted_at(worker, known):
            return Outlook(name, Room.NOW)  # The room is its own.
        return Outlook(name, *worker.room.ask(*known.key, known.spec, needs, now))

    def _is_admitted_at(self, worker: Worker, known: Known) -> bool:
        copy = worker.copy(known.key)
        return copy is not None and away.may_be_taken(copy.status)

    async def _hand_over(self, worker: Worker, known: Known, needs: Needs) -> None:
        """Have the copy of a workload on a worker, and what it needs."""
        origin = self._options.origin
        if worker.copy(known.key) is not None:
            copy = self._current_copy(worker, known)
            if copy is None:
                await withdraw(worker, known.key)  # Of what it was before.
            else:
                await self._keep_importance(worker, known, copy)
            return
        if worker.objects_of(known.key):
            await withdraw(worker, known.key)
            return
        await self._copying.bring(worker, needs, origin)
        await worker.book.create(
            workload_copy(known.workload.metadata, known.spec, origin),
            lambda why: self._shared.book.record(
                known, "Warning", "ErrWorkloadCompose", f"{worker.name}: {why}"
            ),
        )
        self._shared.tally.dispatched[_queue_of(known), worker.name] += 1

    async def _keep_importance(self, worker: Worker, known: Known, copy: Known) -> None:
        """A priority that changes on the manager changes on the worker."""
        if copy.spec.priority != known.spec.priority:
            await worker.book.change(copy, importance_changes(known.spec))

    async def _follow(self, known: Known, route: Route, cluster: str, mirroring: Mirroring) -> None:
        """It is a worker's: have the job run there, and show what becomes of it."""
        link = self._links.get(cluster)
        if link is None or link.is_removed:
            await self._try_again(known, route, f"there is no MultiKueueCluster {cluster} any more")
            return
        worker = link.worker
        copy = None if worker is None else worker.copy(known.key)
        there = link.silence if worker is None else None if copy is None else copy.status
        state = away.remote_state(there, self._shared.clock(), self._options.lost_after_s)
        why = self._why_again(state, cluster)
        if why:
            await self._try_again(known, route, why)
        elif state is RemoteState.SILENT:
            self.loop.queue.add_after(known.key, self._patience_left(link) + 0.05)
        elif worker is not None and copy is not None:
            await self._run(worker, known, copy, state, mirroring)
        await self._withdraw(known.key, self._workers(cluster))

    def _why_again(self, state: RemoteState, cluster: str) -> str:
        match state:
            case RemoteState.LOST:
                seconds = f"{self._options.lost_after_s:g}s"
                return f"cluster {cluster} has not answered for {seconds}"
            case RemoteState.GONE:
                return f"it was deleted in cluster {cluster}"
            case RemoteState.EVICTED:
                return f"it was evicted in cluster {cluster}"
            case _:
                return ""

    async def _run(
        self, worker: Worker, known: Known, copy: Known, state: RemoteState, mirroring: Mirroring
    ) -> None:
        if state is RemoteState.RUNS:
            needs = self._copying.needs(known.key[0], known.spec)
            await self._copying.bring(worker, needs, self._options.origin)
            await mirroring.create(worker, known, self._options.origin)
            await self._keep_importance(worker, known, copy)
        await mirroring.bring_back(worker, known)
        now = self._shared.clock()
        if state is not RemoteState.ENDED:
            seen = away.as_seen_there(known.status, copy.status, now, known.generation)
            await self._write(known, seen)
        elif not worker.objects_of(known.key):
            # The job is gone already, and only its Workload says how it ended.
            status = away.as_ended_there(known.status, copy.status, now, known.generation)
            await self._write(known, status)

    async def _try_again(self, known: Known, route: Route, why: str) -> None:
        now = self._shared.clock()
        message = f"The workload begins elsewhere: {why}"
        status = away.to_be_tried_again(known.status, route.check, message, now)
        known = await self._write(known, status)
        self._report(known, route.check)

    async def _write(self, known: Known, status: WorkloadStatus) -> Known:
        return await self._shared.book.write_status(known, status)

    def _report(self, known: Known, check: str) -> None:
        state = away.check_state(known.status, check)
        if state is not None:
            self._shared.book.record(known, "Normal", "MultiKueue", state.message)


def _queue_of(known: Known) -> str:
    admission = known.status.admission
    return "" if admission is None else admission.cluster_queue

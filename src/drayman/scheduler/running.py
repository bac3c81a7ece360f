"""The running scheduler: follows the cluster, decides in rounds, has the decisions carried out.

A round takes what is in line, up to a bound, so that other tasks on the event loop get a turn between rounds. While the decisions of one
round are being written, the next rounds go on, on the assumption that they will succeed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.cluster.background import in_background
from drayman.cluster.client import Client
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import (
    DEVICE_TAINT_RULES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from drayman.cluster.turns import Turns
from drayman.placement.charging import Charging
from drayman.placement.decision.outcomes import Unfinished
from drayman.placement.decision.placements import Placement
from drayman.placement.gangs.gang import GangKey
from drayman.placement.hints import Change
from drayman.placement.joint.gangs import GangDecider
from drayman.placement.nominations import Nominations
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.schedulers import DEFAULT_SCHEDULER
from drayman.placement.state import ClusterState
from drayman.quota.fitting.admitted_room import AdmittedRoom
from drayman.quota.shares.live import LiveShares
from drayman.reasons.volumes import volumes_pending
from drayman.reasons.waiting import unready
from drayman.scheduler.binding import Binder
from drayman.scheduler.cycle import PATIENCE_S, Cycle, Refused
from drayman.scheduler.decision_log import DecisionLog
from drayman.scheduler.evicting import Evictor
from drayman.scheduler.following import Follower
from drayman.scheduler.foresight import Foresight
from drayman.scheduler.freeing import Freeing
from drayman.scheduler.gang_life import GangLife
from drayman.scheduler.giving_way import GivingWay
from drayman.scheduler.group_conditions import GroupConditions
from drayman.scheduler.keeping import RoomKeeper
from drayman.scheduler.losses import Losses
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.other_schedulers import UnservedPods
from drayman.scheduler.preempting import Preempted
from drayman.scheduler.queue import Queue
from drayman.scheduler.queue_statuses import QueueStatuses
from drayman.scheduler.queue_turns import QueueTurns
from drayman.scheduler.reporting import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    Reporter,
    condition_of,
    last_shown,
)
from drayman.scheduler.reserving import Withdrawal
from drayman.scheduler.rivals import Rivals
from drayman.scheduler.tally import Tally
from drayman.scheduler.terms import Terms
from drayman.scheduler.unit import QueuedUnit
from drayman.scheduler.volumes import progress

_log: Final = logging.getLogger(__name__)

GATHER_S: Final = 0.001
"""How long pods are collected while an earlier round is being written: a burst becomes few transactions. A lone pod is not delayed."""
ROUND: Final = 64
"""Pods in one round."""
UNDER_WAY: Final = 4
"""Rounds that are being written at the same time; more pile up in the queue, where they can still be reordered."""


class Scheduler:
    """Schedules the pods of a cluster until it is cancelled. It runs once: the next one looks at the cluster from scratch."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        options: SchedulerOptions | None = None,
        *,
        turns: Turns | None = None,
        tally: Tally | None = None,
        charging: Charging | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """With `turns`, claims of pods that can be placed at once are made here: see `drayman.cluster.turns`. With `charging`, pods
        that wait in queues are placed on account of quota alone.

        `clock` measures how long pods wait; `wall_clock`, which may be set to another time at any moment, is for times in objects.
        """
        self.tally = tally or Tally()
        self._options = options or SchedulerOptions()
        self._informers = informers
        self._handlers = Handlers(informers)
        self._turns = turns
        self._charging = charging
        self._clock = clock
        self._wall_clock = wall_clock
        self._work = asyncio.Event()
        self._under_way: dict[str, tuple[QueuedUnit, Placement]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._aside: set[asyncio.Task[None]] = set()
        self._working_out = asyncio.Lock()
        self._foreseeing: asyncio.Task[None] | None = None
        self._patient: set[str] = (
            set()
        )  # keys of gangs whose members may still be given claims here
        self._is_following = False
        self.queue = Queue(
            first_backoff_s=self._options.first_backoff_s,
            longest_backoff_s=self._options.longest_backoff_s,
        )
        self.state = ClusterState(self._options.features, self._wake, self._options.prices)
        self._nominations = Nominations(self.state)
        self._shares = LiveShares(self.state)
        self.queue.arbiter = QueueTurns(self.state, self._shares)
        self._foresight = Foresight(self.state)
        self._giving_way = self._new_giving_way()
        self._cycle = self._new_cycle()
        self._cycle.reserving.withdrawn = self._reservation_withdrawn
        self._recorder = EventRecorder(client, DEFAULT_SCHEDULER)
        self._terms = Terms(self._recorder, self.state, self._options.names)
        self._decisions = DecisionLog(self.state, clock)
        pods = informers.informer(PODS)
        self._pods = pods.cache
        self._reporter = Reporter(
            client,
            self._recorder,
            self._still_waits,
            wall_clock,
            self._decisions.waits,
            partial(last_shown, pods.cache),
        )
        self._group_conditions = GroupConditions(client, self.state.gangs, wall_clock)
        self._queue_statuses = QueueStatuses(client, self.state.queues)
        self._gang_life = GangLife(
            client,
            self.state.gangs,
            self._recorder,
            self._options.names,
            wall_clock,
            self._tell_why_a_gang_waits,
        )
        self._losses = Losses(client, self.state, pods, self._recorder, self.tally, wall_clock)
        self._rivals = None if self._options.is_guarded else self._new_rivals(client)
        # In a transaction there is no moment between allocation and binding.
        overtaking = None if client.transactional else self._rivals
        self._binder = Binder(
            client, self.state, self, wall_clock, self._options.binding_timeout_s, overtaking
        )
        self._freeing = Freeing(client, self.state, self._rivals)
        self._evictor = Evictor(
            client, self._recorder, self._nominations, self.state.gangs, self._hold_back
        )
        self._follower = self._new_follower()
        self._unserved = UnservedPods(
            self._recorder,
            self._options.names | self._options.left,
            self._options.unserved_after_s,
        )

    def _new_giving_way(self) -> GivingWay:
        return GivingWay(
            self.state,
            self._nominations,
            self.queue,
            self._handlers,
            self._options.policy,
            (self._clock, self._wall_clock),
            self,
            self._shares,
        )

    def _new_cycle(self) -> Cycle:
        return Cycle(
            self.state,
            self.queue,
            self._clock,
            wall_clock=self._wall_clock,
            policy=self._options.policy,
            binding_timeout_s=self._options.binding_timeout_s,
            turns=self._turns,
            may_preempt=self._giving_way.may_preempt,
            nominations=self._nominations,
            departures=self._giving_way.departures,
            uncharged=None if self._charging is None else self._charging.uncharged(self.state),
        )

    def _new_rivals(self, client: Client) -> Rivals:
        return Rivals(
            client,
            self.state,
            self._informers.informer(RESOURCE_CLAIMS),
            self._informers.informer(PODS),
            self._informers.informer(DEVICE_TAINT_RULES),
            self._recorder,
            self.tally,
            self._options.shielded_after_s,
        )

    def _new_follower(self) -> Follower:
        return Follower(
            self._handlers,
            self.state,
            self.queue,
            self._binder,
            self._options.names,
            self._work.set,
            self._nominations,
            RoomKeeper(self._nominations, self._wall_clock),
            AdmittedRoom(self.state, self._nominations),
            self._turns,
        )

    def follow(self) -> None:
        """Register with the informers. `run` does it if that has not been done."""
        if not self._is_following:
            self._is_following = True
            self._follower.follow(self.is_under_way)
            self._gang_life.follow(self._handlers)
            self._terms.follow(self._handlers)
            self._queue_statuses.follow(self._handlers)
            self._handlers.add(RESOURCE_CLAIMS, self._losses.notice)
            if self._rivals is not None:
                self._handlers.add(RESOURCE_CLAIMS, self._rivals.notice)
                self._handlers.add(DEVICE_TAINT_RULES, self._rivals.rule_notice)
            self._handlers.add(RESOURCE_SLICES, lambda notice: self._foresight.note(notice.object))
            if self._options.alone:
                self._unserved.follow(self._handlers)

    async def run(self) -> None:
        """Until cancelled."""
        self.follow()
        stop_listening = self._listen_to_charges()
        try:
            await self._informers.start()
            await self._informers.wait_synced()
            await self._schedule()
        finally:
            self._handlers.remove_all()
            stop_listening()
            if self._turns is not None:
                self._turns.give_up_all()

    def _listen_to_charges(self) -> Callable[[], None]:
        def wake(uids: Iterable[str]) -> None:
            self.queue.wake_pods(uids)
            self._work.set()

        return (lambda: None) if self._charging is None else self._charging.listen(wake)

    async def _schedule(self) -> None:
        self._recorder.start()
        reporting = in_background(self._reporter.run(), "the reporting of the scheduler", _log)
        judging = in_background(self._group_conditions.run(), "judging groups", _log)
        looking = in_background(self._foresight.run(self._is_busy), "looking ahead", _log)
        counting = in_background(self._queue_statuses.run(), "counting for queues", _log)
        self._gang_life.begin()
        if self._rivals is not None:
            self._rivals.begin()
        try:
            await self._rounds()
        finally:
            self._unserved.stop()
            if self._rivals is not None:
                await self._rivals.stop()
            ending = (reporting, judging, looking, counting, *self._tasks, *self._aside)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            await self._binder.stop()
            await self._losses.stop()
            await self._gang_life.stop()
            await self._recorder.stop()

    def _is_busy(self) -> bool:
        return bool(self._tasks) or self.queue.is_any_due(self._clock())

    async def _rounds(self) -> None:
        while True:
            await self._wait_for_work()
            while self.queue.is_any_due(self._clock()) and len(self._tasks) < UNDER_WAY:
                self._round()
                await asyncio.sleep(0)

    async def _wait_for_work(self) -> None:
        due = self.queue.next_due()
        timeout = None if due is None else max(due - self._clock(), 0.0)
        try:
            async with asyncio.timeout(timeout):
                await self._work.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_S if self._tasks else 0)
        self._work.clear()

    def _round(self) -> None:
        decisions = self._cycle.decide(ROUND)
        if decisions.placed:
            for entry, placement in decisions.placed:
                self._under_way[placement.uid] = (entry, placement)
                self._reporter.forget(placement.uid)
            self._spawn(self._binder.bind(decisions.placements))
        for refused in decisions.refused:
            self._refused(refused)
        for key, explain in decisions.stuck:
            self._group_conditions.stuck(key, explain)
        if self._cycle.reserving.is_searching and self._foreseeing is None:
            self._foreseeing = self._set_aside(self._foresee())

    def _refused(self, refused: Refused) -> None:
        if refused.keeps_turns:
            self._give_up_turns_later(refused.entry.key, refused.patience_s)
        for pod in refused.entry.pods.values():
            if self._turns is not None and not refused.keeps_turns:
                self._turns.give_up(pod)
            self._reporter.refuse(
                pod,
                UNSCHEDULABLE,
                refused.explain,
                patience_s=refused.patience_s,
                copies=lambda: self._copies(refused),
                shape=refused.entry.shape,
            )
        if isinstance(refused.why, Unfinished) and refused.why.rest is not None:
            self._set_aside(self._work_out(refused.entry, refused.why.rest))
            return
        work = self._freeing.plan(refused.entry.pod, refused.why)
        if work is not None:
            self._set_aside(work)  # it may wait until another claim has released a device
        else:
            rest = self._giving_way.begin(refused)
            if rest is not None:
                self._set_aside(rest)

    def _give_up_turns_later(self, key: str, after_s: float) -> None:
        """Members of a gang come one after the other, and most of them can be placed soon."""
        if self._turns is not None and key not in self._patient:
            self._patient.add(key)
            asyncio.get_running_loop().call_later(after_s, self._give_up_turns, key)

    def _give_up_turns(self, key: str) -> None:
        self._patient.discard(key)
        entry = self.queue.get(key)
        if entry is not None and self._turns is not None:
            for pod in entry.pods.values():
                self._turns.give_up(pod)

    def _tell_why_a_gang_waits(self, key: GangKey) -> str:
        """Says so, and has its pods and its group say so too."""
        found = (self.queue.get(uid) for uid in self.state.gangs.waiting(key))
        entry = next((each for each in found if each is not None), None)
        if entry is None:
            return f"{key} waits for pods that are not to be scheduled yet."
        said = self._cycle.explain_gang(entry)
        for pod in entry.pods.values():
            self._reporter.refuse(pod, UNSCHEDULABLE, lambda: said)
        self._group_conditions.stuck(key, lambda: said)
        return said

    def _copies(self, refused: Refused) -> Iterator[tuple[Pod, Callable[[], str]]]:
        """The pods that sleep because a copy of them was refused, and how to explain the reason for each."""
        if refused.by_nodes is not None:
            alike = self.queue.alike(refused.entry)
            yield from refused.by_nodes.copies(entry.pod for entry in alike)

    # Called by `giving_way`.

    def deciding(self, now: float) -> GangDecider:
        return self._cycle.gangs.deciding(now)

    def reserved_before(self, entry: QueuedUnit) -> list[Reservation]:
        return self._cycle.reserving.binding(entry)

    def preempted(self, decision: Preempted, now: float) -> None:
        self._spawn(self._evictor.carry_out(decision, now))

    def awaits_others(self, entry: QueuedUnit, until: float | None) -> None:
        self._cycle.retrying.awaits_others(entry, until)
        self._cycle.reserving.give_up(entry.key, Withdrawal.PROMISED)

    def put_off(self, uid: str) -> None:
        self._hold_back(uid)

    def _set_aside(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Begin work that other decisions need not wait for."""
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._put_away)
        return task

    def _put_away(self, task: asyncio.Task[None]) -> None:
        self._aside.discard(task)
        self._work.set()  # a unit may have to be tried again, at once or at some time

    async def _foresee(self) -> None:
        """Find out when units that were refused can start. Those that this concerns are tried again."""
        try:
            await self._cycle.reserving.complete()
        finally:
            self._foreseeing = None

    def _reservation_withdrawn(self, reservation: Reservation, why: Withdrawal) -> None:
        entry = self.queue.unit(reservation.key)
        if entry is None or why is Withdrawal.ENDED:
            return
        words = f"Room is no longer reserved for {reservation.title}: {why.value}."
        _log.info("%s", words)
        self._reporter.note(entry.pod, "ReservationWithdrawn", words, "Scheduling")

    async def _work_out(self, entry: QueuedUnit, rest: Callable[[], object]) -> None:
        """Do what a decision needs and takes too long for the event loop, for one pod at a time."""
        try:
            async with self._working_out:
                await asyncio.to_thread(rest)
        except Exception:
            _log.exception("%s", entry)
            self._cycle.retrying.failed(entry, self._clock())
        else:
            self.queue.wake_pods((entry.key,))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._work.set()
        if not task.cancelled() and task.exception() is not None:
            _log.error("a round of scheduling failed", exc_info=task.exception())

    def _wake(self, change: Change) -> None:
        if self.queue.wake(change):
            self._work.set()

    def _hold_back(self, uid: str) -> None:
        entry = self.queue.get(uid)
        if entry is not None:
            self._cycle.retrying.failed(entry, self._clock())
            self._work.set()

    def is_under_way(self, uid: str) -> bool:
        """Whether the pod has a node that is not yet written."""
        return uid in self._under_way

    def _still_waits(self, uid: str) -> bool:
        return uid in self.queue or uid in self._under_way

    # Called by the binder.

    def bound(self, placement: Placement) -> None:
        self._under_way.pop(placement.uid, None)
        self._nominations.withdraw(placement.uid)
        self._reporter.bound(placement.pod, placement.node)
        self._decisions.placed(placement)
        self._group_conditions.bound(placement.pod)

    def waiting(self, placement: Placement) -> None:
        made = (item.claim for item in placement.made)
        claims = (*placement.claims, *placement.held, *made)
        timeout = self._options.binding_timeout_s
        found = (unready(claim, self._wall_clock(), timeout) for claim in claims)
        news = next((str(each) for each in found if each is not None), None)
        if news is not None:
            self._reporter.note(
                placement.pod,
                "BindingConditionsPending",
                f"waiting for binding conditions for device on node {placement.node}",
                "Scheduling",
            )
            if condition_of(placement.pod) is not None:
                # What was reported for the pod before no longer holds.
                self._reporter.refuse(placement.pod, UNSCHEDULABLE, lambda: news)
        if placement.volumes is not None:
            # Most volumes are bound at once: not worth reporting.
            asyncio.get_running_loop().call_later(PATIENCE_S, self._report_volumes, placement)

    def _report_volumes(self, placement: Placement) -> None:
        """Report that volumes take their time, in place of what was reported for the pod before."""
        known = self._under_way.get(placement.uid)
        if known is None or known[1].volumes is not placement.volumes:
            return
        pending = progress(self.state, placement).pending
        if not pending:
            return
        news = volumes_pending(pending, placement.node)
        self._reporter.note(placement.pod, "VolumeBindingPending", news.sentence, "Scheduling")
        condition = condition_of(placement.pod)
        if condition is not None and condition.reason != SCHEDULER_ERROR:
            self._reporter.refuse(placement.pod, UNSCHEDULABLE, lambda: str(news))

    def failed(self, placement: Placement, why: str, *, overtaken: bool = False) -> None:
        known = self._under_way.pop(placement.uid, None)
        if known is None:
            return
        # While it was being written, the pod may have come to have claims, or other labels, which are not shown a second time.
        entry, pod = known[0], self._newest(placement.pod)
        self._gang_life.taken_back(pod)
        if self._turns is not None:
            self._turns.give_up(pod)
        if self._follower.waits(placement.uid):
            entry = self.queue.rejoin(entry, pod)
            if overtaken:
                self._cycle.retrying.overtaken(entry, self._clock())
            else:
                self._nominations.renew(
                    placement.uid, placement.node, placement.needs, placement.devices
                )
                self._cycle.retrying.failed(entry, self._clock())
                # The next attempt may come before the next report for a pod that already has one.
                urgent = placement.volumes is not None
                self._reporter.refuse(pod, SCHEDULER_ERROR, lambda: why, urgent=urgent)
        self._work.set()

    def _newest(self, pod: Pod) -> Pod:
        found = self._pods.get(pod.metadata.name, pod.metadata.namespace)
        return found if found is not None and found.metadata.uid == pod.metadata.uid else pod

    def settled(self, claims: Iterable[ResourceClaim]) -> None:
        self._cycle.retrying.settled(claims)
        self._work.set()

"""Replays: tasks at random until so much is asked for, as in "Beware of Fragmentation" (Weng et al., USENIX ATC '23), or as recorded.

At random, tasks of the trace are drawn with replacement and submitted one after the other until what they ask for reaches a part of the
GPUs, 130 % in the paper. None ends; one that does not fit is dropped. As recorded, tasks come at their time, run for as long as they did
and wait, in the order of arrival, until they fit; one that fits may overtake one that does not.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Final

from drayman.placement.prices import PriceTable, amount_of
from drayman.simulate.trace.ground import Ground, Running
from drayman.simulate.trace.policies import Draw
from drayman.simulate.trace.report import CurvePoint, Replay, ReplayCost, WaitingTimes
from drayman.simulate.trace.rooms import Audience, fragmentation
from drayman.simulate.trace.tables import WHOLE, TaskKind, Times, Trace

Advance = Callable[[float], None]
"""Told how far a replay is, from 0 to 1."""
_POINTS: Final = 13
_HOUR: Final = 3_600


def at_random(
    trace: Trace,
    policy: str,
    seed: int,
    draw: Draw,
    load: float,
    prices: PriceTable,
    advance: Advance,
) -> Replay:
    """Submit random tasks until they have asked for `load` times the GPUs."""
    ground = Ground(trace, policy, draw, prices)
    meter = _Meter(trace, ground)
    target = load * trace.gpu_milli
    asked = tasks = placed = 0
    points: list[CurvePoint] = []
    while asked < target:
        kind = trace.tasks[draw(len(trace.tasks))].kind
        asked += kind.total_milli
        placed += ground.place(f"task-{tasks}", kind, 0.0) is not None
        tasks += 1
        if asked >= target * (len(points) + 1) / _POINTS:
            points.append(meter.point(asked / trace.gpu_milli))
            advance(min(1.0, asked / target))
    return Replay(
        workload=trace.workload,
        policy=policy,
        seed=seed,
        tasks=tasks,
        placed=placed,
        allocated=ground.allocated / trace.gpu_milli,
        lost=meter.lost(),
        aligned=_aligned(ground),
        nodes_in_use=sum(1 for _ in ground.nodes_in_use()),
        cost=meter.cost(ground.allocated),
        waiting=None,
        curve=tuple(points),
    )


def as_recorded(
    trace: Trace, policy: str, draw: Draw, prices: PriceTable, advance: Advance
) -> Replay:
    """Submit tasks when they came. Raises ValueError if the trace does not say when that was."""
    return _Recorded(trace, policy, draw, prices).replay(advance)


class _Recorded:
    """A replay in the course of time."""

    def __init__(self, trace: Trace, policy: str, draw: Draw, prices: PriceTable) -> None:
        self._trace = trace
        self._policy = policy
        self._prices = prices
        self._ground = Ground(trace, policy, draw, prices)
        self._meter = _Meter(trace, self._ground)
        self._ends: list[tuple[int, int, Running]] = []
        self._waiting: dict[TaskKind, deque[tuple[int, str, Times]]] = {}
        self._queued = 0
        self._waits: list[int] = []
        self._gpu_seconds = self._most_nodes = self._now = 0
        self._spent = 0.0

    def replay(self, advance: Advance) -> Replay:
        arrivals: list[tuple[int, int, str, TaskKind, Times]] = []
        for number, task in enumerate(self._trace.tasks):
            if task.times is None:
                raise ValueError(f"task {task.name} has no creation_time or no deletion_time")
            arrivals.append((task.times.created, number, task.name, task.kind, task.times))
        arrivals.sort(key=lambda each: each[:2])
        begun = self._now = arrivals[0][0]
        points: list[CurvePoint] = []
        for number, (at, order, name, kind, times) in enumerate(arrivals):
            self._run_until(at)
            self._waiting.setdefault(kind, deque()).append((order, name, times))
            self._queued += 1
            self._start(kind)
            if number + 1 >= len(arrivals) * (len(points) + 1) // _POINTS:
                points.append(self._meter.point(self._now - begun, self._queued))
                advance(number / len(arrivals))
        lost = self._meter.lost()  # later, tasks only end
        while self._ends:
            self._run_until(self._ends[0][0])
        advance(1.0)
        return self._report(begun, points, lost)

    def _run_until(self, at: int) -> None:
        while self._ends and self._ends[0][0] <= at:
            self._pass(self._ends[0][0])
            while self._ends and self._ends[0][0] == self._now:
                self._ground.end(heapq.heappop(self._ends)[2])
            # The first of each kind, in the order of arrival: what does not fit it does not fit those behind it.
            for kind in sorted(self._waiting, key=lambda each: self._waiting[each][0][0]):
                self._start(kind)
        self._pass(at)

    def _pass(self, at: int) -> None:
        seconds = at - self._now
        if seconds > 0:
            self._gpu_seconds += seconds * self._ground.allocated
            self._most_nodes = max(self._most_nodes, sum(1 for _ in self._ground.nodes_in_use()))
            cost = self._meter.cost(self._ground.allocated)
            self._spent += 0.0 if cost is None else cost.per_hour * seconds / _HOUR
            self._now = at

    def _start(self, kind: TaskKind) -> None:
        """Start as many of a kind as fit."""
        queue = self._waiting[kind]
        while queue:
            order, name, times = queue[0]
            running = self._ground.place(name, kind, float(self._now))
            if running is None:
                return
            queue.popleft()
            self._queued -= 1
            self._waits.append(self._now - times.created)
            heapq.heappush(self._ends, (self._now + times.runs_for, order, running))
        del self._waiting[kind]

    def _report(self, begun: int, points: list[CurvePoint], lost: dict[str, float]) -> Replay:
        trace = self._trace
        duration = max(1, self._now - begun)
        waits = sorted(self._waits) or [0]
        hours, gpu_hours = duration / _HOUR, self._gpu_seconds / WHOLE / _HOUR
        cost = None
        if self._spent:
            each = self._spent / gpu_hours if gpu_hours else None
            cost = ReplayCost(
                per_hour=self._spent / hours,
                per_gpu_hour=each,
                total=self._spent,
                currency=self._prices.currency,
            )
        return Replay(
            workload=trace.workload,
            policy=self._policy,
            seed=None,
            tasks=len(trace.tasks),
            placed=len(self._waits),
            allocated=self._gpu_seconds / duration / trace.gpu_milli,
            lost=lost,
            aligned=_aligned(self._ground),
            nodes_in_use=self._most_nodes,
            cost=cost,
            waiting=WaitingTimes(
                mean=sum(waits) / len(waits),
                median=waits[len(waits) // 2],
                p95=waits[min(len(waits) - 1, len(waits) * 95 // 100)],
                most=waits[-1],
                never_started=self._queued,
            ),
            curve=tuple(points),
        )


class _Meter:
    """Measures a cluster for the tasks of its trace."""

    def __init__(self, trace: Trace, ground: Ground) -> None:
        self._trace = trace
        self._ground = ground
        self._gpus = trace.gpu_milli / WHOLE
        self._audience = Audience(trace.tasks)

    def point(self, at: float, waiting: int = 0) -> CurvePoint:
        ground = self._ground
        cost = self.cost(ground.allocated)
        return CurvePoint(
            at=at,
            allocated=ground.allocated / self._trace.gpu_milli,
            fragmented=fragmentation(self._audience.shares(ground.rooms())) / self._gpus,
            waiting=waiting,
            cost_per_hour=None if cost is None else cost.per_hour,
        )

    def lost(self) -> dict[str, float]:
        shares = self._audience.shares(self._ground.rooms())
        return {cause: amount / self._gpus for cause, amount in shares.items()}

    def cost(self, allocated: int) -> ReplayCost | None:
        """Of the nodes in use; None if none of the nodes has a price."""
        ground = self._ground
        if not ground.state.has_offers:
            return None
        prices = [ground.price_of(name) or 0 for name in ground.nodes_in_use()]
        total = amount_of(sum(prices))
        return ReplayCost(
            per_hour=total, per_gpu_hour=total * WHOLE / allocated if allocated else None
        )


def _aligned(ground: Ground) -> float | None:
    found = ground.aligned
    return found.best / found.tasks if found.tasks else None

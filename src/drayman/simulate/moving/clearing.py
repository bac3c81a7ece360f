"""The cheapest pods to move so that others get seats, within some nodes.

Seats are looked for one after the other, each where it costs least. Before a node is looked at closely, its cost is estimated from below,
by what it lacks and what its pods hold: nodes are asked in the order of their estimates, and nearly always the first is the one. What is
in the way on a single node is found as for preemption (`placement/victims.py`): all that could go is gone, and comes back as long as the
seat is left.

That is the cheapest way for pods that are alike. Where they are not, or where a gang has an inner structure, it is a good one: whether the
whole gang then fits is for its own decision to say.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from drayman.placement.demand import Demand
from drayman.placement.domains.budget import Budget
from drayman.placement.fit import FITS
from drayman.placement.joint.seating import Seat
from drayman.placement.nodes import NodeState
from drayman.placement.pauses import completed
from drayman.placement.placing import Found, Placer
from drayman.placement.refusing import DevicesVerdict
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.placement.victims import RoomSearch, find_way
from drayman.simulate.moving.movers import Cost, Mover, cost_of
from drayman.simulate.moving.units import Deciding

_MOST_ON_A_NODE: Final = 64
"""With more pods in the way on one node, only the cheapest of them are considered."""

Chosen = dict[str, Mover]
"""Movers by their keys."""


class _Seat(NamedTuple):
    """A place in the order in which seats are considered."""

    cost: Cost
    """At least; exactly, once it is known what has to move."""
    is_estimate: bool
    node: str
    movers: tuple[Mover, ...]
    version: int


class MoverSearch:
    """One search for movers, in a trial of its own."""

    def __init__(
        self,
        deciding: Deciding,
        movers: Callable[[str], Sequence[Mover]],
        budget: Budget,
    ) -> None:
        """`movers` has the pods on a node that may be moved for those that are to be seated."""
        self._deciding = deciding
        self._state: ClusterState = deciding.state
        self._movers = movers
        self._budget = budget
        self._versions: dict[str, int] = {}

    def cheapest(self, nodes: Sequence[NodeState], demands: Sequence[Demand]) -> list[Mover] | None:
        """What to move so that each of the demands has a seat on one of the nodes; None if that is not enough. Raises OutOfSteps."""
        names = [node.facts.name for node in nodes]
        kinds: dict[Hashable, list[Demand]] = {}
        for demand in demands:
            kinds.setdefault(demand.key, []).append(demand)
        chosen: Chosen = {}
        with self._state.trial() as trial:
            # A plan that is made beside what is kept for its own pod does not stand when that is given up.
            self._deciding.give_up_places(demands)
            for alike in sorted(kinds.values(), key=lambda alike: -_size(alike[0])):
                if not self._seat(trial, names, alike, chosen):
                    return None
        return list(chosen.values())

    def _seat(
        self, trial: Trial, names: Sequence[str], alike: Sequence[Demand], chosen: Chosen
    ) -> bool:
        """Seats for pods that are alike. Returns whether all of them have one."""
        placer = self._deciding.round.placer(alike[0])
        line: list[_Seat] = []
        for name in names:
            self._estimate(line, placer, alike[0], name, chosen)
        for demand in alike:
            while True:
                if not line:
                    return False
                best = heapq.heappop(line)
                if best.version != self._versions[best.node]:
                    continue
                if not best.is_estimate:
                    break
                self._find_out(line, placer, demand, best, chosen)
            for mover in best.movers:
                mover.leave(trial)
                chosen[mover.key] = mover
            found = placer.found_on(demand, self._state.nodes[best.node])
            if found is None:
                return False
            self._deciding.take((Seat(demand, found),))
            for name in {best.node, *_nodes_of(best.movers)}.intersection(names):
                self._estimate(line, placer, demand, name, chosen)
        return True

    def _estimate(
        self, line: list[_Seat], placer: Placer, demand: Demand, name: str, chosen: Chosen
    ) -> None:
        """Put a node into the line with what a seat on it costs at least, unless there can be none."""
        version = self._versions[name] = self._versions.get(name, 0) + 1
        node = self._state.nodes[name]
        self._budget.spend()
        verdict = placer.verdict_on(demand, node)
        if verdict is FITS:
            heapq.heappush(line, _Seat(Cost(), False, name, (), version))
            return
        here = self._present(name, chosen)
        if not here or not verdict.resolvable:
            return
        missing = verdict.least_missing if isinstance(verdict, DevicesVerdict) else 0
        least = _least(here, missing)
        if least is not None:
            heapq.heappush(line, _Seat(least, True, name, (), version))

    def _find_out(
        self, line: list[_Seat], placer: Placer, demand: Demand, seat: _Seat, chosen: Chosen
    ) -> None:
        """Put a node back into the line with what a seat on it costs exactly."""
        node = self._state.nodes[seat.node]

        def fits(node: NodeState) -> Found | None:
            self._budget.spend()
            return placer.found_on(demand, node)

        here = self._present(seat.node, chosen)
        ways = []
        # Restoring those with few devices first leaves few movers, restoring the dearest first leaves cheap ones.
        for order in (_few_devices_first, _dearest_first):
            search = RoomSearch[Mover](node, tuple(sorted(here, key=order)))
            way = completed(find_way(self._state, search, fits))
            if way is None:
                return
            ways.append((cost_of(way.victims), way.victims))
        cost, movers = min(ways, key=lambda each: each[0])
        heapq.heappush(line, _Seat(cost, False, seat.node, movers, seat.version))

    def _present(self, name: str, chosen: Chosen) -> list[Mover]:
        here = [mover for mover in self._movers(name) if mover.key not in chosen]
        return here if len(here) <= _MOST_ON_A_NODE else sorted(here, key=_cost)[:_MOST_ON_A_NODE]


def _least(here: Sequence[Mover], missing: int) -> Cost | None:
    """What it costs at least to have so many devices given back; None if these pods do not hold as many."""
    by_devices = sorted((mover.devices for mover in here), reverse=True)
    number, given = 0, 0
    while given < missing or not number:
        if number == len(by_devices):
            return None
        given += by_devices[number]
        number += 1

    def lowest(values: Sequence[float]) -> float:
        return sum(sorted(values)[:number])

    return Cost(
        number if all(len(mover.pods) == 1 for mover in here) else 1,
        int(lowest([mover.cost.importance for mover in here])),
        0,
        lowest([mover.cost.lost_s for mover in here if mover.gang is None]),
    )


def _size(demand: Demand) -> int:
    """How many devices a pod asks for, roughly: which kind comes first."""
    return sum(
        request.exactly.count or 1 if request.exactly is not None else 1
        for claim in demand.open
        for request in claim.spec.devices.requests
    )


def _few_devices_first(mover: Mover) -> tuple[int, Cost, str]:
    return mover.devices, mover.cost.reverse, mover.key


def _dearest_first(mover: Mover) -> tuple[Cost, str]:
    return mover.cost.reverse, mover.key


def _cost(mover: Mover) -> tuple[Cost, str]:
    return mover.cost, mover.key


def _nodes_of(movers: Sequence[Mover]) -> set[str]:
    return {pod.spec.node_name for mover in movers for pod in mover.pods}

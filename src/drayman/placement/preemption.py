"""Room for pods that are more important than some running ones: which of those have to go.

For each node: disregard pods that are leaving anyway. If that is not enough, look for victims (`victims`) among the pods of lower priority,
of which the most important are restored first. The node is chosen as Kubernetes chooses it: fewest broken disruption budgets, then the
least important victims, then the fewest. A node on which no pod has to be evicted is the best of all.

Unlike in Kubernetes, devices count: a pod that holds a needed device is a candidate just like one that holds the CPU. Pods that are being
deleted count too: no pod is evicted for room that is about to become free. Pods that go together are one victim, wherever they are
(`parties`).

The search takes breaks where they are due, and the cluster may change meanwhile. So after a break what was found is looked at once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.placement.gangs.gang import GangKey
from drayman.placement.nodes import NodeState
from drayman.placement.parties import (
    Party,
    earliest_start,
    gangs_of,
    in_order_of_going,
    in_order_of_return,
)
from drayman.placement.pauses import Pauses, completed, never
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from drayman.placement.victim_sets import MOST_SETS, Permitted, permitted_sets
from drayman.placement.victims import RoomSearch, Way, find_way

Fits = Callable[[NodeState], Found | None]
_LOWEST: Final = -(2**31)
_MOST_NODES: Final = 100
"""After victims have been found on this many nodes, no more are looked at, as in Kubernetes."""


class Victims(Struct, frozen=True):
    """Which pods have to leave a node, and what the pod then gets there."""

    node: str
    parties: tuple[Party, ...]
    """Those to evict; empty if those that leave anyway make enough room."""
    violations: int
    """How many of their pods a disruption budget protects."""
    found: Found
    leaving: tuple[Pod, ...] = ()
    """The pods that leave anyway."""
    freed: tuple[ResourceClaim, ...] = ()
    """The claims that give back their devices when all of them are gone."""

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods to evict."""
        return _pods(self.parties)

    @property
    def gangs(self) -> tuple[GangKey, ...]:
        """The gangs among the victims that go as one."""
        return gangs_of(self.parties)

    @property
    def cost(self) -> tuple[int, int, int, int, float, str]:
        """Less is better. Pods that go together are as important as all of them. Of equals, those go that have run for the least time."""
        priorities = [party.priority for party in self.parties for _ in party.members]
        # Offset as in Kubernetes, so that many pods of negative priority do not look cheaper than few.
        total = sum(priority - _LOWEST for priority in priorities)
        highest = max(priorities, default=_LOWEST)
        newest = -earliest_start(self.parties)
        return self.violations, highest, total, len(priorities), newest, self.node


class _Crowd(Struct, frozen=True):
    """The pods on a node without which there may be room."""

    node: NodeState
    leaving: tuple[Party, ...]
    lower: tuple[Party, ...]
    """Those that may be evicted."""

    @property
    def newest(self) -> float:
        """When the last of them started."""
        return max((party.age[0] for party in self.lower), default=0.0)

    @staticmethod
    def of(node: NodeState, present: Sequence[Party], priority: int) -> _Crowd:
        leaving = tuple(p for p in present if p.is_leaving)
        lower = tuple(p for p in present if p.priority < priority and not p.is_leaving)
        return _Crowd(node, leaving, lower)


class Changed(Struct, frozen=True):
    """What was found no longer holds: the cluster has changed during a break. It makes sense to search again."""


CHANGED: Final = Changed()

Violating = Callable[[Sequence[Pod]], Generator[None, None, Collection[str]]]
"""Which of these pods, by uid, break a disruption budget if they go in this order."""
VictimSearch = Generator[None, None, Victims | Changed | None]
"""Yields where a break is due; the state is then as it was."""


class Preemption:
    """Looks for victims. Leaves the state as it found it."""

    def __init__(
        self,
        state: ClusterState,
        parties: Callable[[str], Sequence[Party]],
        violating: Violating,
        is_due: Callable[[], bool] = never,
        permitted: Permitted[Party] | None = None,
    ) -> None:
        """`parties` are those on a node that leave anyway, or could be evicted; `is_due` says whether a break is due.

        `permitted` says which of those that could be may go together; None: all of them.
        """
        self._state = state
        self._parties = parties
        self._violating = violating
        self._is_due = is_due
        self._pauses = Pauses(is_due)
        self._permitted = permitted

    def victims(
        self,
        priority: int,
        nodes: Sequence[NodeState],
        fits: Fits,
        unused: Sequence[ResourceClaim] = (),
    ) -> VictimSearch:
        """The cheapest set of pods without which a pod of this priority fits on one of the nodes.

        `unused` are claims that are about to give back their devices because no pod uses them any more.
        """
        found = yield from self._pauses.noting(self._cheapest(priority, nodes, fits, unused))
        if found is None or not self._pauses.any:
            return found
        return self._once_more(found, priority, fits, unused)

    def _cheapest(
        self,
        priority: int,
        nodes: Sequence[NodeState],
        fits: Fits,
        unused: Sequence[ResourceClaim],
    ) -> Generator[None, None, Victims | None]:
        crowds = []
        for node in sorted(nodes, key=lambda node: node.facts.name):
            crowds.append(_Crowd.of(node, self._parties(node.facts.name), priority))
            yield from self._pauses.if_due()
        for crowd in crowds:
            if crowd.leaving or unused:
                search = RoomSearch[Party](crowd.node, leaving=crowd.leaving)
                at_once = yield from find_way(self._state, search, fits, unused, self._is_due)
                if at_once is not None:
                    return (yield from self._victims(at_once))
                yield from self._pauses.if_due()
        crowds.sort(key=lambda each: -each.newest)
        least = yield from self._least_cost(crowds)
        possible: list[Victims] = []
        for crowd in crowds:
            best = min(possible, key=lambda victims: victims.cost, default=None)
            if best is not None and best.cost[:4] <= least and -best.cost[4] > crowd.newest:
                break
            way: Way[Party, Found] | None = None
            for each in (yield from self._crowds(crowd)):
                asking = yield from self._asking(each)
                way = yield from find_way(self._state, asking, fits, unused, self._is_due)
                yield from self._pauses.if_due()
                if way is not None:
                    break
            if way is None:
                continue
            victims = yield from self._victims(way)
            possible.append(victims)
            # Nodes come by their newest pods, then by name, so no later one is better if it is this pod that goes.
            is_newest = victims.cost[:4] <= least and -victims.cost[4] == crowd.newest
            if is_newest or len(possible) == _MOST_NODES:
                break
        return min(possible, key=lambda victims: victims.cost, default=None)

    def _crowds(self, crowd: _Crowd) -> Generator[None, None, Iterable[_Crowd]]:
        """The pods on a node, with those of them as victims that may go together."""
        if not crowd.lower or self._permitted is None:
            return (crowd,) if crowd.lower else ()
        order = in_order_of_going(crowd.lower, ())
        protected = yield from self._violating(_pods(order))
        order = in_order_of_going(crowd.lower, protected)
        sets = permitted_sets(order, self._permitted)
        return (replace(crowd, lower=chosen) for chosen in islice(sets, MOST_SETS))

    def _once_more(
        self, found: Victims, priority: int, fits: Fits, unused: Sequence[ResourceClaim]
    ) -> Victims | Changed:
        """The same victims in the cluster as it is now, if they still suffice."""
        node = self._state.nodes.get(found.node)
        if node is None:
            return CHANGED
        crowd = _Crowd.of(node, self._parties(found.node), priority)
        uids = {pod.metadata.uid for pod in found.pods}
        victims = tuple(party for party in crowd.lower if not uids.isdisjoint(party.uids))
        if self._permitted is not None:
            sets = permitted_sets(in_order_of_going(victims, ()), self._permitted)
            if all(len(chosen) < len(victims) for chosen in sets):
                return CHANGED
        search = RoomSearch[Party](node, leaving=(*crowd.leaving, *victims))
        way = completed(find_way(self._state, search, fits, unused))
        if way is None:
            return CHANGED
        leaving = _pods(crowd.leaving)
        return Victims(found.node, victims, found.violations, way.found, leaving, way.freed)

    def _least_cost(
        self, crowds: Sequence[_Crowd]
    ) -> Generator[None, None, tuple[int, int, int, int]]:
        """The least that any single victim can cost."""
        pods = [pod for crowd in crowds for pod in _pods(crowd.lower)]
        lowest = min((p.priority for crowd in crowds for p in crowd.lower), default=_LOWEST)
        violations = 1
        for pod in pods:
            if not (yield from self._violating((pod,))):
                violations = 0
                break
            yield from self._pauses.if_due()
        return violations, lowest, lowest - _LOWEST, 1

    def _asking(self, crowd: _Crowd) -> Generator[None, None, RoomSearch[Party]]:
        """Those that a budget protects are restored first, then the most important, then the oldest."""
        lower = in_order_of_return(crowd.lower, ())
        protected = yield from self._violating(_pods(lower))
        lower = in_order_of_return(lower, protected)
        cores = {id(party): id(party.core) for party in lower if party.core is not None}
        return RoomSearch(crowd.node, tuple(lower), crowd.leaving, needed_by=cores)

    def _victims(self, way: Way[Party, Found]) -> Generator[None, None, Victims]:
        # Only the final victims count: budgets are checked for them once more.
        violating = yield from self._violating(_pods(way.victims))
        return Victims(
            way.node.facts.name,
            way.victims,
            len(violating),
            way.found,
            _pods(way.leaving),
            way.freed,
        )


def _pods(parties: Sequence[Party]) -> tuple[Pod, ...]:
    return tuple(pod for party in parties for pod in party.pods)

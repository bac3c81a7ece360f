"""Room for pods that are more important than some running ones: which of those have to go.

For each node: disregard pods that are leaving anyway. If that is not enough, look for victims (`victims`) among the pods of lower priority,
of which the most important are restored first. The node is chosen as Kubernetes chooses it: fewest broken disruption budgets, then the
least important victims, then the fewest. A node on which no pod has to be evicted is the best of all.

Unlike in Kubernetes, devices count: a pod that holds a needed device is a candidate just like one that holds the CPU. Pods that are being
deleted count too: no pod is evicted for room that is about to become free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.api.resource import ResourceClaim
from drayman.placement.nodes import NodeState
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.placement.victims import RoomSearch, Way, ways

Fits = Callable[[NodeState], Found | None]
_LOWEST: Final = -(2**31)
_MOST_NODES: Final = 100
"""After victims have been found on this many nodes, no more are looked at, as in Kubernetes."""


class Occupant(Struct, frozen=True):
    """A pod on a node, with the claims that it uses."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    is_leaving: bool = False
    """Whether it is about to go regardless of preemption."""

    @property
    def priority(self) -> int:
        return priority_of(self.pod)

    def leave(self, trial: Trial) -> None:
        trial.evict(self.pod.metadata.uid, self.claims)

    def come_back(self, trial: Trial) -> None:
        trial.restore(self.pod.metadata.uid)


class Victims(Struct, frozen=True):
    """Which pods have to leave a node, and what the pod then gets there."""

    node: str
    pods: tuple[Pod, ...]
    """The pods to evict; empty if those that leave anyway make enough room."""
    violations: int
    """How many of them a disruption budget protects."""
    found: Found
    leaving: tuple[Pod, ...] = ()
    """The pods that leave anyway."""
    freed: tuple[ResourceClaim, ...] = ()
    """The claims that give back their devices when all of them are gone."""

    @property
    def cost(self) -> tuple[int, int, int, int, str]:
        """Less is better."""
        priorities = [priority_of(pod) for pod in self.pods]
        # Offset as in Kubernetes, so that many pods of negative priority do not look cheaper than few.
        total = sum(priority - _LOWEST for priority in priorities)
        highest = max(priorities, default=_LOWEST)
        return self.violations, highest, total, len(priorities), self.node


class _Crowd(Struct, frozen=True):
    """The pods on a node without which there may be room."""

    node: NodeState
    leaving: tuple[Occupant, ...]
    lower: tuple[Occupant, ...]
    """The pods that may be evicted."""

    @staticmethod
    def of(node: NodeState, present: Sequence[Occupant], priority: int) -> _Crowd:
        leaving = tuple(o for o in present if o.is_leaving)
        lower = tuple(o for o in present if o.priority < priority and not o.is_leaving)
        return _Crowd(node, leaving, lower)


class Preemption:
    """Looks for victims. Leaves the state as it found it."""

    def __init__(
        self,
        state: ClusterState,
        occupants: Callable[[str], Sequence[Occupant]],
        violating: Callable[[Sequence[Pod]], Collection[str]],
    ) -> None:
        """`violating` returns which of these pods, by uid, break a disruption budget if they go in this order."""
        self._state = state
        self._occupants = occupants
        self._violating = violating

    def victims(
        self,
        priority: int,
        nodes: Sequence[NodeState],
        fits: Fits,
        unused: Sequence[ResourceClaim] = (),
    ) -> Victims | None:
        """The cheapest set of pods without which a pod of this priority fits on one of the nodes.

        `unused` are claims that are about to give back their devices because no pod uses them any more.
        """
        crowds = [
            _Crowd.of(node, self._occupants(node.facts.name), priority)
            for node in sorted(nodes, key=lambda node: node.facts.name)
        ]
        unasked = (
            RoomSearch[Occupant](crowd.node, leaving=crowd.leaving)
            for crowd in crowds
            if crowd.leaving or unused
        )
        for way in ways(self._state, unasked, fits, unused):
            return self._victims(way)
        least = self._least_cost(crowds)
        possible: list[Victims] = []
        for way in ways(self._state, self._asking(crowds), fits, unused):
            victims = self._victims(way)
            possible.append(victims)
            # Nodes are in the order of their names, so no later one can be better than the first with the least cost.
            if victims.cost[:-1] <= least or len(possible) == _MOST_NODES:
                break
        return min(possible, key=lambda victims: victims.cost, default=None)

    def _least_cost(self, crowds: Sequence[_Crowd]) -> tuple[int, int, int, int]:
        """The least that any single victim can cost."""
        pods = [occupant.pod for crowd in crowds for occupant in crowd.lower]
        lowest = min((priority_of(pod) for pod in pods), default=_LOWEST)
        violations = 0 if any(not self._violating((pod,)) for pod in pods) else 1
        return violations, lowest, lowest - _LOWEST, 1

    def _asking(self, crowds: Sequence[_Crowd]) -> Iterator[RoomSearch[Occupant]]:
        """Protected pods are restored first, then the most important, then the oldest."""
        for crowd in crowds:
            if crowd.lower:
                lower = sorted(
                    crowd.lower, key=lambda o: (-o.priority, o.pod.status.start_time or "")
                )
                protected = self._violating([o.pod for o in lower])
                lower.sort(key=lambda o: o.pod.metadata.uid not in protected)
                yield RoomSearch(crowd.node, tuple(lower), crowd.leaving)

    def _victims(self, way: Way[Occupant, Found]) -> Victims:
        # Only the final victims count: budgets are checked for them once more.
        pods = tuple(o.pod for o in way.victims)
        return Victims(
            way.node.facts.name,
            pods,
            len(self._violating(pods)),
            way.found,
            tuple(o.pod for o in way.leaving),
            way.freed,
        )

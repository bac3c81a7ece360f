"""Room for pods that are more important than some that run: which of those have to go.

For each node: think away who is leaving anyway. If that is not enough, look for victims (`victims`) among the pods of lower priority, of
whom the most important ones are given back first. The node is chosen as Kubernetes chooses it: fewest broken disruption budgets, then the
least important victims, then the fewest. A node on which nobody has to be asked is the best of all.

Unlike in Kubernetes, devices count: a pod that holds the device that is needed is a candidate like one that holds the CPU. And so does
what is on its way out: nobody is asked to go for room that is about to be there.
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
"""Nodes on which victims have been found, after which no more are looked at, as in Kubernetes."""


class Occupant(Struct, frozen=True):
    """A pod on a node, with the claims that it uses."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    is_leaving: bool = False
    """Whether it is about to go, whoever needs its room."""

    @property
    def priority(self) -> int:
        return priority_of(self.pod)

    def leave(self, trial: Trial) -> None:
        trial.evict(self.pod.metadata.uid, self.claims)

    def come_back(self, trial: Trial) -> None:
        trial.restore(self.pod.metadata.uid)


class Victims(Struct, frozen=True):
    """Who has to leave a node, and what the pod gets there then."""

    node: str
    pods: tuple[Pod, ...]
    """Those who are to be asked; nobody, where those who leave anyway make enough room."""
    violations: int
    """How many of them a disruption budget protects."""
    found: Found
    leaving: tuple[Pod, ...] = ()
    """Those who go without being asked."""
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
    """Those on a node without whom there may be room."""

    node: NodeState
    leaving: tuple[Occupant, ...]
    lower: tuple[Occupant, ...]
    """Those who may be asked to go."""

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
        """`violating` tells which of these pods, by uid, break a disruption budget if they go in this order."""
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

        `unused` are claims that are about to give back their devices, since no pod that uses them is left.
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
            # With nodes in the order of their names, none that follows can be better than the first that costs so little.
            if victims.cost[:-1] <= least or len(possible) == _MOST_NODES:
                break
        return min(possible, key=lambda victims: victims.cost, default=None)

    def _least_cost(self, crowds: Sequence[_Crowd]) -> tuple[int, int, int, int]:
        """What one victim costs at least, whoever it is."""
        pods = [occupant.pod for crowd in crowds for occupant in crowd.lower]
        lowest = min((priority_of(pod) for pod in pods), default=_LOWEST)
        violations = 0 if any(not self._violating((pod,)) for pod in pods) else 1
        return violations, lowest, lowest - _LOWEST, 1

    def _asking(self, crowds: Sequence[_Crowd]) -> Iterator[RoomSearch[Occupant]]:
        """Protected pods are given back first, then the most important."""
        for crowd in crowds:
            if crowd.lower:
                lower = sorted(crowd.lower, key=lambda o: (-o.priority, _age(o.pod)))
                protected = self._violating([o.pod for o in lower])
                lower.sort(key=lambda o: o.pod.metadata.uid not in protected)
                yield RoomSearch(crowd.node, tuple(lower), crowd.leaving)

    def _victims(self, way: Way[Occupant, Found]) -> Victims:
        # Those alone whom nobody could spare count: budgets are asked about them once more.
        pods = tuple(o.pod for o in way.victims)
        return Victims(
            way.node.facts.name,
            pods,
            len(self._violating(pods)),
            way.found,
            tuple(o.pod for o in way.leaving),
            way.freed,
        )


def _age(pod: Pod) -> str:
    """Older pods are given back first."""
    return pod.status.start_time or ""

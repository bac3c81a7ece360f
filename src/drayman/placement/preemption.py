"""Room for pods that are more important than some that run: which of those have to go.

For each node: take away every pod of lower priority, with its devices; if the pod fits then, give them back one by one, the most important
first, as long as it still fits. Who could not be given back has to go. The node is chosen as Kubernetes chooses it: fewest broken
disruption budgets, then the least important victims, then the fewest.

Unlike in Kubernetes, devices count: a pod that holds the device that is needed is a candidate like one that holds the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.inventory.ledger import Holding, holder_of
from drayman.placement.fit import PodNeeds
from drayman.placement.state import ClusterState, NodeState


class Occupant(Struct, frozen=True):
    """A pod on a node, with the claims that nobody else uses."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0


class Victims(Struct, frozen=True):
    """Who has to leave a node."""

    node: str
    pods: tuple[Pod, ...]
    violations: int
    """How many of them a disruption budget protects."""

    @property
    def cost(self) -> tuple[int, int, int, int, str]:
        """Less is better."""
        priorities = [pod.spec.priority or 0 for pod in self.pods]
        # Offset as in Kubernetes, so that many pods of negative priority do not look cheaper than few.
        total = sum(priority + 2**31 for priority in priorities)
        return self.violations, max(priorities), total, len(priorities), self.node


class Preemption:
    """Looks for victims. Leaves the state as it found it."""

    def __init__(
        self,
        state: ClusterState,
        occupants: Callable[[str], Sequence[Occupant]],
        is_protected: Callable[[Pod], bool],
    ) -> None:
        self._state = state
        self._occupants = occupants
        self._is_protected = is_protected

    def victims(
        self, priority: int, nodes: Sequence[NodeState], fits: Callable[[NodeState], bool]
    ) -> Victims | None:
        """The cheapest set of pods without which a pod of this priority fits on one of the nodes."""
        found = [self._on(node, priority, fits) for node in nodes]
        possible = [victims for victims in found if victims is not None]
        return min(possible, key=lambda victims: victims.cost, default=None)

    def _on(
        self, node: NodeState, priority: int, fits: Callable[[NodeState], bool]
    ) -> Victims | None:
        lower = [o for o in self._occupants(node.facts.name) if o.priority < priority]
        if not lower:
            return None
        # Protected ones are given back first, then the most important.
        lower.sort(key=lambda o: (not self._is_protected(o.pod), -o.priority, _age(o.pod)))
        with self._without(node, lower) as gone:
            if not fits(node):
                return None
            victims: list[Occupant] = []
            for occupant in lower:
                gone.give_back(occupant)
                if not fits(node):
                    gone.take_away(occupant)
                    victims.append(occupant)
        if not victims:
            return None
        violations = sum(self._is_protected(o.pod) for o in victims)
        return Victims(node.facts.name, tuple(o.pod for o in victims), violations)

    @contextmanager
    def _without(self, node: NodeState, occupants: Sequence[Occupant]) -> Iterator[_Absence]:
        absence = _Absence(self._state, node)
        try:
            for occupant in occupants:
                absence.take_away(occupant)
            yield absence
        finally:
            absence.restore()


class _Absence:
    """Pods that are thought away from a node. Only the sums and the ledger change, and only until `restore`."""

    def __init__(self, state: ClusterState, node: NodeState) -> None:
        self._state = state
        self._node = node
        self._needs: dict[str, PodNeeds] = {}
        self._held: dict[str, tuple[Holding, ...]] = {}
        self._holders: dict[str, tuple[str, ...]] = {}

    def take_away(self, occupant: Occupant) -> None:
        uid = occupant.pod.metadata.uid
        self._needs[uid] = self._node.usage.remove(uid)
        holders = []
        for claim in occupant.claims:
            holder = holder_of(claim)
            held = self._state.ledger.holdings(holder)
            if held:
                self._state.ledger.forget(holder)
                self._held[holder] = held
                holders.append(holder)
        self._holders[uid] = tuple(holders)

    def give_back(self, occupant: Occupant) -> None:
        self._return(occupant.pod.metadata.uid)

    def restore(self) -> None:
        for uid in tuple(self._needs):
            self._return(uid)

    def _return(self, uid: str) -> None:
        self._node.usage.add(self._needs.pop(uid))
        for holder in self._holders.pop(uid):
            self._state.ledger.observe(holder, self._held.pop(holder))


def _age(pod: Pod) -> str:
    """Older pods are given back first."""
    return pod.status.start_time or ""

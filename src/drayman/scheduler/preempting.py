"""Whether other pods have to go for a pod that was refused, and which. Decides and promises; `evicting` carries it out.

A pod that has preempted others waits for them to go, and for the claims that they leave behind. Until all of them are gone it preempts no
others, whatever wakes it; if it still does not fit then, it looks for other room.
"""

from __future__ import annotations

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.placement.demand import Demand
from drayman.placement.fit import Verdict
from drayman.placement.nodes import NodeState
from drayman.placement.nominations import Nomination, Nominations
from drayman.placement.placing import NotFound, Placer
from drayman.placement.preemption import Preemption, Victims
from drayman.placement.refusing import DevicesVerdict
from drayman.placement.state import ClusterState
from drayman.scheduler.occupants import Occupants
from drayman.scheduler.protection import Budgets


class Preempted(Struct, frozen=True):
    """What was decided for a pod that was refused."""

    pod: Pod
    nomination: Nomination | None
    """What is promised to it; None if a promise was taken back and there is no other room."""
    victims: tuple[Pod, ...] = ()
    """The pods to evict."""


class Preemptor:
    """Decides about preemption. Pure except for the promises it makes."""

    def __init__(
        self,
        state: ClusterState,
        placer: Placer,
        nominations: Nominations,
        occupants: Occupants,
        budgets: Budgets,
    ) -> None:
        self._state = state
        self._placer = placer
        self._nominations = nominations
        self._occupants = occupants
        self._budgets = budgets

    def decide(self, demand: Demand, not_found: NotFound, now: float) -> Preempted | None:
        """What to do so that a refused pod finds room; None if no pod may be evicted, or earlier victims have yet to go."""
        pod = demand.pod
        former = self._nominations.get(pod.metadata.uid)
        if former is not None:
            if self._occupants.are_awaited(former, now):
                return None
            self._nominations.withdraw(former.uid)
        victims = self._victims(demand, not_found, now)
        if victims is not None:
            nomination = self._nominations.promise(pod, demand.needs, victims)
            return Preempted(pod, nomination, victims.pods)
        return None if former is None else Preempted(pod, None)

    def may_preempt(self, pod: Pod) -> bool:
        """Whether any pod might be evicted for a pod. Nearly always not, so this looks at no pods."""
        if (pod.spec.preemption_policy or "PreemptLowerPriority") == "Never":
            return False
        return not self._occupants.are_all_as_important(priority_of(pod))

    def overdue_at(self, uid: str, now: float) -> float | None:
        """When a pod that waits for others to go is to look for other room, even if nothing happens."""
        nomination = self._nominations.get(uid)
        return None if nomination is None else self._occupants.overdue_at(nomination, now)

    def _victims(self, demand: Demand, not_found: NotFound, now: float) -> Victims | None:
        pod = demand.pod
        if not self.may_preempt(pod):
            return None
        priority = priority_of(pod)
        unused = self._occupants.unused_claims()
        candidates = self._candidates(not_found, priority, now, is_any_unused=bool(unused))
        if not candidates:
            return None
        preemption = Preemption(
            self._state, lambda node: self._occupants.on(node, now), self._budgets.violated_by
        )
        with self._nominations.as_seen_by(pod):
            return preemption.victims(
                priority, candidates, lambda node: self._placer.found_on(demand, node), unused
            )

    def _candidates(
        self, not_found: NotFound, priority: int, now: float, *, is_any_unused: bool
    ) -> list[NodeState]:
        """Nodes that might accept the pod if less important pods went, or once something is freed that is about to be."""
        found = []
        for name, verdict in not_found.verdicts.items():
            node = self._state.nodes.get(name)
            if node is None or not verdict.resolvable:
                continue
            if is_any_unused or self._could_help(name, verdict, priority, now):
                found.append(node)
        return found

    def _could_help(self, node: str, verdict: Verdict, priority: int, now: float) -> bool:
        """Whether it is worth trying a node without the pods that may go: doing so for thousands of nodes takes seconds."""
        if isinstance(verdict, DevicesVerdict):
            evictable = self._occupants.evictable_devices(node, priority, now)
            return evictable >= verdict.least_missing
        return self._occupants.has_evictable(node, priority, now)

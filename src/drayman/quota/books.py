"""Queues, cohorts and flavors as they are now, with the trees they form, the ledger of what is used, and who has to be tried again.

A workload that comes or goes touches one path of one tree. A queue or cohort that changes has the trees built anew, when they are next
needed. Whatever may help others notes the queue it is about (`wake`); before a cycle, all that wait in the trees of these queues are made
ready again, once, however many things have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.api.kueue import ClusterQueueSpec, CohortSpec, ResourceFlavorSpec
from drayman.api.kueue_workload import Admission
from drayman.quota.checks import Checks
from drayman.quota.cluster_queues import DRAIN, HOLD, ClusterQueueState
from drayman.quota.entries import Entry, Holding
from drayman.quota.reasons import FLAVOR_NOT_FOUND, STOPPED, TERMINATING, TOPOLOGY_NOT_FOUND
from drayman.quota.tree.building import Forest, forest_of
from drayman.quota.tree.ledger import Ledger, Usage

STOPPING = (HOLD, DRAIN)


class Books:
    """What quota there is and who uses it."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.checks: Checks | None = None
        """The admission checks of the cluster; None if they are not known: then all are taken to be there, and pods to run here."""
        self.queues: dict[str, ClusterQueueState] = {}
        self.flavors: dict[str, ResourceFlavorSpec] = {}
        self._cohorts: dict[str, CohortSpec] = {}
        self._forest: Forest | None = None
        self.revision = 0
        """Grows when what there is to be given changes: queues, cohorts or flavors."""
        self._to_wake: set[str] = set()
        self._ready: dict[str, None] = {}

    @property
    def forest(self) -> Forest:
        """The trees as they are now."""
        return self._forest or self.rebuild()

    def rebuild(self) -> Forest:
        """Build the trees if something about them has changed, and charge what is held; otherwise they stay as they are."""
        if self._forest is None:
            specs = {name: queue.spec for name, queue in self.queues.items()}
            self._forest = forest_of(specs, self._cohorts)
            for name, queue in self.queues.items():
                queue.node = self._forest.queues.get(name)
                queue.changes += 1
                self._charge_all(queue)
        return self._forest

    def _charge_all(self, queue: ClusterQueueState) -> None:
        if queue.node is None:
            return
        for entry in queue.holders.values():
            if entry.holding is not None:
                self.ledger.add(queue.node, entry.holding.usage)

    def set_flavor(self, name: str, spec: ResourceFlavorSpec | None) -> None:
        """A flavor as it is now; None if it is gone."""
        if self.flavors.get(name) == spec:
            return
        self.revision += 1
        if spec is None:
            self.flavors.pop(name, None)
        else:
            self.flavors[name] = spec
        topologies = self.ledger.topologies
        if spec is None:
            topologies.remove_flavor(name)
        else:
            topologies.set_flavor(name, spec)
        self._after_flavor(name)

    def after_topology(self, topology: str) -> None:
        """A topology has come, gone or changed."""
        for name, spec in self.flavors.items():
            if spec.topology_name == topology:
                self._after_flavor(name)

    def after_nodes(self) -> None:
        """Nodes have changed, or what others than workloads use of them: there may be places where there were none."""
        placed = {name for name, spec in self.flavors.items() if spec.topology_name is not None}
        if not placed:
            return
        for queue in self.queues.values():
            if not placed.isdisjoint(queue.flavors):
                self.wake(queue.name)

    def _after_flavor(self, name: str) -> None:
        for queue in self.queues.values():
            if name in queue.flavors:
                self.judge(queue)
                self.wake(queue.name)

    def set_cohort(self, name: str, spec: CohortSpec | None) -> None:
        """A cohort as it is now; None if its object is gone."""
        if self._cohorts.get(name) == spec:
            return
        self._wake_cohort(name)
        self._change_trees()
        if spec is None:
            self._cohorts.pop(name, None)
        else:
            self._cohorts[name] = spec
        self._wake_cohort(name)
        self._to_wake.update(self.forest.in_circles)

    def set_queue(
        self, name: str, spec: ClusterQueueSpec, *, leaving: bool = False
    ) -> ClusterQueueState:
        """A cluster queue as it is now; `leaving`: it is being deleted. Raises SelectorError."""
        queue = self.queues.get(name)
        if queue is None:
            queue = ClusterQueueState(name, spec)
            self._change_trees()
            self.queues[name] = queue
        elif queue.spec != spec:
            self.wake(name)
            self._change_trees()
            if queue.spec.namespace_selector != spec.namespace_selector:
                queue.waiting.wake_strangers()
            queue.set_spec(spec)
        elif queue.leaving == leaving:
            return queue
        queue.leaving = leaving
        self.judge(queue)
        self.wake(name)
        return queue

    def remove_queue(self, name: str) -> None:
        if name in self.queues:
            self._change_trees()
            del self.queues[name]
            self._ready.pop(name, None)

    def judge(self, queue: ClusterQueueState) -> None:
        """Determine whether a queue can give quota, and whether its pods run in this cluster."""
        queue.sends_elsewhere = self.checks is not None and self.checks.sends_elsewhere(queue)
        if queue.leaving:
            queue.inactive = TERMINATING
        elif queue.spec.stop_policy in STOPPING:
            queue.inactive = STOPPED
        elif any(name not in self.flavors for name in queue.flavors):
            queue.inactive = FLAVOR_NOT_FOUND
        elif any(map(self.ledger.topologies.is_missing, queue.flavors)):
            queue.inactive = TOPOLOGY_NOT_FOUND
        else:
            queue.inactive = "" if self.checks is None else self.checks.problem(queue)

    def after_checks(self) -> None:
        """Checks have come or gone, or have become active or inactive."""
        for queue in self.queues.values():
            if queue.spec.admission_checks_strategy is not None:
                was = queue.inactive
                self.judge(queue)
                if was and not queue.inactive:
                    self.wake(queue.name)
                    self.is_ready(queue.name)

    def runs_elsewhere(self, admission: Admission) -> bool:
        """Whether pods with an admission run in another cluster, so that they need no room here."""
        required = self.required_checks(admission) or ()
        return self.checks is not None and self.checks.send_elsewhere(required)

    def required_checks(self, admission: Admission) -> list[str] | None:
        """The checks that a queue has for the flavors that were assigned; None if the queue is not known."""
        queue = self.queues.get(admission.cluster_queue)
        if queue is None:
            return None
        return queue.checks_for(
            {f for each in admission.pod_set_assignments for f in each.flavors.values()}
        )

    def is_active(self, queue: ClusterQueueState) -> bool:
        """Whether a queue can give quota: nothing is wrong with it, and its cohorts form no circle."""
        return not queue.inactive and queue.name not in self.forest.in_circles

    def take(self, entry: Entry, holding: Holding) -> None:
        """A workload has quota from now on."""
        entry.holding = holding
        queue = self.queues.get(holding.cluster_queue)
        if queue is None:
            return
        queue.holders[entry.key] = entry
        queue.changes += 1
        if self._forest is not None and queue.node is not None:
            self.ledger.add(queue.node, holding.usage)

    def release(self, entry: Entry) -> None:
        """A workload has no quota any more."""
        holding, entry.holding = entry.holding, None
        if holding is None:
            return
        queue = self.queues.get(holding.cluster_queue)
        if queue is None or queue.holders.pop(entry.key, None) is None:
            return
        queue.changes += 1
        if self._forest is not None and queue.node is not None:
            self.ledger.remove(queue.node, holding.usage)
        self.wake(queue.name)

    def recharge(self, entry: Entry, holding: Holding) -> None:
        """What a workload holds is charged otherwise from now on."""
        had, entry.holding = entry.holding, holding
        queue = self.queues.get(holding.cluster_queue)
        if had is None or queue is None or entry.key not in queue.holders:
            return
        before, after = had.usage.quota, holding.usage.quota
        if before == after:
            return
        if self._forest is not None and queue.node is not None:
            self.ledger.remove(queue.node, Usage(before))
            self.ledger.add(queue.node, Usage(after))
        if any(after.get(what, 0) < amount for what, amount in before.items()):
            self.wake(queue.name)

    # Who is tried next.

    def wake(self, name: str) -> None:
        """Something may have become possible in the tree of a queue."""
        if name in self.queues:
            self._to_wake.add(name)

    def try_again(self, entry: Entry) -> None:
        """Have a workload be tried again, whatever came of it, if it waits and its time has come."""
        queue = self.queues.get(entry.waits_in)
        if queue is not None:
            queue.waiting.try_again(entry)
            self._ready[queue.name] = None

    def wake_everybody(self) -> None:
        self._to_wake.update(self.queues)

    def wake_roomless(self) -> None:
        """There may be room for pods where there was none."""
        for queue in self.queues.values():
            if queue.waiting.wake_roomless():
                self._ready[queue.name] = None

    def is_ready(self, name: str) -> None:
        """Somebody new waits in a queue."""
        self._ready[name] = None

    def after_namespace(self, members: Iterable[Entry]) -> None:
        """The namespace of these workloads has other labels: queues may serve it by now, or no longer."""
        for entry in members:
            queue = self.queues.get(entry.waits_in)
            if queue is None:
                continue
            self.wake(queue.name)
            if queue.waiting.is_apart(entry.key):
                self.try_again(entry)

    def heads(self, now: float) -> list[tuple[ClusterQueueState, Entry]]:
        """The head of each active queue that has one."""
        self._wake_all()
        found = []
        for name in tuple(self._ready):
            queue = self.queues[name]
            if queue.inactive:
                continue
            queue.waiting.wake_due(now)
            head = queue.waiting.head()
            if head is None:
                del self._ready[name]
            else:
                found.append((queue, head))
        return found

    def _wake_all(self) -> None:
        """Make all ready that wait in the trees in which something has changed."""
        forest = self.forest
        names = self._trees_of(forest)
        self._to_wake.clear()
        for name in names:
            queue = self.queues.get(name)
            if queue is not None and len(queue.waiting):
                queue.waiting.wake()
                self._ready[name] = None

    def _trees_of(self, forest: Forest) -> Mapping[str, None]:
        """The queues of all trees in which something has changed."""
        names: dict[str, None] = {}
        for name in sorted(self._to_wake):
            if name in names:
                continue
            place = forest.queues.get(name)
            below = [name] if place is None else [each.name for each in place.root.queues()]
            names.update(dict.fromkeys(below))
        return names

    def _wake_cohort(self, name: str) -> None:
        node = self.forest.cohorts.get(name)
        if node is not None:
            self._to_wake.update(each.name for each in node.root.queues())

    def _change_trees(self) -> None:
        """The trees are about to change: who has to be woken in the old ones is noted first."""
        if self._to_wake and self._forest is not None:
            self._to_wake.update(self._trees_of(self._forest))
        self._forest = None
        self.revision += 1

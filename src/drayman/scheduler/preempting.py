"""Whether other pods have to go for a pod that was refused, and which. Decides and promises; `evicting` carries it out.

A pod that has preempted others waits for them to go, and for the claims that they leave behind. Until all of them are gone it preempts no
others, whatever wakes it; if it still does not fit then, it looks for other room.

Looking for victims may take long: for each pod on each node, the question is whether the node would take the pod without the others. So it
is done in parts (`making_room`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.inventory.allowance import PART, UnfinishedError
from drayman.placement.demand import Demand
from drayman.placement.fit import Verdict
from drayman.placement.gangs.gang import GangKey
from drayman.placement.nodes import NodeState
from drayman.placement.nominations import Nomination, Nominations
from drayman.placement.parties import Party
from drayman.placement.pauses import never
from drayman.placement.placing import Found, NotFound, Placer
from drayman.placement.preemption import Changed, Preemption, VictimSearch
from drayman.placement.refusing import DevicesVerdict
from drayman.placement.reservations.reservation import Reservation, count_in
from drayman.placement.state import ClusterState
from drayman.quota.shares.reach import ABOVE, Reach, Reaching
from drayman.scheduler.occupants import Occupants
from drayman.scheduler.protection import Budgets

T = TypeVar("T")


class Preempted(Struct, frozen=True):
    """What was decided for a pod, or a gang, that was refused."""

    pods: tuple[Pod, ...]
    """Those to which something is promised, or from which a promise was taken back."""
    nominations: tuple[Nomination, ...] = ()
    """What is promised to them; nothing if a promise was taken back and there is no other room."""
    victims: tuple[Pod, ...] = ()
    """The pods to evict."""
    gangs: tuple[GangKey, ...] = ()
    """The gangs among them that go as one."""
    again: bool = False
    """Whether the cluster has changed since victims were found, so that it makes sense to look again."""
    retry_at: float | None = None
    """When it makes sense to look again though nothing happens: pods that are left alone at the moment no longer are."""
    reach: Reach | None = None
    """By which right the victims go, if it is one of queues."""


Reserved = Callable[[], Sequence[Reservation]]
"""What is reserved for others that come first. No pod is evicted for room that the preemptor may not have."""
Deciding = Generator[None, None, Preempted | None]
"""Yields where a break is due. Nothing is promised before the end."""


def as_seen_by(
    nominations: Nominations, pod: Pod, search: Generator[None, None, T]
) -> Generator[None, None, T]:
    """A search for which only the promises to others that are not less important count. In its breaks all of them do."""
    while True:
        with nominations.as_seen_by(pod):
            try:
                next(search)
            except StopIteration as end:
                found: T = end.value
                return found
        yield


def importance_beside(pod: Pod, victims: Iterable[Pod], own: int | None = None) -> int:
    """How important room is that queues give to a pod: as it is itself, but those who had it do not take it back."""
    own = priority_of(pod) if own is None else own
    return max((own, *map(priority_of, victims)))


class Preemptor:
    """Decides about preemption for single pods. Pure except for the promises it makes."""

    def __init__(
        self,
        state: ClusterState,
        placer: Placer,
        nominations: Nominations,
        occupants: Occupants,
        budgets: Budgets,
        reaching: Reaching,
    ) -> None:
        self._state = state
        self._placer = placer
        self._nominations = nominations
        self._occupants = occupants
        self._budgets = budgets
        self._reaching = reaching

    def decide(
        self,
        demand: Demand,
        not_found: NotFound | None,
        now: float,
        is_due: Callable[[], bool] = never,
        reserved: Reserved = lambda: (),
    ) -> Deciding:
        """What to do so that a refused pod finds room; None if no pod may be evicted, or earlier victims have yet to go.

        `not_found` is what nodes said, if they were asked: not if its queue keeps the pod out.
        """
        pod = demand.pod
        former = self._nominations.get(pod.metadata.uid)
        if former is not None:
            if former.is_asked_for:
                return None
            if self._occupants.are_awaited(former, now):
                return None
            self._nominations.withdraw(former.uid)
        if not self.may_preempt(pod):
            return None if former is None else Preempted((pod,))
        retry_at: float | None = None
        reaches: Sequence[Reach | None] = (None,)
        if self._reaching.concerns(pod.metadata.uid):
            reaches, retry_at = self._reaching.of(pod.metadata.uid, now)
        else:
            retry_at = self._occupants.next_in_reach(priority_of(pod), now)
        for reach in reaches:
            search = self._search(demand, not_found, now, is_due, reserved(), reach)
            victims = yield from as_seen_by(self._nominations, pod, search)
            if isinstance(victims, Changed):
                return Preempted((pod,), again=True)
            if victims is not None:
                importance = None if reach is None else importance_beside(pod, victims.pods)
                nomination = self._nominations.promise(pod, demand.needs, victims, importance)
                return Preempted((pod,), (nomination,), victims.pods, victims.gangs, reach=reach)
        if former is None and retry_at is None:
            return None
        return Preempted(() if former is None else (pod,), retry_at=retry_at)

    def may_preempt(self, pod: Pod) -> bool:
        """Whether any pod might be evicted for a pod. Nearly always not, so this looks at no pods."""
        if (pod.spec.preemption_policy or "PreemptLowerPriority") == "Never":
            return False
        if self._reaching.concerns(pod.metadata.uid):
            return True
        return not self._occupants.are_all_as_important(priority_of(pod))

    def _search(
        self,
        demand: Demand,
        not_found: NotFound | None,
        now: float,
        is_due: Callable[[], bool],
        reserved: Sequence[Reservation],
        reach: Reach | None = None,
    ) -> VictimSearch:
        priority = priority_of(demand.pod) if reach is None else ABOVE

        def parties(node: str) -> Sequence[Party]:
            there = self._occupants.on(node, now)
            return there if reach is None else reach.graded(there)

        unused = self._occupants.unused_claims()
        candidates: list[NodeState] = []
        verdicts = {} if not_found is None else not_found.verdicts
        for name in self._state.nodes if not_found is None else verdicts:
            node, verdict = self._state.nodes.get(name), verdicts.get(name)
            if node is None or (verdict is not None and not verdict.resolvable):
                continue
            if verdict is None or reach is not None:
                could_help = bool(parties(name))
            else:
                could_help = self._could_help(name, verdict, priority, now)
            if unused or could_help:
                candidates.append(node)
            if is_due():
                yield
        preemption = Preemption(
            self._state,
            parties,
            self._budgets.asked(is_due).violated_by,
            is_due,
            None if reach is None else reach.permitted,
        )
        return (
            yield from preemption.victims(
                priority, candidates, lambda node: self._fit(demand, node, reserved), unused
            )
        )

    def _fit(
        self, demand: Demand, node: NodeState, reserved: Sequence[Reservation]
    ) -> Found | None:
        """What the pod would get on a node. A search that takes too long counts as one that gave up."""
        if self._state.queues.withheld((demand.needs.uid,)) is not None:
            return None
        try:
            with self._state.allowance.limited(PART):
                if not reserved:
                    return self._placer.found_on(demand, node)
                with self._state.trial():
                    count_in(self._state, reserved)
                    return self._placer.found_on(demand, node)
        except UnfinishedError:
            return None

    def _could_help(self, node: str, verdict: Verdict, priority: int, now: float) -> bool:
        """Whether it is worth trying a node without the pods that may go: doing so for thousands of nodes takes seconds."""
        if isinstance(verdict, DevicesVerdict):
            evictable = self._occupants.evictable_devices(node, priority, now)
            return evictable >= verdict.least_missing
        return self._occupants.has_evictable(node, priority, now)

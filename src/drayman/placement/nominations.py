"""Room that is kept for pods that have preempted others.

A pod that preempts others gets its room only when they are gone, which may take a while. Until then the room is promised to it: what it
needs of the node counts as used, and the devices that it will get count as held, even if others still have them. More important pods may
take the room anyway; for them, and for the pod itself, the promise does not count during the search for a node.

What is promised to the members of a gang is promised to the gang: it is out of nobody's reach within the gang, and is taken back as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.placement.fit import PodNeeds
from drayman.placement.gangs.gang import GangKey
from drayman.placement.placing import Found
from drayman.placement.preemption import Victims
from drayman.placement.state import ClusterState


class Nomination(Struct, frozen=True, eq=False):
    """What is promised to a pod, and what has to happen first."""

    pod: Pod
    node: str
    needs: PodNeeds
    devices: tuple[AllocationResult, ...]
    departing: tuple[Pod, ...] = ()
    """The pods whose room it is."""
    freed: tuple[ResourceClaim, ...] = ()
    """The claims whose devices it will get, possibly among others."""
    gang: GangKey | None = None
    """The gang to which it is promised."""
    is_asked_for: bool = False
    """Whether somebody else makes the room, and says how long it is to be kept (`kept_room`)."""
    importance: int | None = None
    """That of the gang, or what counts in its place; None: that of the pod."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def priority(self) -> int:
        return priority_of(self.pod) if self.importance is None else self.importance


class Nominations:
    """The promises in a cluster state."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_uid: dict[str, Nomination] = {}
        self._of_gangs: dict[GangKey, dict[str, None]] = {}  # uids of members
        self._departing: set[str] | None = None  # uids of pods that others wait for, once asked for
        self._freed: dict[str, list[Nomination]] | None = None  # by uid of the claim
        self._aside: set[str] = set()  # promises that do not count at the moment
        # What was promised before to pods whose node is not yet written.
        self._fulfilled: dict[str, Nomination] = {}

    def __bool__(self) -> bool:
        return bool(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def __iter__(self) -> Iterator[Nomination]:
        return iter(self._by_uid.values())

    def get(self, uid: str) -> Nomination | None:
        return self._by_uid.get(uid)

    def promise(
        self, pod: Pod, needs: PodNeeds, victims: Victims, importance: int | None = None
    ) -> Nomination:
        """Keep for a pod what it gets when others are gone, in place of what was kept for it before."""
        self.withdraw(pod.metadata.uid)
        nomination = replace(
            self._nomination(pod, needs, victims.found),
            departing=(*victims.leaving, *victims.pods),
            freed=victims.freed,
            importance=importance,
        )
        self._keep(nomination)
        return nomination

    def promise_gang(
        self,
        gang: GangKey,
        importance: int,
        seats: Sequence[tuple[PodNeeds, Pod, Found]],
        departing: tuple[Pod, ...],
        freed: tuple[ResourceClaim, ...],
    ) -> tuple[Nomination, ...]:
        """Keep for members of a gang what they get when others are gone, in place of what was kept for it before."""
        self.withdraw_gang(gang)
        made = []
        for needs, pod, found in seats:
            self.withdraw(pod.metadata.uid)
            nomination = replace(
                self._nomination(pod, needs, found),
                departing=departing,
                freed=freed,
                gang=gang,
                importance=importance,
            )
            self._keep(nomination)
            made.append(nomination)
        return tuple(made)

    def _nomination(self, pod: Pod, needs: PodNeeds, found: Found) -> Nomination:
        devices = () if found.plan is None else tuple(item.allocation for item in found.plan.claims)
        taken = needs.plus(self._state.mapped_devices.requests_of(devices))
        return Nomination(pod, found.node.facts.name, taken, devices)

    def of_gang(self, gang: GangKey) -> Nomination | None:
        """One of the promises to a gang that has preempted others. All that were made together wait for the same."""
        for uid in self._of_gangs.get(gang, ()):
            return self._by_uid[uid]
        return None

    def withdraw_gang(self, gang: GangKey) -> tuple[Pod, ...]:
        """Nothing is kept for any member of a gang any more. Returns those for which something was."""
        pods = tuple(self._by_uid[uid].pod for uid in self._of_gangs.get(gang, ()))
        for pod in pods:
            self._fulfilled.pop(pod.metadata.uid, None)
            self._end(pod.metadata.uid)
        if pods:
            self._state.room_is_free()
        return pods

    def keep(self, pod: Pod, node: str, devices: tuple[AllocationResult, ...]) -> None:
        """Keep room for a pod that somebody else makes, in place of what was kept for it before."""
        self.withdraw(pod.metadata.uid)
        needs = PodNeeds.of(pod).plus(self._state.mapped_devices.requests_of(devices))
        gangs = self._state.gangs
        nomination = Nomination(
            pod,
            node,
            needs,
            devices,
            gang=gangs.key_of(pod),
            is_asked_for=True,
            importance=gangs.priority_of(pod),
        )
        self._keep(nomination)

    def withdraw(self, uid: str) -> None:
        """Nothing is kept for the pod any more: it has its node, needs none, or has to look for other room."""
        self._fulfilled.pop(uid, None)
        if self._end(uid) is not None:
            self._state.room_is_free()

    def fulfil(self, uid: str) -> None:
        """The pod is about to have its node: what it gets there is counted with the decision."""
        nomination = self._end(uid)
        if nomination is not None:
            self._fulfilled[uid] = nomination
            self._state.room_is_free()

    def renew(
        self, uid: str, node: str, needs: PodNeeds, devices: tuple[AllocationResult, ...]
    ) -> None:
        """The pod did not get its node after all: the room there is kept while it tries again."""
        former = self._fulfilled.pop(uid, None)
        if former is not None:
            self._keep(
                replace(former, node=node, needs=needs, devices=devices, departing=(), freed=())
            )

    def _keep(self, nomination: Nomination) -> None:
        self._by_uid[nomination.uid] = nomination
        if nomination.gang is not None and not nomination.is_asked_for:
            self._of_gangs.setdefault(nomination.gang, {})[nomination.uid] = None
        self._departing = self._freed = None
        self._count(nomination)

    def _end(self, uid: str) -> Nomination | None:
        nomination = self._by_uid.pop(uid, None)
        if nomination is not None:
            self._departing = self._freed = None
            members = {} if nomination.gang is None else self._of_gangs.get(nomination.gang, {})
            members.pop(uid, None)
            if nomination.gang is not None and not members:
                self._of_gangs.pop(nomination.gang, None)
            if uid in self._aside:
                self._aside.discard(uid)
            else:
                self._discount(nomination)
        return nomination

    def expects_to_go(self, uid: str) -> bool:
        """Whether another pod waits for this pod to go."""
        if self._departing is None:
            # Members of a gang wait for the same pods.
            departing = {id(each.departing): each.departing for each in self._by_uid.values()}
            self._departing = {pod.metadata.uid for pods in departing.values() for pod in pods}
        return uid in self._departing

    def keeps(self, claim: ResourceClaim, pod: Pod) -> Nomination | None:
        """The promise for which a claim is about to give back its devices, so that this pod may not begin to use it."""
        if self._freed is None:
            self._freed = {}
            first: dict[int, Nomination] = {}  # members of a gang wait for the same claims
            for nomination in self._by_uid.values():
                first.setdefault(id(nomination.freed), nomination)
            for nomination in first.values():
                for freed in nomination.freed:
                    self._freed.setdefault(freed.metadata.uid, []).append(nomination)
        found = self._freed.get(claim.metadata.uid)
        if not found:
            return None
        is_open = self._openness(pod)
        return next((n for n in found if n.uid not in self._aside and not is_open(n)), None)

    def as_seen_by(self, pod: Pod) -> AbstractContextManager[None]:
        """During a search for a node, only what is kept for other pods that are not less important is out of reach."""
        return self._without([*filter(self._openness(pod), self._by_uid.values())])

    def _openness(self, pod: Pod) -> Callable[[Nomination], bool]:
        """Whether a pod may take what is kept: it is more important, or it is kept for the pod or its gang.

        Where others make room for several pods (`kept_room`), each has its own, and a pod does not take that of another however important
        it is: what suits it better may be all that the other one can use.
        """
        gangs = self._state.gangs
        uid, priority, gang = pod.metadata.uid, gangs.priority_of(pod), gangs.key_of(pod)
        own = self._by_uid.get(uid)
        has_own = own is not None and own.is_asked_for and own.node in self._state.nodes

        def is_open(each: Nomination) -> bool:
            return (
                each.uid == uid
                or (each.priority < priority and not (has_own and each.is_asked_for))
                or (gang is not None and each.gang == gang)
            )

        return is_open

    def ignored(self) -> AbstractContextManager[None]:
        """Nothing is kept for any pod."""
        return self._without(list(self._by_uid.values()))

    @contextmanager
    def _without(self, nominations: list[Nomination]) -> Iterator[None]:
        aside = [each for each in nominations if each.uid not in self._aside]
        for nomination in aside:
            self._aside.add(nomination.uid)
            self._discount(nomination)
        try:
            yield
        finally:
            for nomination in aside:
                if nomination.uid in self._aside:  # otherwise it was withdrawn in the meantime
                    self._aside.discard(nomination.uid)
                    self._count(nomination)

    def _count(self, nomination: Nomination) -> None:
        self._state.keep_room(nomination.needs, nomination.node, nomination.devices)

    def _discount(self, nomination: Nomination) -> None:
        self._state.give_up_room(nomination.uid, len(nomination.devices))

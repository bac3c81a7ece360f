"""The room that is kept for admitted workloads, counted in a state of the cluster.

What is kept follows from three facts that the server shows, in any order: the places that were found for a workload, how many pods each of
its sets still needs, and the pods that it has. A pod has one of the places. Until it is bound its place counts; then the pod itself counts,
and its place is where the pod is. Places without a pod count for pods to come, and no more of them than the workload still needs. The place
of a pod that is being deleted is for the pod that replaces it, which may come before the other one is gone.

Every change is the exact inverse of another one, so that after all of a workload's room is released the state is as if it had never been
admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from drayman.api.core import Pod
from drayman.api.pods import is_leaving
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.inventory.identity import DeviceId
from drayman.placement.fit import FITS, NodeFacts, PodNeeds
from drayman.placement.state import ClusterState, promised_holder
from drayman.quota.fitting.reservation import ReservedPlace, RoomReservation

PlaceChanged = Callable[[Pod, ReservedPlace | None], None]


class _Kept:
    """The places of one pod set of a workload, and the pods that it has."""

    __slots__ = ("active", "free", "lacking", "leaving", "members", "needed", "spare")

    def __init__(self, needed: int) -> None:
        self.needed = needed
        """How many pods the set is to have."""
        self.active = 0
        """How many it has, but for those that are being deleted."""
        self.free: dict[str, None] = {}
        """Places for pods to come, which count."""
        self.spare: dict[str, None] = {}
        """Places that no pod to come needs now, which do not."""
        self.leaving: dict[str, _Member] = {}
        """Places of pods that are being deleted."""
        self.members: dict[str, _Member] = {}
        """All pods, by uid."""
        self.lacking: dict[str, _Member] = {}
        """Pods without a place, but for those that are being deleted."""


class _Member:
    """A pod of a workload."""

    __slots__ = ("is_leaving", "kept", "key", "place", "pod")

    def __init__(self, key: str, kept: _Kept, pod: Pod) -> None:
        self.key = key
        self.kept = kept
        self.pod = pod
        self.place: str | None = None
        """The uid of the expected pod."""
        self.is_leaving = False

    @property
    def waits(self) -> bool:
        return not self.pod.spec.node_name


class RoomBook:
    """The reservations in a cluster state."""

    def __init__(self, state: ClusterState, changed: PlaceChanged | None = None) -> None:
        """`changed` is called with a waiting pod that has another place than before, or none any more, for a reason other than that it was
        seen (`hand_over`)."""
        self._state = state
        self._changed = changed
        self._reservations: dict[str, RoomReservation] = {}  # by key of the workload
        self._outdated: set[str] = set()  # those whose places are others by now
        self._sets: dict[tuple[str, str], _Kept] = {}  # by key of the workload, and pod set
        self._places: dict[str, ReservedPlace] = {}  # by uid of the expected pod
        self._counted: dict[str, ReservedPlace] = {}  # the same, those that count
        self._users: dict[str, dict[str, None]] = {}  # of shared claims, uids of expected pods
        self._allocated: dict[str, AllocationResult] = {}  # by uid of the claim
        self._members: dict[str, _Member] = {}  # by uid of the pod

    def __contains__(self, key: str) -> bool:
        return key in self._reservations

    def __iter__(self) -> Iterator[RoomReservation]:
        return (self._current(key) for key in self._reservations)

    def get(self, key: str) -> RoomReservation | None:
        return self._current(key) if key in self._reservations else None

    def _current(self, key: str) -> RoomReservation:
        found = self._reservations[key]
        if key in self._outdated:
            self._outdated.discard(key)
            places = tuple(self._places[each.uid] for each in found.places)
            found = self._reservations[key] = RoomReservation(found.workload, places)
        return found

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        """The devices that a claim is going to get because a reservation counts on it."""
        return self._allocated.get(claim.metadata.uid)

    # A workload is admitted, and ends.

    def keep(self, reservation: RoomReservation) -> None:
        """Count a reservation. Raises ValueError if the workload has one."""
        key = reservation.key
        if key in self._reservations:
            raise ValueError(f"room is kept for workload {key} already")
        self._reservations[key] = reservation
        for each in reservation.workload.pod_sets:
            self._sets[key, each.name] = _Kept(each.count)
        for place in reservation.places:
            self._places[place.uid] = place
            self._sets[key, place.pod_set].free[place.uid] = None
            self._count(place)

    def needs(self, key: str, counts: Mapping[str, int]) -> None:
        """How many pods a workload is to have now, by pod set: some have ended for good, or it has become smaller."""
        for name, count in counts.items():
            kept = self._sets.get((key, name))
            if kept is not None and kept.needed != count:
                kept.needed = count
                self._balance(kept)

    def release(self, key: str) -> None:
        """The workload has ended, was evicted, or is gone: nothing is kept for it any more."""
        reservation = self._reservations.pop(key, None)
        if reservation is None:
            return
        self._outdated.discard(key)
        for place in reservation.places:
            self._discount(place.uid)
            del self._places[place.uid]
        members: dict[str, _Member] = {}
        for name in {each.name for each in reservation.workload.pod_sets}:
            members |= self._sets.pop((key, name)).members
        for uid in members:
            del self._members[uid]
        self._state.room_is_free()
        for member in members.values():
            if member.waits and member.place is not None:
                self._report(member.pod, None)

    def replace(self, reservation: RoomReservation) -> None:
        """The workload has other places: those of pods that are bound stay fulfilled."""
        key = reservation.key
        self._outdated.discard(key)
        self._reservations[key] = reservation
        for place in reservation.places:
            self._move(place)

    def _move(self, place: ReservedPlace) -> None:
        former = self._places[place.uid]
        self._places[place.uid] = place
        if former is not place and place.uid in self._counted:
            self._discount(place.uid)
            self._count(place)

    # Its pods appear, are bound, and go.

    def hand_over(self, key: str, pod_set: str, pod: Pod) -> ReservedPlace | None:
        """The place of a pod of the workload: the same for the same pod. None if no place is left that it may have.

        The place of a pod that has a node does not count. Pods of a topology have the node selectors of their domains by then.
        """
        uid, kept = pod.metadata.uid, self._sets.get((key, pod_set))
        if kept is None:
            return None
        member = self._members.get(uid)
        if member is None:
            member = self._members[uid] = kept.members[uid] = _Member(key, kept, pod)
            kept.active += 1
            kept.lacking[uid] = member
        elif member.kept is not kept:
            return None
        member.pod = pod
        if uid in kept.lacking:
            self._seat(member)
        if is_leaving(pod) and not member.is_leaving:
            self._begin_to_leave(member)
        self._balance(kept)
        if pod.spec.node_name:
            self.fulfil(uid)
        return None if member.place is None else self._places[member.place]

    def fulfil(self, pod_uid: str) -> None:
        """The pod is bound, on any node, or has its room in another way: its place does not count any more."""
        member = self._members.get(pod_uid)
        if member is not None and member.place is not None and member.place in self._counted:
            self._discount(member.place)
            if member.pod.spec.node_name not in ("", self._places[member.place].node):
                self._state.room_is_free()

    def settle(
        self, pod_uid: str, place: Callable[[ReservedPlace], ReservedPlace | None]
    ) -> str | None:
        """A pod is bound: its place is where it is. Returns the key of its workload if that was another place."""
        member = self._members.get(pod_uid)
        if member is None or member.place is None:
            return None
        former = self._places[member.place]
        current = place(former)
        if current is None or _is_same(former, current):
            return None
        self._move(current)
        self._outdated.add(member.key)
        return member.key

    def vacate(self, pod_uid: str) -> None:
        """The pod is gone or has ended: its place is for another pod that the workload needs, or has without a place."""
        member = self._members.pop(pod_uid, None)
        if member is None:
            return
        kept = member.kept
        del kept.members[pod_uid]
        kept.lacking.pop(pod_uid, None)
        if not member.is_leaving:
            kept.active -= 1
        if member.place is not None:
            kept.leaving.pop(member.place, None)
            places = kept.free if member.place in self._counted else kept.spare
            places[member.place] = None
            for other in tuple(kept.lacking.values()):
                self._seat(other)
                if other.place is not None and other.waits:
                    self._report(other.pod, self._places[other.place])
        self._balance(kept)

    def counts(self, place: ReservedPlace) -> bool:
        """Whether a place still counts: its pod is not bound."""
        return place.uid in self._counted

    def holders(self, place: ReservedPlace) -> tuple[str, ...]:
        """The names under which the ledger has the devices of a place that counts."""
        own = (promised_holder(place.uid, number) for number in range(len(place.devices)))
        return (*own, *(_holder(claim.uid) for claim in place.claims))

    def _report(self, pod: Pod, place: ReservedPlace | None) -> None:
        if self._changed is not None:
            self._changed(pod, place)

    def _begin_to_leave(self, member: _Member) -> None:
        """A pod is being deleted. It has its place until the pod comes that replaces it."""
        member.is_leaving = True
        member.kept.active -= 1
        member.kept.lacking.pop(member.pod.metadata.uid, None)
        if member.place is not None:
            member.kept.leaving[member.place] = member

    def _balance(self, kept: _Kept) -> None:
        """Have as many free places count as the workload needs for pods to come."""
        wanted = max(0, kept.needed - kept.active - len(kept.leaving))
        is_less = len(kept.free) > wanted
        while len(kept.free) > wanted:
            uid, _ = kept.free.popitem()
            kept.spare[uid] = None
            self._discount(uid)
        while len(kept.free) < wanted and kept.spare:
            uid = next(iter(kept.spare))
            del kept.spare[uid]
            kept.free[uid] = None
            self._count(self._places[uid])
        if is_less:
            self._state.room_is_free()

    def _seat(self, member: _Member) -> None:
        """Give a pod that has no place one that it may have, if there is one."""
        kept = member.kept
        found = self._place_for(kept, member.pod)
        if found is None:
            return
        former = kept.leaving.pop(found, None)
        if former is not None:
            former.place = None
        kept.free.pop(found, None)
        kept.spare.pop(found, None)
        del kept.lacking[member.pod.metadata.uid]
        member.place = found
        if not member.waits:
            self._exchange(member, self._places[found])
        elif found not in self._counted:
            self._count(self._places[found])

    def _exchange(self, member: _Member, place: ReservedPlace) -> None:
        """A bound pod has a place on its node, even if a pod that waits was seen first and has that: then that one has the other."""
        node = member.pod.spec.node_name
        if place.node == node:
            return
        for other in member.kept.members.values():
            here = other.place
            if here is not None and other.waits and self._places[here].node == node:
                other.place, member.place = place.uid, here
                if other.is_leaving:
                    del member.kept.leaving[here]
                    member.kept.leaving[place.uid] = other
                if place.uid not in self._counted:
                    self._count(place)
                self._report(other.pod, place)
                return

    def _place_for(self, kept: _Kept, pod: Pod) -> str | None:
        open_ = (kept.free, kept.leaving, kept.spare)
        node = pod.spec.node_name
        if node:
            # A place elsewhere is not needed by it any more either, if it is one that it could have had.
            here = (uid for uid in chain(*open_) if self._places[uid].node == node)
            there = (uid for uid in chain(*open_) if self._selects(uid, node))
            return next(chain(here, there), None)
        needs = PodNeeds.of(pod)
        suited = (uid for uid in chain(*open_) if self._may_have(needs, self._places[uid]))
        lost = (uid for uid in chain(*open_) if self._is_lost(uid, pod))
        return next(chain(suited, lost), None)

    def _is_lost(self, uid: str, pod: Pod) -> bool:
        """Whether the node of a place is no longer open to the pod that the place was for, of which this may be one."""
        place, asked = self._places[uid], pod.spec.node_selector
        selector = place.pod.spec.node_selector
        return not self._may_have(place.needs, place) and all(
            asked.get(key) == value for key, value in selector.items()
        )

    # Trials.

    def set_aside(self, reservation: RoomReservation) -> None:
        """In a trial of the state: what is kept for a workload is free. The book itself does not change."""
        claims: dict[str, int] = {}
        for place in reservation.places:
            if place.uid in self._counted:
                self._state.give_up_room(place.uid, len(place.devices))
                for claim in place.claims:
                    claims[claim.uid] = claims.get(claim.uid, 0) + 1
        for uid, number in claims.items():
            if number == len(self._users.get(uid, ())):
                self._state.release(_holder(uid))

    def put_back(self, place: ReservedPlace) -> None:
        """In a trial, after `set_aside`: a place is kept again."""
        self._state.keep_room(place.needs, place.node, place.devices)
        for claim in place.claims:
            self._state.hold(_holder(claim.uid), claim.allocation)

    def _selects(self, uid: str, name: str) -> bool:
        """Whether the pod that a place is for selects a node, as those of a topology do not if their domain is another one."""
        node = self._state.nodes.get(name)
        labels = {} if node is None else node.facts.labels
        selector = self._places[uid].pod.spec.node_selector
        return all(labels.get(key) == value for key, value in selector.items())

    def _may_have(self, needs: PodNeeds, place: ReservedPlace) -> bool:
        node = self._state.nodes.get(place.node)
        return node is not None and _is_open(self._state, needs, node.facts)

    def _count(self, place: ReservedPlace) -> None:
        self._counted[place.uid] = place
        self._state.keep_room(place.needs, place.node, place.devices)
        for claim in place.claims:
            users = self._users.setdefault(claim.uid, {})
            if not users:
                self._allocated[claim.uid] = claim.allocation
                self._state.hold(_holder(claim.uid), claim.allocation)
            users[place.uid] = None

    def _discount(self, uid: str) -> None:
        place = self._counted.pop(uid, None)
        if place is None:
            return
        self._state.give_up_room(place.uid, len(place.devices))
        for claim in place.claims:
            users = self._users[claim.uid]
            del users[place.uid]
            if not users:
                del self._users[claim.uid], self._allocated[claim.uid]
                self._state.release(_holder(claim.uid))


def _is_same(one: ReservedPlace, other: ReservedPlace) -> bool:
    return one.node == other.node and _devices(one) == _devices(other)


def _devices(place: ReservedPlace) -> set[DeviceId]:
    return {DeviceId.of(r) for each in place.allocations for r in each.devices.results}


def _is_open(state: ClusterState, needs: PodNeeds, facts: NodeFacts) -> bool:
    return state.static_verdicts.verdict(needs, facts) is FITS


def _holder(claim: str) -> str:
    """The holder name for devices that are kept for a claim: one that no claim can have."""
    return f"<expected> {claim}"

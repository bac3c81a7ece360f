"""The room that is kept for admitted workloads, counted in a state of the cluster.

A place counts from the moment it is kept until the pod that it is for is bound: then the pod itself counts. Every change is the exact
inverse of another one, so that after all of a workload's room is given back the state is as if it had never been admitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drayman.api.core import Pod
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.placement.fit import FITS, NodeFacts, PodNeeds
from drayman.placement.state import ClusterState
from drayman.quota.fitting.reservation import ReservedPlace, RoomReservation


class RoomBook:
    """The reservations in a cluster state."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._kept: dict[str, RoomReservation] = {}  # by key of the workload
        self._places: dict[str, ReservedPlace] = {}  # by uid of the expected pod
        self._counted: dict[str, ReservedPlace] = {}  # the same, those that count
        self._free: dict[tuple[str, str], dict[str, None]] = {}  # of a pod set, given to no pod
        self._users: dict[str, dict[str, None]] = {}  # of shared claims, uids of expected pods
        self._allocated: dict[str, AllocationResult] = {}  # by uid of the claim
        self._given: dict[str, tuple[str, str]] = {}  # by uid of the pod: the workload, the place
        self._taken: dict[str, str] = {}  # by uid of the expected pod: that of the pod

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def __iter__(self) -> Iterator[RoomReservation]:
        return iter(self._kept.values())

    def get(self, key: str) -> RoomReservation | None:
        return self._kept.get(key)

    def on(self, nodes: frozenset[str]) -> list[RoomReservation]:
        """The reservations that have a place on one of these nodes that is not fulfilled."""
        return [
            each
            for each in self._kept.values()
            if any(p.node in nodes and p.uid in self._counted for p in each.places)
        ]

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        """The devices that a claim is going to get because a reservation counts on it."""
        return self._allocated.get(claim.metadata.uid)

    # A workload is admitted, and ends.

    def keep(self, reservation: RoomReservation) -> None:
        """Count a reservation. Raises ValueError if the workload has one."""
        if reservation.key in self._kept:
            raise ValueError(f"room is kept for workload {reservation.key} already")
        self._kept[reservation.key] = reservation
        for place in reservation.places:
            self._places[place.uid] = place
            self._free.setdefault((reservation.key, place.pod_set), {})[place.uid] = None
            self._count(place)

    def release(self, key: str) -> None:
        """The workload has ended, was evicted, or is gone: nothing is kept for it any more."""
        reservation = self._kept.pop(key, None)
        if reservation is None:
            return
        for place in reservation.places:
            self._discount(place)
            del self._places[place.uid]
            self._free.pop((key, place.pod_set), None)
            pod = self._taken.pop(place.uid, None)
            if pod is not None:
                self._given.pop(pod, None)
        self._state.room_is_free()

    def replace(self, reservation: RoomReservation) -> None:
        """The workload has other places: those of pods that are bound stay fulfilled."""
        self._kept[reservation.key] = reservation
        for place in reservation.places:
            former = self._places[place.uid]
            self._places[place.uid] = place
            if former is not place and place.uid in self._counted:
                self._discount(former)
                self._count(place)

    # Its pods appear, are bound, and go.

    def hand_over(self, key: str, pod_set: str, pod: Pod) -> ReservedPlace | None:
        """The place of a pod of the workload: the same for the same pod. None if no place is left that it may have.

        Whoever puts pods of a topology into domains, by their index for instance, gives them their node selectors first.
        """
        uid = pod.metadata.uid
        if key not in self._kept:
            return None
        known = self._given.get(uid)
        if known is not None:
            return self._places.get(known[1])
        place = self._free_place(self._free.get((key, pod_set), {}), pod)
        if place is not None:
            self._given[uid] = (key, place.uid)
            self._taken[place.uid] = uid
            del self._free[key, pod_set][place.uid]
        return place

    def _free_place(self, free: Mapping[str, None], pod: Pod) -> ReservedPlace | None:
        node = pod.spec.node_name
        if node:
            # It is bound already, wherever: a place elsewhere is not needed by it any more either, if it is one that it could have had.
            places = [self._places[uid] for uid in free]
            here = next((each for each in places if each.node == node), None)
            return here or next((each for each in places if self._selects(each, node)), None)
        needs = PodNeeds.of(pod)
        suited = (self._places[uid] for uid in free if self._may_have(needs, self._places[uid]))
        return next(suited, None)

    def fulfil(self, pod_uid: str) -> None:
        """The pod is bound, wherever: it counts by itself from now on, and its place no longer does."""
        known = self._given.get(pod_uid)
        if known is not None:
            place = self._counted.get(known[1])
            if place is not None:
                self._discount(place)

    def vacate(self, pod_uid: str) -> None:
        """The pod is gone, and another one will replace it: its place is kept for that one."""
        known = self._given.pop(pod_uid, None)
        if known is None:
            return
        self._taken.pop(known[1], None)
        place = self._places.get(known[1])
        if place is not None:
            self._free[known[0], place.pod_set][place.uid] = None
            if place.uid not in self._counted:
                self._count(place)

    def shrink(self, key: str, pod_set: str, most: int) -> None:
        """The workload needs no more places than this for a pod set. Those that pods have stay."""
        free = self._free.get((key, pod_set), {})
        reservation = self._kept.get(key)
        if reservation is None or not free:
            return
        number = sum(place.pod_set == pod_set for place in reservation.places)
        gone = list(free)[max(0, len(free) - max(0, number - most)) :]
        for uid in gone:
            self._discount(self._places.pop(uid))
            del free[uid]
        if gone:
            left = tuple(each for each in reservation.places if each.uid in self._places)
            self._kept[key] = RoomReservation(reservation.workload, left)
            self._state.room_is_free()

    def counts(self, place: ReservedPlace) -> bool:
        """Whether a place still counts: its pod is not bound."""
        return place.uid in self._counted

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

    def _selects(self, place: ReservedPlace, name: str) -> bool:
        """Whether the pod that a place is for selects a node, as those of a topology do not if their domain is another one."""
        node = self._state.nodes.get(name)
        labels = {} if node is None else node.facts.labels
        return all(labels.get(key) == value for key, value in place.pod.spec.node_selector.items())

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

    def _discount(self, place: ReservedPlace) -> None:
        if self._counted.pop(place.uid, None) is None:
            return
        self._state.give_up_room(place.uid, len(place.devices))
        for claim in place.claims:
            users = self._users[claim.uid]
            del users[place.uid]
            if not users:
                del self._users[claim.uid], self._allocated[claim.uid]
                self._state.release(_holder(claim.uid))


def _is_open(state: ClusterState, needs: PodNeeds, facts: NodeFacts) -> bool:
    return state.static_verdicts.verdict(needs, facts) is FITS


def _holder(claim: str) -> str:
    """The holder name for devices that are kept for a claim: one that no claim can have."""
    return f"<expected> {claim}"

"""Room that is kept for an admitted workload: for each of its pods a node, and the devices that it gets there.

A claim that exists by itself and is used by several pods, or several workloads, gets its devices once. So it is listed apart from what a
pod has for itself (`SharedClaim`), and its devices are kept as long as any reservation counts on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.resource import AllocationResult, DeviceAllocationResult
from drayman.api.struct import ApiStruct
from drayman.placement.fit import PodNeeds
from drayman.placement.mapped_resources import MappedDevices
from drayman.quota.fitting.expecting import WorkloadPods, expected_pods


class SharedClaim(ApiStruct):
    """A claim that exists, and the devices that it is to get."""

    uid: str
    allocation: AllocationResult


class ReservedPlace(Struct, frozen=True, eq=False):
    """Room for one pod."""

    pod_set: str
    number: int
    pod: Pod
    """The pod that it was found for, which does not exist."""
    needs: PodNeeds
    """Including what its devices take of the node."""
    node: str
    devices: tuple[AllocationResult, ...] = ()
    """Those of claims that are made for the pod alone."""
    claims: tuple[SharedClaim, ...] = ()

    @property
    def uid(self) -> str:
        """Under which it counts."""
        return self.needs.uid

    @property
    def allocations(self) -> tuple[AllocationResult, ...]:
        """All devices that the pod will use."""
        return (*self.devices, *(claim.allocation for claim in self.claims))


class RoomReservation(Struct, frozen=True, eq=False):
    """Room for the pods of a workload."""

    workload: WorkloadPods
    places: tuple[ReservedPlace, ...]

    @property
    def key(self) -> str:
        return self.workload.key

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(place.node for place in self.places)


class PlaceRecord(ApiStruct):
    """A place as it is written down."""

    pod_set: str
    number: int
    node: str
    devices: tuple[AllocationResult, ...] = ()
    claims: tuple[SharedClaim, ...] = ()


class RoomRecord(ApiStruct):
    """A reservation as it is written down: what does not follow from the workload."""

    places: tuple[PlaceRecord, ...] = ()


def record_of(reservation: RoomReservation) -> RoomRecord:
    return RoomRecord(
        places=tuple(
            PlaceRecord(
                pod_set=place.pod_set,
                number=place.number,
                node=place.node,
                devices=tuple(map(_bare, place.devices)),
                claims=place.claims,
            )
            for place in reservation.places
        )
    )


def restored(workload: WorkloadPods, record: RoomRecord, mapped: MappedDevices) -> RoomReservation:
    """A reservation that was written down. Places of pods that the workload does not have are left out, and second places of one pod."""
    expected = {(each.pod_set, each.number): each for each in expected_pods(workload)}
    recorded = {(each.pod_set, each.number): each for each in record.places}
    places = [
        place_of(
            each.pod_set,
            each.number,
            expected[each.pod_set, each.number].pod,
            each.node,
            each.devices,
            each.claims,
            mapped,
        )
        for key, each in recorded.items()
        if key in expected
    ]
    return RoomReservation(workload, tuple(places))


def place_of(
    pod_set: str,
    number: int,
    pod: Pod,
    node: str,
    devices: Sequence[AllocationResult],
    claims: Iterable[SharedClaim],
    mapped: MappedDevices,
) -> ReservedPlace:
    shared = tuple(claims)
    allocations = [*devices, *(claim.allocation for claim in shared)]
    needs = PodNeeds.of(pod).plus(mapped.requests_of(allocations))
    return ReservedPlace(pod_set, number, pod, needs, node, tuple(devices), shared)


def with_places(
    reservation: RoomReservation, places: Mapping[str, ReservedPlace]
) -> RoomReservation:
    """The same with other places for some of its pods, by uid."""
    return RoomReservation(
        reservation.workload, tuple(places.get(each.uid, each) for each in reservation.places)
    )


def _bare(allocation: AllocationResult) -> AllocationResult:
    """An allocation without the configuration that comes with it."""
    return AllocationResult(devices=DeviceAllocationResult(results=allocation.devices.results))

"""Devices that take up resources of the node itself (spec/dra.md 5.10)."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.resource import AllocationResult, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.mapped_resources import MappedDevices
from drayman.placement.state import ClusterState
from placement.fit.objects import make_node, make_pod


def slice_(name: str = "s", driver: str = "x", **mappings: Any) -> ResourceSlice:
    """A slice of pool `p` whose device `d` takes up resources."""
    device = {"name": "d", "nodeAllocatableResourceMappings": mappings}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "nodeName": "n", "devices": [device]}
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def allocation(
    *devices: str, pool: str = "p", driver: str = "x", **consumed: str
) -> AllocationResult:
    results = [
        {"request": "r", "driver": driver, "pool": pool, "device": d, "consumedCapacity": consumed}
        for d in devices
    ]
    return convert(AllocationResult, {"devices": {"results": results}})


def taken(of: AllocationResult, **mappings: Any) -> dict[str, Any]:
    devices = MappedDevices()
    devices.set_slice(slice_(**mappings))
    return devices.taken_by(of)


CASES: dict[str, tuple[AllocationResult, dict[str, Any], dict[str, int]]] = {
    "so much for each device": (
        allocation("d"),
        {"cpu": {"allocationMultiplier": "2"}},
        {"cpu": 2},
    ),
    "one where nothing is said": (allocation("d"), {"cpu": {}}, {"cpu": 1}),
    "as much as is consumed": (
        allocation("d", memory="3"),
        {"memory": {"capacityKey": "memory"}},
        {"memory": 3},
    ),
    "a multiple of what is consumed": (
        allocation("d", cores="3"),
        {"cpu": {"capacityKey": "cores", "allocationMultiplier": "2"}},
        {"cpu": 6},
    ),
    "nothing where the capacity is not consumed": (
        allocation("d", other="3"),
        {"cpu": {"capacityKey": "cores"}},
        {},
    ),
    "devices of other pools": (allocation("d", pool="q"), {"cpu": {}}, {}),
    "devices of other drivers": (allocation("d", driver="y"), {"cpu": {}}, {}),
    "devices without mappings": (allocation("e"), {"cpu": {}}, {}),
    "the sum over devices": (
        allocation("d", "d"),
        {"cpu": {"allocationMultiplier": "4"}},
        {"cpu": 8},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_allocation_takes(name: str) -> None:
    """By device, or by what of its capacity is consumed; summed up over the devices of the claim."""
    of, mappings, wanted = CASES[name]
    assert taken(of, **mappings) == wanted


def test_drivers_may_use_the_same_names() -> None:
    """Each device takes what its own driver says, though pool and device are called alike."""
    devices = MappedDevices()
    devices.set_slice(slice_("of-x", "x", cpu={"allocationMultiplier": "2"}))
    devices.set_slice(slice_("of-y", "y", cpu={"allocationMultiplier": "5"}))
    found = {driver: devices.taken_by(allocation("d", driver=driver)) for driver in "xyz"}
    assert found == {"x": {"cpu": 2}, "y": {"cpu": 5}, "z": {}}


def test_a_slice_that_goes_takes_its_mappings_along() -> None:
    """Nothing is known of devices that are no longer published, and no devices are no work."""
    devices = MappedDevices()
    assert not devices
    devices.set_slice(slice_(cpu={}))
    assert devices
    devices.set_slice(slice_())
    assert not devices
    devices.set_slice(slice_(cpu={}))
    devices.remove_slice(slice_(cpu={}))
    assert not devices


def test_units_are_those_of_requests() -> None:
    """CPUs count in thousandths; what is no whole unit is rounded up."""
    devices = MappedDevices()
    half = {"allocationMultiplier": "500m"}
    devices.set_slice(slice_(cpu=half, memory=half))
    assert devices.requests_of([allocation("d")]) == {"cpu": 500, "memory": 1}
    assert devices.requests_of([allocation("d"), allocation("d")]) == {"cpu": 1000, "memory": 1}


def test_a_placed_pod_counts_once_what_its_devices_take() -> None:
    """The sum over the claims in its status comes on top of its requests, however often the pod is shown."""
    state = ClusterState(Features(), lambda _: None)
    state.set_node(make_node("n"))
    taken = [{"resourceClaimName": name, "resources": {"cpu": "2"}} for name in ("a", "b")]
    status = {"nodeAllocatableResourceClaimStatuses": taken}
    pod = make_pod({"cpu": "1"}, nodeName="n", status=status)
    for _ in range(2):
        state.set_placed_pod(pod)
        assert state.nodes["n"].usage.cpu == 5000

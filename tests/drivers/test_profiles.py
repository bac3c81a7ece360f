"""Simulated nodes look like what the real drivers publish."""

from __future__ import annotations

from collections import Counter

import pytest

from drayman.api.quantity import Quantity
from drayman.api.resource import Device, ResourceSlice
from drayman.drivers.profiles import HardwareNode, dgx_h100

MOST_DEVICES = 128
MOST_ADVANCED_DEVICES = 64


def devices(node: HardwareNode, driver: str) -> list[Device]:
    return [d for s in node.slices if s.spec.driver == driver for d in s.spec.devices or ()]


@pytest.fixture(scope="module")
def divided() -> HardwareNode:
    return dgx_h100("node-1", mig=True, ports_per_nic=2, compute_domain=True)


def test_dgx_h100_has_eight_gpus_and_a_nic_on_the_root_of_each() -> None:
    """One GPU and one NIC per PCIe root, four pairs per NUMA node."""
    node = dgx_h100("node-1")
    places = []
    for driver in ("gpu.nvidia.com", "dra.net"):
        found = [device.attributes for device in devices(node, driver)]
        places.append(
            [
                (
                    a["resource.kubernetes.io/pcieRoot"].string,
                    a["resource.kubernetes.io/numaNode"].int_,
                )
                for a in found
            ]
        )
    assert places[0] == places[1]
    assert len(set(places[0])) == 8
    assert Counter(numa for _, numa in places[0]) == {0: 4, 1: 4}


def test_a_whole_gpu_has_the_drivers_attributes() -> None:
    """Names, types and values are those of `gpu.nvidia.com`."""
    gpu = devices(dgx_h100("node-1"), "gpu.nvidia.com")[3]
    assert gpu.name == "gpu-3"
    assert gpu.attributes["type"].string == "gpu"
    assert gpu.attributes["productName"].string == "NVIDIA H100 80GB HBM3"
    assert gpu.attributes["cudaComputeCapability"].version == "9.0.0"
    assert gpu.attributes["resource.kubernetes.io/pciBusID"].string == "0000:61:00.0"
    assert gpu.capacity["memory"].value == Quantity.parse("81559Mi")


def test_every_gpu_has_a_uuid_of_its_own_that_stays() -> None:
    """UUIDs differ between GPUs and nodes and are the same whenever a node is simulated."""
    uuids = {
        name: [str(d.attributes["uuid"].string) for d in devices(dgx_h100(name), "gpu.nvidia.com")]
        for name in ("a", "b")
    }
    assert len({*uuids["a"], *uuids["b"]}) == 16
    assert uuids["a"] == [
        d.attributes["uuid"].string for d in devices(dgx_h100("a"), "gpu.nvidia.com")
    ]


def test_dynamic_mig_publishes_counters_and_a_slice_per_gpu(divided: HardwareNode) -> None:
    """Nine slices of one pool: eight counter sets of fifteen counters, then 26 devices a GPU."""
    slices = [s for s in divided.slices if s.spec.driver == "gpu.nvidia.com"]
    assert {s.spec.pool.resource_slice_count for s in slices} == {9}
    assert [len(s.spec.devices or ()) for s in slices] == [0, *[26] * 8]
    sets = slices[0].spec.shared_counters or ()
    assert [s.name for s in sets] == [f"gpu-{i}-counter-set" for i in range(8)]
    assert {len(s.counters) for s in sets} == {15}


def test_a_dgx_with_everything_has_11_slices_and_226_devices(divided: HardwareNode) -> None:
    """The size of node that the scale benchmark multiplies by a thousand."""
    assert len(divided.slices) == 11
    assert sum(len(s.spec.devices or ()) for s in divided.slices) == 226


def test_partitions_have_the_drivers_names(divided: HardwareNode) -> None:
    """A name has the GPU, the profile, its id and where it starts; seven small ones, down to one of the largest."""
    names = [d.name for d in devices(divided, "gpu.nvidia.com") if d.name.startswith("gpu-2-")]
    assert "gpu-2-mig-1g10gb-19-6" in names
    assert "gpu-2-mig-1g10gb-me-20-0" in names
    profiles = Counter(name.rsplit("-", 1)[0] for name in names)
    assert sorted(profiles.values()) == [1, 1, 2, 3, 4, 7, 7]


def consumed(device: Device, counter: str) -> Quantity:
    (consumption,) = device.consumes_counters
    return consumption.counters[counter].value if counter in consumption.counters else Quantity.ZERO


def test_no_partition_takes_more_than_its_gpu_has(divided: HardwareNode) -> None:
    """Every counter a device consumes is defined by its GPU's set, with at least that much."""
    slices = [s for s in divided.slices if s.spec.driver == "gpu.nvidia.com"]
    limits = {s.name: s.counters for s in slices[0].spec.shared_counters or ()}
    for device in devices(divided, "gpu.nvidia.com"):
        (consumption,) = device.consumes_counters
        for name, counter in consumption.counters.items():
            assert counter.value <= limits[consumption.counter_set][name].value


def test_whole_gpu_and_partitions_exclude_each_other(divided: HardwareNode) -> None:
    """The whole GPU takes every memory slice, and each partition at least one."""
    for device in devices(divided, "gpu.nvidia.com"):
        slices = [i for i in range(8) if consumed(device, f"memory-slice-{i}") > Quantity.ZERO]
        assert slices
        if device.attributes["type"].string == "gpu":
            assert slices == list(range(8))


def test_a_partition_covers_the_memory_slices_from_its_start(divided: HardwareNode) -> None:
    """`3g.40gb` at 4 holds slices 4 to 7."""
    (device,) = [d for d in devices(divided, "gpu.nvidia.com") if d.name == "gpu-0-mig-3g40gb-9-4"]
    assert [i for i in range(8) if consumed(device, f"memory-slice-{i}") > Quantity.ZERO] == [
        4,
        5,
        6,
        7,
    ]
    assert device.capacity["memory"].value == Quantity.parse("40448Mi")


def test_slices_keep_the_limits_of_the_api(divided: HardwareNode) -> None:
    """Devices per slice, attributes per device, length of values."""
    for each in divided.slices:
        found = each.spec.devices or ()
        advanced = any(device.consumes_counters for device in found)
        assert len(found) <= (MOST_ADVANCED_DEVICES if advanced else MOST_DEVICES)
        for device in found:
            assert len(device.attributes) + len(device.capacity) <= 32
            assert all(len(a.string or a.version or "") <= 64 for a in device.attributes.values())


def test_names_are_unique(divided: HardwareNode) -> None:
    """No two slices of a node, and no two devices of a pool, have one name."""
    names: list[ResourceSlice] = list(divided.slices)
    assert len({s.metadata.name for s in names}) == len(names)
    for driver in {s.spec.driver for s in names}:
        found = [device.name for device in devices(divided, driver)]
        assert len(set(found)) == len(found)

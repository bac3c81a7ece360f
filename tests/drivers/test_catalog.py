"""Every profile that comes with the package publishes what the API server accepts and what its hardware is known for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from drayman.api.checking import check_files
from drayman.api.codec import to_dict
from drayman.api.resource import Device, DeviceClass, ResourceSlice
from drayman.cel.device import check_selector, compile_selector
from drayman.drivers.profiles import PROFILES, HardwareNode, Wanted, parse_profiles, simulate
from drayman.topology.levels import LevelKind, places

ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"


def first_node(name: str) -> HardwareNode:
    return PROFILES[name].unit(0)[0]


def devices(node: HardwareNode, driver: str) -> list[Device]:
    return [d for s in node.slices if s.spec.driver == driver for d in s.spec.devices or ()]


def pools(node: HardwareNode) -> dict[str, list[ResourceSlice]]:
    found: dict[str, list[ResourceSlice]] = {}
    for item in node.slices:
        found.setdefault(item.spec.driver, []).append(item)
    return found


@pytest.mark.parametrize("name", PROFILES)
def test_everything_a_profile_makes_is_valid(name: str) -> None:
    """Nodes, slices, classes and definitions pass the checks of `drayman validate`."""
    cluster = simulate([Wanted(PROFILES[name], 1)])
    objects = [
        *(to_dict(node.node) for node in cluster.nodes),
        *(to_dict(item) for node in cluster.nodes for item in node.slices),
        *(to_dict(item) for item in cluster.classes),
        *cluster.definitions,
    ]
    text = "\n---\n".join(json.dumps(item) for item in objects)
    report = check_files([(name, text.encode())], check_selector)
    assert [str(finding) for finding in report.findings] == []
    assert len(report.objects) == len(objects)


@pytest.mark.parametrize("name", PROFILES)
def test_pools_are_complete_and_names_are_unique(name: str) -> None:
    """Each pool says how many slices it has, and has them; no two devices of a pool have one name."""
    for driver, slices in pools(first_node(name)).items():
        assert {s.spec.pool.resource_slice_count for s in slices} == {len(slices)}
        names = [d.name for d in devices(first_node(name), driver)]
        assert len(set(names)) == len(names)


def selects(item: DeviceClass, driver: str, device: Device) -> bool:
    return all(
        compile_selector(selector.cel.expression).matches(driver, device)
        for selector in item.spec.selectors
        if selector.cel is not None
    )


@pytest.mark.parametrize("name", PROFILES)
def test_nodes_say_where_they_stand(name: str) -> None:
    """Host, rack, block, zone and region come from labels that the topology package reads."""
    for node in PROFILES[name].unit(0):
        kinds = {place.kind for place in places(node.node.metadata.labels)}
        wanted = {LevelKind.HOST, LevelKind.RACK, LevelKind.BLOCK, LevelKind.ZONE, LevelKind.REGION}
        assert wanted <= kinds


EXPECTED = {
    "dgx-h100": {"gpu.nvidia.com": 8, "dra.net": 8, "compute-domain.nvidia.com": 2, "dra.cpu": 2},
    "dgx-h100-mig": {"gpu.nvidia.com": 208, "dra.net": 8},
    "dgx-h100-vfio": {"gpu.nvidia.com": 8},
    "dgx-h200-mig": {"gpu.nvidia.com": 208},
    "dgx-a100": {"gpu.nvidia.com": 8, "dra.net": 8, "dra.cpu": 8},
    "dgx-a100-mig": {"gpu.nvidia.com": 200},
    "dgx-b200": {"gpu.nvidia.com": 8, "dra.net": 8},
    "gb200-nvl72": {"gpu.nvidia.com": 4, "dra.net": 8, "compute-domain.nvidia.com": 2},
    "p4d": {"gpu.nvidia.com": 8, "dra.net": 4},
    "p5": {"gpu.nvidia.com": 8, "dra.net": 32},
    "a3-mega": {"gpu.nvidia.com": 8, "dra.net": 8},
    "a3-ultra": {"gpu.nvidia.com": 8, "dra.net": 8},
    "nd-h100-v5": {"gpu.nvidia.com": 8, "dra.net": 8},
    "nd-a100-v4": {"gpu.nvidia.com": 8, "dra.net": 8, "dra.cpu": 4},
    "oci-h100": {"gpu.nvidia.com": 8, "dra.net": 16},
    "mi300x": {"gpu.amd.com": 8, "dra.net": 8},
    "mi300x-dpx": {"gpu.amd.com": 16},
    "mi300x-qpx": {"gpu.amd.com": 32},
    "mi300x-cpx": {"gpu.amd.com": 64},
    "mi300x-cpx-nps4": {"gpu.amd.com": 64},
    "gaudi3": {"gaudi.intel.com": 8},
    "max-1550": {"gpu.intel.com": 8},
    "qat": {"qat.intel.com": 64},
    "tpu-v5e": {"tpu.google.com": 4},
    "tpu-v5e-8": {"tpu.google.com": 8},
    "tpu-v5p": {"tpu.google.com": 4},
    "tpu-v6e": {"tpu.google.com": 4},
    "rngd": {"npu.furiosa.ai": 8},
    "cpu": {"dra.cpu": 2},
    "cpu-individual": {"dra.cpu": 128},
    "example": {"gpu.example.com": 8, "net.example.com": 8, "cpu.example.com": 2},
    "example-partitions": {"gpu.example.com": 40},
    "example-shared": {"gpu.example.com": 8},
    "example-binding-conditions": {"gpu.example.com": 8},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_node_has_the_devices_of_its_hardware(name: str) -> None:
    """So many devices of each driver."""
    node = first_node(name)
    found = {driver: len(devices(node, driver)) for driver in EXPECTED[name]}
    assert found == EXPECTED[name]


def groups(node: HardwareNode, attribute: str) -> dict[object, Counter[str]]:
    """How many GPUs and NICs share each value of an attribute."""
    found: dict[object, Counter[str]] = {}
    for driver in ("gpu.nvidia.com", "gpu.amd.com", "dra.net"):
        for device in devices(node, driver):
            value = device.attributes.get(attribute)
            key = None if value is None else (value.string or value.int_)
            found.setdefault(key, Counter())["nic" if driver == "dra.net" else "gpu"] += 1
    return found


def pairs(node: HardwareNode, attribute: str) -> Iterator[tuple[int, int]]:
    return ((count["gpu"], count["nic"]) for count in groups(node, attribute).values())


ALIGNMENT = {
    "dgx-h100": (ROOT, {(1, 1)}),
    "dgx-a100": (ROOT, {(2, 2)}),
    "p4d": (ROOT, {(2, 1)}),
    "p5": (ROOT, {(1, 4)}),
    "oci-h100": (ROOT, {(1, 2)}),
    "mi300x": (ROOT, {(1, 1)}),
    "a3-ultra": (NUMA, {(4, 4)}),
    "gb200-nvl72": (NUMA, {(2, 4)}),
    "nd-h100-v5": (NUMA, {(4, 4)}),
    "nd-a100-v4": (NUMA, {(2, 2)}),
}


@pytest.mark.parametrize("name", ALIGNMENT)
def test_gpus_and_nics_are_aligned_as_on_the_machine(name: str) -> None:
    """How many of each share a root or a NUMA node."""
    attribute, wanted = ALIGNMENT[name]
    assert set(pairs(first_node(name), attribute)) == wanted


def test_on_a_gb200_no_gpu_shares_a_root_with_a_nic() -> None:
    """Only the NUMA node aligns them."""
    assert all(0 in pair for pair in pairs(first_node("gb200-nvl72"), ROOT))


def test_azure_shows_no_roots() -> None:
    """The attribute is absent, so that nothing can be matched by it."""
    assert set(groups(first_node("nd-h100-v5"), ROOT)) == {None}


def test_a_rack_is_one_clique() -> None:
    """Eighteen trays with one NVLink domain; another rack has another."""
    first, second = (PROFILES["gb200-nvl72"].unit(number) for number in (0, 1))
    cliques = [
        {node.node.metadata.labels["nvidia.com/gpu.clique"] for node in rack}
        for rack in (first, second)
    ]
    assert [len(rack) for rack in (first, second)] == [18, 18]
    assert [len(each) for each in cliques] == [1, 1]
    assert cliques[0] != cliques[1]


def test_a_gpu_in_mig_mode_that_must_be_reset_is_not_offered_whole() -> None:
    """An A100 node has partitions only, an H100 node both."""
    for name, wanted in (("dgx-a100-mig", {"mig"}), ("dgx-h100-mig", {"gpu", "mig"})):
        found = devices(first_node(name), "gpu.nvidia.com")
        assert {device.attributes["type"].string for device in found} == wanted


def test_the_threads_of_a_core_are_neighbours() -> None:
    """A claim for two CPUs then gets a whole core. Half of the cores are on each socket."""
    cpus = [device.attributes for device in devices(first_node("cpu-individual"), "dra.cpu")]
    assert [cpu["coreID"].int_ for cpu in cpus] == [core for core in range(64) for _ in "ab"]
    assert [cpu["cpuID"].int_ for cpu in cpus][:4] == [0, 64, 1, 65]
    assert {cpu["cpuID"].int_ for cpu in cpus} == set(range(128))
    assert Counter(cpu["socketID"].int_ for cpu in cpus) == {0: 64, 1: 64}
    assert Counter(cpu["cacheL3ID"].int_ for cpu in cpus) == dict.fromkeys(range(8), 16)


def test_quickassist_is_for_ciphers_or_for_compression() -> None:
    """Physical functions are configured for one or the other; the names are those of their virtual functions."""
    found = {
        d.name: d.attributes["services"].string for d in devices(first_node("qat"), "qat.intel.com")
    }
    assert Counter(found.values()) == {"sym;asym": 32, "dc": 32}
    assert {"qatvf-0000-6b-00-1", "qatvf-0000-6b-02-0"} <= set(found)
    assert "qatvf-0000-6b-00-0" not in found


CLASSES = [
    ("qat", "qat.intel.com", "qat.intel.com", 64),
    ("cpu-individual", "dra.cpu", "dra.cpu", 128),
    ("dgx-h100", "gpu.nvidia.com", "gpu.nvidia.com", 8),
    ("dgx-h100-mig", "mig.nvidia.com", "gpu.nvidia.com", 200),
    ("dgx-h100-vfio", "vfio.gpu.nvidia.com", "gpu.nvidia.com", 8),
    ("gb200-nvl72", "compute-domain-default-channel.nvidia.com", "compute-domain.nvidia.com", 1),
    ("dgx-h100", "rdma", "dra.net", 8),
    ("a3-mega", "rdma", "dra.net", 0),
    ("p5", "efa", "dra.net", 32),
    ("mi300x-cpx", "gpu.amd.com", "gpu.amd.com", 64),
    ("gaudi3", "gaudi.intel.com", "gaudi.intel.com", 8),
    ("tpu-v5e", "tpu.google.com", "tpu.google.com", 4),
    ("rngd", "npu.furiosa.ai", "npu.furiosa.ai", 8),
    ("cpu", "dra.cpu", "dra.cpu", 2),
    ("example", "net.example.com", "net.example.com", 8),
]


@pytest.mark.parametrize(("name", "class_name", "driver", "count"), CLASSES)
def test_classes_select_the_devices_they_are_for(
    name: str, class_name: str, driver: str, count: int
) -> None:
    """The class that a driver installs matches so many of its devices."""
    node = first_node(name)
    (item,) = [item for item in node.classes if item.metadata.name == class_name]
    assert sum(selects(item, driver, device) for device in devices(node, driver)) == count


def test_extended_resources_are_the_vendors() -> None:
    """`nvidia.com/gpu` and the example driver's `example.com/gpu` lead to their classes."""
    found = {
        item.spec.extended_resource_name: item.metadata.name
        for name in ("dgx-h100", "example")
        for item in first_node(name).classes
        if item.spec.extended_resource_name
    }
    assert found == {"nvidia.com/gpu": "gpu.nvidia.com", "example.com/gpu": "gpu.example.com"}


def test_a_cluster_has_each_class_once() -> None:
    """However many nodes bring it."""
    cluster = simulate(parse_profiles("dgx-h100=3,dgx-h200=2,mi300x"))
    names = [item.metadata.name for item in cluster.classes]
    assert len(cluster.nodes) == 6
    assert len(set(names)) == len(names)
    assert len({node.node.metadata.name for node in cluster.nodes}) == 6

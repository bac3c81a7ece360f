"""What containers get from the drivers of AMD, Intel, Google, Furiosa and dra.cpu, on built machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from drayman.api.quantity import Quantity
from drayman.drivers.amd.driver import AmdGpuDriver
from drayman.drivers.cpu.devices import Cpu, in_order
from drayman.drivers.cpu.driver import CpuDriver
from drayman.drivers.google.driver import TpuDriver, environment
from drayman.drivers.kit.edits import answer_for
from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.kit.model import Claim, Prepared
from drayman.drivers.known import find_driver
from drivers.built import claim, held_by, machine_like, prepared

NODES = {
    "AMD": ("gpu.amd.com", "mi300x", "gpu-2-129", ["/dev/kfd", "/dev/dri/card2", "/dev/dri/renderD129"]),
    "a partition": (
        "gpu.amd.com", "mi300x-cpx-nps4", "gpu-12-139", ["/dev/kfd", "/dev/dri/card12", "/dev/dri/renderD139"],
    ),
    "Intel": ("gpu.intel.com", "max-1550", "0000-2a-00-0-0x0bd5", ["/dev/dri/card1", "/dev/dri/renderD129"]),
    "Gaudi": (
        "gaudi.intel.com",
        "gaudi3",
        "0000-2a-00-0-0x1060",
        ["/dev/accel/accel1", "/dev/accel/accel_controlD1", "/dev/infiniband/uverbs1"],
    ),
    "Furiosa": ("npu.furiosa.ai", "rngd", "npu3", ["/dev/rngd/npu3bar0", "/dev/rngd/npu3mgmt", "/dev/rngd/npu3pe0"]),
    "RDMA": ("dra.net", "p4d", "pci-0000-20-1b-0", ["/dev/infiniband/uverbs1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_containers_get_the_device_files_of_their_device(name: str, tmp_path: Path) -> None:
    """And no other's. One that is missing is named, because a container would start without a device."""
    driver_name, profile, device, nodes = NODES[name]
    machine = machine_like(profile, tmp_path)
    driver = find_driver(driver_name)("n", root=machine.root)
    (found,) = prepared(driver, claim(driver, device)).devices
    assert [node.path for node in found.device_nodes] == nodes
    wanted = claim(driver, device)
    if driver_name != "npu.furiosa.ai":  # whose files have no fixed names
        machine.path(nodes[-1]).unlink()
        with pytest.raises(PrepareError, match=f"{nodes[-1]} is not there"):
            prepared(driver, wanted)


def test_gaudi_tells_programs_which_ones_they_have(tmp_path: Path) -> None:
    """By number and by module; one that is not operational is reported."""
    machine = machine_like("gaudi3", tmp_path)
    driver = find_driver("gaudi.intel.com")("n", root=machine.root)
    names = ["0000-19-00-0-0x1060", "0000-3b-00-0-0x1060"]
    env = prepared(driver, claim(driver, *names)).env
    assert env == {
        "HABANA_VISIBLE_DEVICES": "0,2",
        "HL_VISIBLE_DEVICES": "0,2",
        "HABANA_VISIBLE_MODULES": "0,2",
    }
    machine.file("sys/class/accel/accel2/device/status", "in reset")
    sick = [report.device for report in driver.health() if report.healthy is False]
    assert sick == [names[1]]


def test_the_chips_of_a_host_are_used_together(tmp_path: Path) -> None:
    """A claim for some of them is refused with those that it lacks."""
    driver = TpuDriver("n", root=machine_like("tpu-v5e", tmp_path).root)
    found = prepared(driver, claim(driver, "0", "1", "2", "3"))
    assert [each.device_nodes[0].path for each in found.devices] == [
        f"/dev/vfio/{n}" for n in range(4)
    ]
    assert [node.path for node in found.device_nodes] == ["/dev/vfio/vfio"]
    assert found.env["TPU_ACCELERATOR_TYPE"] == found.env["ACCELERATOR_TYPE"] == "v5litepod-4"
    assert found.env["TPU_CHIPS_PER_HOST_BOUNDS"] == "2,2,1"
    assert environment("v5p", "2x2x1", 4)["TPU_ACCELERATOR_TYPE"] == "v5p-8"
    with pytest.raises(PrepareError, match="the claim lacks 2, 3"):
        prepared(driver, claim(driver, "0", "1"))


def test_a_chip_that_is_gone_is_not_published_and_reported(tmp_path: Path) -> None:
    """The others stay what they were. Where it was never known how they are arranged, the driver says so."""
    machine = machine_like("tpu-v5e", tmp_path)
    driver = TpuDriver("n", root=machine.root)
    before = driver.discover().devices
    machine.path("dev/vfio/2").unlink()
    others = tuple(device for device in before if device.name != "2")
    assert driver.discover().devices == others
    again = TpuDriver("n", root=machine.root)
    again.recover([held_by("u", before)])
    assert again.discover().devices == others
    with pytest.raises(PrepareError, match="the claim lacks 2"):
        prepared(driver, claim(driver, "0", "1", "3"))
    assert {report.device: report.healthy for report in driver.health()} == {
        "0": True,
        "1": True,
        "2": False,
        "3": True,
    }
    with pytest.raises(
        KitError, match="3 chips v5litepod: say how they are arranged with --topology"
    ):
        TpuDriver("n", root=machine.root).discover()


def cpus(number: int) -> dict[str, Quantity]:
    return {"dra.cpu/cpu": Quantity.parse(str(number))}


def cpuset(found: Prepared) -> set[tuple[str, str]]:
    """The variables by which containers, whichever devices they use, learn of their CPUs."""
    assert not found.env
    return {pair for each in found.devices for pair in each.env.items()}


def after(found: Prepared, wanted: Claim) -> Claim:
    """A claim as those that come later see it."""
    return replace(wanted, state=found.state)


def test_claims_have_cpus_to_themselves(tmp_path: Path) -> None:
    """Of the NUMA node that they asked for, and until they are unprepared; they may name them."""
    driver = CpuDriver("n", root=machine_like("cpu", tmp_path).root)
    first = claim(driver, "cpudevnuma000", uid="a-1", consumed=cpus(4))
    found = prepared(driver, first)
    assert cpuset(found) == {("DRA_CPUSET_a-1", "0-3")}
    others = (after(found, first),)
    second = claim(driver, "cpudevnuma000", uid="b", consumed=cpus(2))
    assert cpuset(prepared(driver, replace(second, others=others))) == {("DRA_CPUSET_b", "4-5")}
    other = claim(driver, "cpudevnuma001", uid="c", consumed=cpus(1))
    assert cpuset(prepared(driver, replace(other, others=others))) == {("DRA_CPUSET_c", "64")}
    named = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": "2-3"}}
    third = claim(driver, "cpudevnuma000", uid="d", said=named, consumed=cpus(2))
    assert cpuset(prepared(driver, third)) == {("DRA_CPUSET_d", "2-3")}


def test_all_shares_of_a_device_count(tmp_path: Path) -> None:
    """A claim that has two of one has the CPUs of both, and others get neither."""
    driver = CpuDriver("n", root=machine_like("cpu", tmp_path).root)
    two = claim(driver, "cpudevnuma000", "cpudevnuma000", uid="a", consumed=cpus(2))
    shares = tuple(replace(each, share_id=f"s{at}") for at, each in enumerate(two.devices))
    two = replace(two, devices=shares)
    found = prepared(driver, two)
    assert cpuset(found) == {("DRA_CPUSET_a", "0-3")}
    assert [each.data for each in found.devices] == [{"cpuset": "0-1"}, {"cpuset": "2-3"}]
    next_ = claim(driver, "cpudevnuma000", uid="b", consumed=cpus(1))
    others = (after(found, two),)
    assert cpuset(prepared(driver, replace(next_, others=others))) == {("DRA_CPUSET_b", "4")}


def test_who_looks_at_cpus_takes_none(tmp_path: Path) -> None:
    """Nor is told to stay on those that others of the claim have."""
    driver = CpuDriver("n", root=machine_like("cpu", tmp_path).root)
    wanted = claim(driver, "cpudevnuma000", "cpudevnuma001", uid="a", consumed=cpus(4))
    looking, having = wanted.devices
    mixed = replace(wanted, devices=(replace(looking, admin_access=True), having))
    found = prepared(driver, mixed)
    assert [each.device for each in found.devices] == [having]
    assert cpuset(found) == {("DRA_CPUSET_a", "64-67")}
    answer, _ = answer_for(driver.name, mixed, found)
    assert [bool(each.cdi_ids) for each in answer.devices] == [False, True]
    free = claim(driver, "cpudevnuma000", uid="b", consumed=cpus(1))
    others = (after(found, mixed),)
    assert cpuset(prepared(driver, replace(free, others=others))) == {("DRA_CPUSET_b", "0")}


def test_cpus_are_grouped_as_told_without_those_that_are_reserved(tmp_path: Path) -> None:
    """By socket or for the whole machine; no claim gets a reserved one."""
    root = machine_like("cpu", tmp_path).root
    driver = CpuDriver("n", group_by="socket", reserved_cpus=range(4), root=root)
    first, second = driver.discover().devices
    assert [first.name, second.name] == ["cpudevsocket000", "cpudevsocket001"]
    assert [each.attributes["numCPUs"].int_ for each in (first, second)] == [60, 64]
    assert set(first.attributes) == {"numCPUs", "smtEnabled", "socketID"}
    four = claim(driver, "cpudevsocket000", uid="a", consumed=cpus(4))
    assert cpuset(prepared(driver, four)) == {("DRA_CPUSET_a", "4-7")}
    (machine,) = CpuDriver("n", group_by="machine", root=root).discover().devices
    assert machine.name == "cpudevmachine"
    assert set(machine.attributes) == {"numCPUs", "smtEnabled"}


def test_single_cpus_are_numbered_by_the_first_thread_of_their_core() -> None:
    """Also where the sockets take turns, as many machines count them."""
    found = [
        Cpu(number=number, core=number // 2 % 2, cache=0, numa=0, socket=number % 2, smt=True)
        for number in range(8)
    ]
    assert [cpu.number for cpu in in_order(found)] == [0, 4, 1, 5, 2, 6, 3, 7]


def test_amd_writes_names_without_parentheses(tmp_path: Path) -> None:
    """As its own driver does, so that selectors fit both."""
    machine = machine_like("mi300x", tmp_path)
    for path in machine.root.glob("sys/devices/*/**/product_name"):
        path.write_text("AMD Instinct (TM) X\n")
    found = AmdGpuDriver("n", root=machine.root).discover().devices
    assert {each.attributes["productName"].string for each in found} == {"AMD_Instinct_TM_X"}


UNREADABLE = {"mi300x": "80Gi", "mi300x-cpx-nps4": "20Gi"}


@pytest.mark.parametrize("profile", UNREADABLE)
def test_memory_that_cannot_be_read_is_what_amd_assumes(profile: str, tmp_path: Path) -> None:
    """A GPU without memory would be selected by nobody."""
    machine = machine_like(profile, tmp_path)
    for bank in machine.root.glob("sys/class/kfd/kfd/topology/nodes/*/mem_banks/0/properties"):
        bank.unlink()
    found = AmdGpuDriver("n", root=machine.root).discover().devices
    assert {str(each.capacity["memory"].value) for each in found} == {UNREADABLE[profile]}


def test_a_card_with_two_digits_is_another_one(tmp_path: Path) -> None:
    """The files of npu10 are not those of npu1."""
    machine = machine_like("rngd", tmp_path)
    for name in ("npu10mgmt", "npu1"):
        machine.file(f"dev/rngd/{name}")
    driver = find_driver("npu.furiosa.ai")("n", root=machine.root)
    (found,) = prepared(driver, claim(driver, "npu1")).devices
    names = [node.path.rpartition("/")[2] for node in found.device_nodes]
    assert names == ["npu1", "npu1bar0", "npu1mgmt", "npu1pe0"]


CPUS = {
    "taken": ("0", 1, "cpuConfig.cpuset: 0 is in use, or not of cpudevnuma000"),
    "of the other NUMA node": ("70", 1, "cpuConfig.cpuset: 70 is in use, or not of cpudevnuma000"),
    "more than the claim has": ("4-6", 2, "cpuConfig.cpuset: it names 3 CPUs, and the claim has 2"),
    "more than there are": ("", 63, "cpudevnuma000 has 62 CPUs left, and the claim 63"),
}


@pytest.mark.parametrize("name", CPUS)
def test_cpus_that_cannot_be_had_are_named(name: str, tmp_path: Path) -> None:
    """The message has the field of the claim that is wrong."""
    named, amount, problem = CPUS[name]
    driver = CpuDriver("n", root=machine_like("cpu", tmp_path).root)
    first = claim(driver, "cpudevnuma000", uid="a", consumed=cpus(2))
    others = (after(prepared(driver, first), first),)
    said = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": named}} if named else None
    second = claim(driver, "cpudevnuma000", uid="b", said=said, consumed=cpus(amount))
    with pytest.raises(PrepareError, match=problem):
        prepared(driver, replace(second, others=others))

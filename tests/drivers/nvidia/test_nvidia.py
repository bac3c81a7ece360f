"""The NVIDIA driver on machines that are made of folders and a library that answers like NVML."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_

from drayman.api.quantity import Quantity
from drayman.api.resource import Device
from drayman.driver_configs.decoding import decode
from drayman.driver_configs.known import CONFIGS
from drayman.driver_configs.nvidia import MpsConfig
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.health import tainted
from drayman.drivers.kit.model import Allocated, Claim, Hardware
from drayman.drivers.nvidia import files, programs
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.health import Errors
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES
from drayman.drivers.profiles.hardware import pool_slices
from drayman.testing import FakeGpu, FakeMachine, FakeNvml
from drayman.testing.trees import add_capabilities, add_nvidia_gpus, nvidia_gpus

HEAD = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}


class Rig:
    """A machine with GPUs, its driver, and programs that note how they were called."""

    def __init__(self, folder: Path, profile: str = "dgx-h200", **options: bool) -> None:
        (self.node, *_) = PROFILES[profile].unit(0)
        self.machine = FakeMachine(folder / "root")
        gpus = nvidia_gpus(self.node)
        add_nvidia_gpus(self.machine, gpus)
        self.fake = FakeNvml(
            [FakeGpu(replace(gpu, model=replace(gpu.model, numbered=False))) for gpu in gpus]
        )
        self.mps = folder / "mps"
        self.options = options
        self.driver = self.start()

    def start(self) -> NvidiaGpuDriver:
        return NvidiaGpuDriver(
            self.node.node.metadata.name,
            mps_dir=self.mps,
            nvml=Nvml(self.fake),
            root=self.machine.root,
            **self.options,
        )

    def claim(self, *names: str, sharing: object = None, uid: str = "u", **more: bool) -> Claim:
        devices = {device.name: device for device in self.driver.discover().devices}
        said = HEAD | ({"sharing": sharing} if sharing else {})
        config = decode(said, CONFIGS["gpu.nvidia.com"])
        return Claim(
            namespace="default",
            name="c",
            uid=uid,
            devices=tuple(
                Allocated(
                    request="r", pool="n", name=name, device=devices[name], config=config, **more
                )
                for name in names
            ),
        )


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def programs_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs in NVIDIA's names that write down their arguments and what they are told."""
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    calls.touch()
    for name in ("nvidia-smi", "nvidia-cuda-mps-control"):
        script = folder / name
        script.write_text(
            "#!/bin/sh\n"
            f'echo "{name} $* [$(cat)] $CUDA_VISIBLE_DEVICES" >> {calls}\n'
            '[ "$1" = -d ] && touch "$CUDA_MPS_PIPE_DIRECTORY/control"; true\n'
        )
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return calls


WHOLE = ("dgx-h100", "dgx-h200", "dgx-a100", "dgx-b200", "p4d", "p5", "gb200-nvl72", "oci-h100")
DIVIDED = ("dgx-h100-mig", "dgx-h200-mig", "dgx-a100-mig", "dgx-b200-mig")


def described(hardware: Hardware, node: str) -> list[object]:
    slices = pool_slices(node, "gpu.nvidia.com", hardware.groups, hardware.counters)
    return [each.spec for each in slices]


def without_numbers(device: Device) -> Device:
    """Simulated A100 have the numbers that older releases of the driver published."""
    kept = {
        name: each for name, each in device.attributes.items() if name not in ("index", "minor")
    }
    return with_(device, attributes=kept)


@pytest.mark.parametrize("profile", [*WHOLE, *DIVIDED])
def test_what_is_discovered_is_what_the_profile_of_the_hardware_has(
    tmp_path: Path, profile: str
) -> None:
    """Slice by slice: names, attributes, capacities and counters."""
    rig = Rig(tmp_path, profile, dynamic_mig=profile in DIVIDED)
    if profile == "dgx-a100-mig":  # which must be reset to change
        for gpu in rig.fake.gpus:
            gpu.mig_enabled = True
    name = rig.node.node.metadata.name
    wanted = [each.spec for each in rig.node.slices if each.spec.driver == "gpu.nvidia.com"]
    plain = [
        with_(
            spec,
            devices=tuple(map(without_numbers, spec.devices)) if spec.devices else spec.devices,
        )
        for spec in wanted
    ]
    assert described(rig.driver.discover(), name) == plain


def test_a_container_gets_its_gpu_and_nothing_else(rig: Rig) -> None:
    """The device file of the GPU, those that all need, and no word for NVIDIA's own runtime."""
    prepared = rig.driver.prepare(rig.claim("gpu-3"))
    (device,) = prepared.devices
    assert [node.path for node in device.device_nodes] == [
        "/dev/nvidia3",
        "/dev/dri/card3",
        "/dev/dri/renderD131",
    ]
    assert [node.path for node in prepared.device_nodes] == [
        "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset",
    ]  # fmt: skip
    assert prepared.env == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert rig.fake.calls == []


def test_a_device_file_that_is_missing_is_named(rig: Rig) -> None:
    """A container without it would start and find no GPU."""
    rig.machine.path("dev/nvidia3").unlink()
    with pytest.raises(PrepareError, match=r"^/dev/nvidia3 is not there"):
        rig.driver.prepare(rig.claim("gpu-3"))


def test_time_slices_are_set_by_nvidia_smi(rig: Rig, programs_called: Path) -> None:
    """With the number of the interval, in the default compute mode."""
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    claim = rig.claim("gpu-0", sharing=sharing)
    prepared = rig.driver.prepare(claim)
    uuid = rig.fake.gpus[0].gpu.uuid
    assert programs_called.read_text().startswith(
        f"nvidia-smi compute-policy -i {uuid} --set-timeslice=3 "
    )
    assert rig.fake.gpus[0].compute_mode == 0
    rig.driver.unprepare(with_(claim, state=prepared.state))
    assert "--set-timeslice=0 " in programs_called.read_text().splitlines()[-1]
    rig.driver.unprepare(claim)  # one that was not completed: there may be no such program
    assert len(programs_called.read_text().splitlines()) == 2


def test_mps_is_a_daemon_with_limits_that_ends_with_the_claim(
    rig: Rig, programs_called: Path
) -> None:
    """It serves the GPUs of the claim, alone; containers find it by its pipes."""
    limits = {"defaultActiveThreadPercentage": 40, "defaultPinnedDeviceMemoryLimit": "10Gi"}
    claim = rig.claim("gpu-0", "gpu-1", sharing={"strategy": "MPS", "mpsConfig": limits})
    prepared = rig.driver.prepare(claim)
    pipes = str(rig.mps / "u" / "pipe")
    assert prepared.env["CUDA_MPS_PIPE_DIRECTORY"] == pipes
    assert {mount.container_path for mount in prepared.mounts} >= {pipes, "/dev/shm"}
    assert [gpu.compute_mode for gpu in rig.fake.gpus[:3]] == [3, 3, 0]
    said = programs_called.read_text().splitlines()
    uuids = ",".join(gpu.gpu.uuid for gpu in rig.fake.gpus[:2])
    assert said[0] == f"nvidia-cuda-mps-control -d [] {uuids}"
    assert [line.partition("[")[2].partition("]")[0] for line in said[1:]] == [
        "set_default_active_thread_percentage 40",
        "set_default_device_pinned_mem_limit 0 10240M",
        "set_default_device_pinned_mem_limit 1 10240M",
    ]
    for _ in range(2):  # the second time there is nothing to do
        rig.driver.unprepare(claim)
    assert programs_called.read_text().splitlines()[4:] == ["nvidia-cuda-mps-control  [quit] "]
    assert [gpu.compute_mode for gpu in rig.fake.gpus[:2]] == [0, 0]
    assert not (rig.mps / "u").exists()


LIMITS = {
    "by place": ({"1": "1Gi"}, ["set_default_device_pinned_mem_limit 1 1024M"]),
    "by UUID": ({"GPU-b": "2Gi"}, ["set_default_device_pinned_mem_limit 1 2048M"]),
    "of another claim": ({"GPU-c": "1Gi"}, "[GPU-c]: the claim has no such device"),
    "beyond the last": ({"2": "1Gi"}, "[2]: the claim has no such device"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_for_devices_of_the_claim(name: str) -> None:
    """By place or UUID; one for another device is refused, because it would not hold."""
    said, wanted = LIMITS[name]
    config = MpsConfig(
        default_per_device_pinned_memory_limit={
            key: Quantity.parse(value) for key, value in said.items()
        }
    )
    if isinstance(wanted, list):
        assert programs.commands(["GPU-a", "GPU-b"], config) == wanted
    else:
        with pytest.raises(PrepareError) as caught:
            programs.commands(["GPU-a", "GPU-b"], config)
        assert wanted in str(caught.value)


def test_a_machine_without_the_programs_or_the_rights_says_so(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is what the owner of the pod reads."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(PrepareError, match=r"^nvidia-smi is not installed on the node$"):
        rig.driver.prepare(rig.claim("gpu-0", sharing={"strategy": "TimeSlicing"}))
    rig.fake.may_change = False
    with pytest.raises(
        PrepareError, match="compute mode EXCLUSIVE_PROCESS cannot be set: Insufficient Permissions"
    ):
        rig.driver.prepare(rig.claim("gpu-0", sharing={"strategy": "MPS"}))


def test_partitions_are_made_and_destroyed(tmp_path: Path) -> None:
    """At the place that the name says; MIG is switched on for the first and off for the whole."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    claim = rig.claim("gpu-0-mig-3g71gb-9-4")
    prepared = rig.driver.prepare(claim)
    (device,) = prepared.devices
    assert [node.path for node in device.device_nodes][-2:] == [
        "/dev/nvidia-caps/nvidia-cap10",
        "/dev/nvidia-caps/nvidia-cap11",
    ]
    assert rig.fake.calls == [
        ("mig mode", ("gpu-0", 1)), ("create", ("gpu-0", "3g.71gb", 4)), ("compute", ("3g.71gb", 2)),
    ]  # fmt: skip
    with pytest.raises(
        PrepareError, match=r"gpu-0 is divided, and no claim has gpu-0-mig-3g71gb-9-4"
    ):
        rig.driver.prepare(rig.claim("gpu-0"))
    for _ in range(2):
        rig.driver.unprepare(claim)
    assert rig.fake.calls[3:] == [("destroy", ("gpu-0", "3g.71gb", 4))]
    rig.driver.prepare(rig.claim("gpu-0"))
    assert rig.fake.calls[4:] == [("mig mode", ("gpu-0", 0))]


def test_what_was_half_made_is_found_by_its_place(tmp_path: Path) -> None:
    """A driver that was killed between the two instances of a partition remembers nothing."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    claim = rig.claim("gpu-0-mig-1g18gb-19-2")
    gpu = rig.fake.gpus[0]
    gpu.mig_enabled = True
    with pytest.raises(
        PrepareError, match="/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access cannot be read"
    ):
        rig.driver.prepare(claim)
    next(iter(gpu.made.values())).compute.clear()
    rig.driver = rig.start()
    rig.driver.unprepare(claim)
    assert gpu.made == {}


def test_partitions_that_no_claim_has_are_destroyed_only_when_asked(tmp_path: Path) -> None:
    """At the start, and never those of a claim."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    add_capabilities(rig.machine, 0, instance=2)
    kept, lost = rig.claim("gpu-0-mig-1g18gb-19-2"), rig.claim("gpu-0-mig-1g18gb-19-3")
    for claim in (kept, lost):
        rig.driver.prepare(claim)
    gpu = rig.fake.gpus[0]
    rig.start().recover([kept])
    assert sorted(each.start for each in gpu.made.values()) == [2, 3]
    rig.options["destroy_unknown_mig"] = True
    rig.start().recover([kept])
    assert sorted(each.start for each in gpu.made.values()) == [2]


REFUSED = {
    "one that must be reset": ({"needs_reset": True}, "it must be reset before MIG is on"),
    "one that is in use": ({"busy": True}, "MIG cannot be switched on: In use by another client"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_gpu_that_cannot_be_divided_says_why(tmp_path: Path, name: str) -> None:
    """In words, with the GPU."""
    state, problem = REFUSED[name]
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    for field, value in state.items():
        setattr(rig.fake.gpus[0], field, value)
    with pytest.raises(PrepareError, match=problem):
        rig.driver.prepare(rig.claim("gpu-0-mig-1g18gb-19-2"))


def test_partitions_that_are_there_are_published_as_they_are(tmp_path: Path) -> None:
    """Static MIG: with UUID and the slices they hold; nothing is made or destroyed for a claim."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    rig.driver.prepare(rig.claim("gpu-0-mig-2g35gb-14-4"))
    rig.options["dynamic_mig"] = False
    rig.driver = rig.start()
    found = {device.name: device for device in rig.driver.discover().devices}
    assert len(found) == 8
    part = found["gpu-0-mig-2g35gb-14-4"]
    assert part.attributes["uuid"].string.startswith("MIG-")
    assert [name for name in part.capacity if name.startswith("memorySlice")] == [
        "memorySlice4",
        "memorySlice5",
    ]
    before = list(rig.fake.calls)
    claim = rig.claim("gpu-0-mig-2g35gb-14-4")
    rig.driver.prepare(claim)
    rig.driver.unprepare(claim)
    assert rig.fake.calls == before


def test_an_error_taints_every_part_of_the_gpu(tmp_path: Path) -> None:
    """NoSchedule for one of the hardware, None for one of a program; a lost GPU taints all, because it cannot be told which."""
    errors = Errors()
    errors.add("GPU-a", 79)
    errors.add("GPU-a", 13)
    errors.add("GPU-b", 13)
    found = {
        (device, uuid): [
            (r.healthy, r.taint_key, r.taint_value, r.effect) for r in errors.reports(device, uuid)
        ]
        for device, uuid in (("gpu-0-mig-x", "GPU-a"), ("gpu-1", "GPU-b"), ("gpu-2", "GPU-c"))
    }
    assert list(found.values()) == [
        [(False, "gpu.nvidia.com/xid", "79", "NoSchedule")],
        [(False, "gpu.nvidia.com/xid", "13", "None")],
        [(True, "", "", "NoSchedule")],
    ]
    errors.add("", 79)
    (report,) = errors.reports("gpu-2", "GPU-c")
    hardware = tainted("gpu.nvidia.com", Hardware.of([Device(name="gpu-2")]), [report])
    assert [taint.key for taint in hardware.devices[0].taints] == ["gpu.nvidia.com/gpu-lost"]


async def test_errors_are_reported_as_they_come(rig: Rig) -> None:
    """First that all is well, then the error of the one that has it."""
    rig.driver.discover()
    stream = rig.driver.health()
    first = list(await anext(stream))
    assert {report.healthy for report in first} == {True}
    rig.fake.report_xid(rig.fake.gpus[2], 79)
    second = {report.device: report for report in await anext(stream)}
    assert [name for name, report in second.items() if report.healthy is False] == ["gpu-2"]
    await stream.aclose()


LISTING = """\
3 libs found in cache `/etc/ld.so.cache'
	libcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1
	libcuda.so.1 (libc6) => /usr/lib/libcuda.so.1
	libnvidia-ml.so.1 (libc6,x86-64) => /usr/lib64/libnvidia-ml.so.1
	libc.so.6 (libc6,x86-64) => /usr/lib64/libc.so.6
"""


def test_libraries_are_nvidias_own_of_the_usual_size() -> None:
    """Others are the container's business."""
    assert files.listed_libraries(LISTING) == [
        "/usr/lib64/libcuda.so.1",
        "/usr/lib64/libnvidia-ml.so.1",
    ]


def test_a_gpu_in_a_fabric_has_a_clique(rig: Rig) -> None:
    """Its cluster and number; one without, or not yet registered, has none."""
    gpu = rig.fake.gpus[0]
    nvml = Nvml(rig.fake)
    assert nvml.clique(gpu.gpu.uuid) is None
    gpu.clique = (bytes(range(16)), 7)
    assert nvml.clique(gpu.gpu.uuid) == "00010203-0405-0607-0809-0a0b0c0d0e0f.7"
    gpu.clique = (bytes(16), 7)
    assert nvml.clique(gpu.gpu.uuid) is None


def test_the_fake_takes_what_the_library_takes() -> None:
    """Every function by its name, with as many arguments; where the package is installed."""
    library = pytest.importorskip("pynvml")
    for name, mine in inspect.getmembers(FakeNvml, inspect.isfunction):
        if name.startswith("nvml"):
            real = inspect.signature(getattr(library, name)).parameters
            own = list(inspect.signature(mine).parameters)[1:]
            assert own == list(real), name

"""GPUs that several programs use, by time slices and MPS."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from drayman.api.quantity import Quantity
from drayman.driver_configs.nvidia import MpsConfig
from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.nvidia import programs
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.nvml import Nvml
from drivers.nvidia.rig import Rig


def test_time_slices_are_set_by_nvidia_smi(rig: Rig, programs_called: Path) -> None:
    """With the number of the interval, in the default compute mode."""
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    claim = rig.claim("gpu-0", sharing=sharing)
    rig.driver.prepare(claim)
    uuid = rig.fake.gpus[0].gpu.uuid
    assert programs_called.read_text().startswith(
        f"nvidia-smi compute-policy -i {uuid} --set-timeslice 3 "
    )
    assert rig.fake.gpus[0].compute_mode == 0
    rig.driver.unprepare(claim)
    assert "--set-timeslice 0 " in programs_called.read_text().splitlines()[-1]


def test_mps_is_a_daemon_with_limits_that_ends_with_the_claim(
    rig: Rig, programs_called: Path
) -> None:
    """It serves the GPUs of the claim, alone; containers find it by its pipes."""
    limits = {"defaultActiveThreadPercentage": 40, "defaultPinnedDeviceMemoryLimit": "10Gi"}
    claim = rig.claim("gpu-0", "gpu-1", sharing={"strategy": "MPS", "mpsConfig": limits})
    prepared = rig.driver.prepare(claim)
    pipes = str(rig.mps / "u" / "pipe")
    for device in prepared.devices:
        assert device.env == {"CUDA_MPS_PIPE_DIRECTORY": pipes}
        assert [mount.container_path for mount in device.mounts] == [pipes, "/dev/shm"]
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
    assert programs_called.read_text().splitlines()[4:] == ["nvidia-cuda-mps-control  [quit -t 5] "]
    assert [gpu.compute_mode for gpu in rig.fake.gpus[:2]] == [0, 0]
    assert not (rig.mps / "u").exists()


def test_mps_is_for_containers_of_what_it_shares(rig: Rig, programs_called: Path) -> None:
    """A container with another GPU of the claim would look there for a daemon that does not serve it."""
    shared, alone = rig.claim("gpu-0", sharing={"strategy": "MPS"}), rig.claim("gpu-1")
    both = replace(shared, devices=(*shared.devices, *alone.devices))
    prepared = rig.driver.prepare(both)
    assert [bool(device.env and device.mounts) for device in prepared.devices] == [True, False]
    assert prepared.env == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert prepared.mounts == []
    rig.driver.unprepare(both)


def test_a_daemon_is_found_where_it_was_started(rig: Rig, programs_called: Path) -> None:
    """Also by a driver that starts others elsewhere."""
    claim = rig.claim("gpu-0", sharing={"strategy": "MPS"})
    prepared = rig.driver.prepare(claim)
    folder, rig.mps = rig.mps, rig.mps.with_name("elsewhere")
    rig.start().unprepare(replace(claim, state=prepared.state))
    assert not (folder / "u").exists()
    assert programs_called.read_text().splitlines()[-1] == "nvidia-cuda-mps-control  [quit -t 5] "


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


def test_half_of_a_claim_is_undone(rig: Rig, programs_called: Path) -> None:
    """The slices of the first GPU are set back also if the second one could not be prepared."""
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    claim = rig.claim("gpu-0", "gpu-1", sharing=sharing)
    rig.machine.path("dev/nvidia1").unlink()
    with pytest.raises(PrepareError):
        rig.driver.prepare(claim)
    rig.driver.unprepare(claim)
    uuid = rig.fake.gpus[0].gpu.uuid
    assert [line.partition(" [")[0] for line in programs_called.read_text().splitlines()][:2] == [
        f"nvidia-smi compute-policy -i {uuid} --set-timeslice 3",
        f"nvidia-smi compute-policy -i {uuid} --set-timeslice 0",
    ]


def test_a_claim_whose_program_is_missing_is_undone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not stay because of what kept it from being prepared."""
    monkeypatch.setenv("PATH", "/nonexistent")
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    rig.driver.unprepare(rig.claim("gpu-0", sharing=sharing))


def test_a_daemon_that_has_crashed_does_not_keep_its_claim(rig: Rig, programs_called: Path) -> None:
    """Its pipe is still there, and nobody answers."""
    old = os.umask(0o077)
    try:
        claim = rig.claim("gpu-0", sharing={"strategy": "MPS"})
        rig.driver.prepare(claim)
    finally:
        os.umask(old)
    pipes = rig.mps / "u" / "pipe"
    assert pipes.stat().st_mode & 0o777 == 0o755, "programs of other users find it"
    os.kill(int((pipes / "nvidia-cuda-mps-control.pid").read_text()), signal.SIGKILL)
    rig.driver.unprepare(claim)
    assert not (rig.mps / "u").exists()
    assert rig.fake.gpus[0].compute_mode == 0


LONG = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}


def test_settings_that_are_kept_are_not_touched(rig: Rig, programs_called: Path) -> None:
    """MPS runs in the mode that there is, and slices have the length that they have; another length is refused by field."""
    rig.fake.may_change = False
    rig.options = {"keep_settings": True}
    driver = rig.start()
    plain = rig.claim("gpu-0", sharing={"strategy": "TimeSlicing"})
    mps = rig.claim("gpu-1", sharing={"strategy": "MPS"}, uid="v")
    for claim in (plain, mps):
        prepared = driver.prepare(claim)
        driver.unprepare(replace(claim, state=prepared.state))
    assert [line.split(" [")[0] for line in programs_called.read_text().splitlines()] == [
        "nvidia-cuda-mps-control -d",
        "nvidia-cuda-mps-control ",
    ]
    refused = rig.claim("gpu-0", sharing=LONG)
    with pytest.raises(PrepareError, match=r"^sharing\.timeSlicingConfig\.interval: Long: "):
        driver.prepare(refused)
    driver.unprepare(refused)
    rig.fake.gpus[0].mig_enabled = True
    with pytest.raises(PrepareError, match="gpu-0 is in MIG mode, and the driver runs with"):
        driver.prepare(plain)
    with pytest.raises(KitError, match="--dynamic-mig"):
        NvidiaGpuDriver("n", dynamic_mig=True, keep_settings=True, nvml=Nvml(rig.fake))


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_was_changed_is_set_back(rig: Rig, programs_called: Path, is_whole: bool) -> None:
    """And nothing else, whatever the options are by then, also of claims that were only half prepared."""
    mps, sliced = rig.claim("gpu-0", sharing={"strategy": "MPS"}), rig.claim("gpu-1", sharing=LONG)
    for claim in (mps, sliced):
        rig.driver.prepare(claim)
    assert rig.fake.gpus[0].compute_mode == 3
    rig.options = {"keep_settings": True}
    keeping = rig.start()
    for claim in (mps, sliced):
        keeping.unprepare(claim)
    assert rig.fake.gpus[0].compute_mode == 0
    assert "--set-timeslice 0 " in programs_called.read_text().splitlines()[-1]
    rig.fake.gpus[0].compute_mode = 3  # as whoever lends it wants it
    state = keeping.prepare(mps).state if is_whole else None
    rig.fake.may_change = False
    rig.driver.unprepare(replace(mps, state=state))
    assert rig.fake.gpus[0].compute_mode == 3
    assert not list(rig.own.rglob("GPU-*"))

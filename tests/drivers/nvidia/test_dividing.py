"""Partitions of GPUs: made for claims, or as they are."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia.nvml import Nvml
from drayman.testing import FakeGpu
from drayman.testing.trees import add_capabilities
from drivers.nvidia.rig import Rig


def test_partitions_are_made_and_destroyed(tmp_path: Path) -> None:
    """At the place that the name says; MIG is switched on for the first and off after the last."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    claim = rig.claim("gpu-0-mig-3g71gb-9-4")
    prepared = rig.driver.prepare(claim)
    (device,) = prepared.devices
    assert [node.path for node in device.device_nodes] == [
        "/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap10", "/dev/nvidia-caps/nvidia-cap11",
    ]  # fmt: skip
    assert rig.fake.calls == [
        ("mig mode", ("gpu-0", 1)), ("create", ("gpu-0", "3g.71gb", 4)), ("compute", ("3g.71gb", 2)),
    ]  # fmt: skip
    with pytest.raises(PrepareError, match=r"^gpu-0 is divided: gpu-0-mig-3g71gb-9-4; "):
        rig.driver.prepare(rig.claim("gpu-0"))
    for _ in range(2):
        rig.driver.unprepare(claim)
    assert rig.fake.calls[3:] == [
        ("destroy", ("gpu-0", "3g.71gb", 4)),
        ("mig mode", ("gpu-0", 0)),
    ]
    rig.fake.gpus[0].mig_enabled = True  # as somebody else may leave it
    rig.driver.prepare(rig.claim("gpu-0"))
    assert not rig.fake.gpus[0].mig_enabled


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


def test_partitions_that_cannot_be_destroyed_do_not_keep_the_driver_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is in use stays, one of a lost GPU too, and those of a virtual GPU are its host's; the others are destroyed."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True, destroy_unknown_mig=True)
    for gpu in rig.fake.gpus[:4]:
        make(rig, gpu, 2)
    busy, lost, lent, idle = rig.fake.gpus[:4]
    busy.busy, lost.is_lost, lent.is_virtual = True, True, True
    rig.driver.recover([])
    assert [len(gpu.made) for gpu in (busy, lost, lent, idle)] == [1, 1, 1, 0]
    assert "partition gpu-0-mig-1g18gb-19-2 stays: " in caplog.text


def make(rig: Rig, gpu: FakeGpu, start: int) -> None:
    """A small partition, as somebody else may make one."""
    gpu.mig_enabled = True
    Nvml(rig.fake).partitions.create(gpu.gpu.uuid, gpu.gpu.model.mig_profiles[0], start)


def test_no_other_instance_divides_meanwhile(tmp_path: Path) -> None:
    """What one has found must hold until it has acted on it: all that is done is done under a lock of the driver's folder."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True, destroy_unknown_mig=True)
    rig.driver.folder = tmp_path
    add_capabilities(rig.machine, 0, instance=2)
    claim = rig.claim("gpu-0-mig-1g18gb-19-2")
    make(rig, rig.fake.gpus[1], 2)
    rig.fake.calls = Noting(tmp_path / "dividing")
    rig.driver.prepare(claim)
    rig.driver.unprepare(claim)
    rig.driver.recover([])
    done = ("mig mode", "create", "compute", "destroy", "mig mode", "destroy")
    assert rig.fake.calls == [(what, True) for what in done]
    assert not is_held(tmp_path / "dividing")


class Noting(list[tuple[str, Any]]):
    """What is changed, and whether a lock is held meanwhile."""

    def __init__(self, lock: Path) -> None:
        super().__init__()
        self._lock = lock

    def append(self, call: tuple[str, Any]) -> None:
        super().append((call[0], is_held(self._lock)))


def is_held(path: Path) -> bool:
    """Whether another one would have to wait."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_whoever_only_looks_at_a_partition_neither_makes_nor_destroys_it(tmp_path: Path) -> None:
    """One that is not there cannot be looked at; a GPU can, while others have parts of it."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    name = "gpu-0-mig-3g71gb-9-4"
    looking = rig.claim(name, uid="admin", admin_access=True)
    with pytest.raises(PrepareError, match=rf"^partition {name} is not there$"):
        rig.driver.prepare(looking)
    rig.driver.unprepare(looking)
    assert rig.fake.calls == []
    used = rig.driver.prepare(rig.claim(name))
    before = list(rig.fake.calls)
    assert rig.driver.prepare(looking).devices[0].device_nodes == used.devices[0].device_nodes
    rig.driver.unprepare(looking)
    rig.driver.prepare(rig.claim("gpu-0", uid="admin", admin_access=True))
    assert rig.fake.calls == before


@pytest.mark.parametrize("dynamic", [True, False])
def test_what_is_destroyed_is_what_was_made_whatever_the_options_are_by_now(
    tmp_path: Path, dynamic: bool
) -> None:
    """A partition that the driver made goes also without --dynamic-mig; one that it found stays also with it, in MIG mode."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=dynamic)
    add_capabilities(rig.machine, 0, instance=1)
    gpu = rig.fake.gpus[0]
    if not dynamic:
        make(rig, gpu, 2)
    claim = rig.claim("gpu-0-mig-1g18gb-19-2")
    rig.driver.prepare(claim)
    rig.options["dynamic_mig"] = not dynamic
    rig.start().unprepare(claim)
    assert (len(gpu.made), gpu.mig_enabled) == ((0, False) if dynamic else (1, True))


def test_a_partition_that_is_there_is_used_if_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that somebody has divided once more is not, nor is it destroyed with the claim that could not have it."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    claim, gpu = rig.claim("gpu-0-mig-1g18gb-19-2"), rig.fake.gpus[0]
    make(rig, gpu, 2)
    (made,) = gpu.made.values()
    whole, made.compute = made.compute, {0: 9, 1: 9}
    with pytest.raises(
        PrepareError, match=r"^partition gpu-0-mig-1g18gb-19-2 is divided once more"
    ):
        rig.driver.prepare(claim)
    rig.driver.unprepare(claim)
    assert (len(gpu.made), gpu.mig_enabled) == (1, True)
    made.compute = whole
    rig.driver.prepare(claim)
    assert "partition gpu-0-mig-1g18gb-19-2 is there already" in caplog.text


def test_a_gpu_that_is_gone_does_not_keep_the_rest_of_a_claim(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Lost, or not there at all; a partition that is still in use is said, after the others are destroyed."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    for number in range(4):
        add_capabilities(rig.machine, number, instance=number + 1)
    claim = rig.claim(*(f"gpu-{number}-mig-1g18gb-19-2" for number in range(4)))
    rig.driver.prepare(claim)
    lost, removed, busy, idle = rig.fake.gpus[:4]
    lost.is_lost, busy.busy = True, True
    rig.fake.gpus.remove(removed)
    with pytest.raises(PrepareError, match=r"^GPU \S+: the partition at memory slice 2 cannot be"):
        rig.driver.unprepare(claim)
    assert (len(busy.made), len(idle.made)) == (1, 0)
    for number in (0, 1):
        assert f"gpu-{number}-mig-1g18gb-19-2 is gone" in caplog.text
    busy.busy = False
    rig.driver.unprepare(claim)
    assert busy.made == {}


REFUSED = {
    "one that must be reset": (
        {"needs_reset": True},
        "MIG cannot be switched on: it must be reset for that",
    ),
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
    assert not rig.fake.gpus[0].mig_pending, "nor later, when nobody thinks of it any more"


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


def test_parts_of_partitions_are_not_published(tmp_path: Path) -> None:
    """They have no place of their own, and two of them would have one name."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    for instance in (1, 2):
        add_capabilities(rig.machine, 0, instance=instance)
    rig.driver.prepare(rig.claim("gpu-0-mig-2g35gb-14-4"))
    rig.driver.prepare(rig.claim("gpu-0-mig-1g18gb-19-0"))
    rig.options["dynamic_mig"] = False
    rig.driver = rig.start()
    rig.fake.gpus[0].made[1].compute = {0: 0, 1: 0}
    names = [device.name for device in rig.driver.discover().devices]
    assert names[:2] == ["gpu-0-mig-1g18gb-19-0", "gpu-1"]


def test_files_of_partitions_need_not_be_on_the_machine(tmp_path: Path) -> None:
    """The driver has no part in making them: their numbers are enough for a runtime."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    (device,) = rig.driver.prepare(rig.claim("gpu-0-mig-3g71gb-9-4")).devices
    assert [(n.type_, n.major, n.minor, n.file_mode) for n in device.device_nodes[-2:]] == [
        ("c", 241, 10, 0o444),
        ("c", 241, 11, 0o444),
    ]
    rig.machine.path("proc/devices").write_text("Character devices:\n195 nvidia\n")
    with pytest.raises(PrepareError, match="/proc/devices does not have nvidia-caps"):
        rig.driver.prepare(rig.claim("gpu-0-mig-3g71gb-9-4"))

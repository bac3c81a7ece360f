"""The NVIDIA driver on machines that are made of folders and a library that answers like NVML."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_

from drayman.api.resource import Device
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Hardware
from drayman.drivers.nvidia import files
from drayman.drivers.profiles.hardware import pool_slices
from drivers.nvidia.rig import Rig, program

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


def test_gpus_that_nobody_thinks_of_are_published(tmp_path: Path) -> None:
    """A virtual one is not divided, because the host has done that; one without memory of its own has no such capacity."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    lent, bare = rig.fake.gpus[:2]
    lent.is_virtual = True
    bare.gpu = replace(bare.gpu, model=replace(bare.gpu.model, memory_bytes=None, mig_profiles=()))
    found = rig.driver.discover()
    assert [device.name for device in found.groups[0]] == ["gpu-0", "gpu-1"]
    assert [set(device.capacity) for device in found.groups[0]] == [{"memory"}, set()]
    assert len(found.counters) == 6


def test_the_file_that_cuda_makes_for_its_first_program_is_made_before(
    rig: Rig, programs_called: Path
) -> None:
    """A container that is the first could not make it."""
    for name in ("nvidia-uvm", "nvidia-uvm-tools"):
        rig.machine.path(f"dev/{name}").unlink()
    made = rig.machine.path("dev/nvidia-uvm")
    program(
        programs_called.parent / "bin" / "nvidia-modprobe",
        f'#!/bin/sh\n[ "$*" = "-c 0 -u" ] && touch {made}\n',
    )
    prepared = rig.driver.prepare(rig.claim("gpu-0"))
    assert "/dev/nvidia-uvm" in [node.path for node in prepared.device_nodes]


def add_libraries(rig: Rig, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries and the program that lists them."""
    home = "usr/lib64"
    rig.machine.file(f"{home}/libcuda.so.580.126.09", "elf")
    rig.machine.link(f"{home}/libcuda.so.1", f"{home}/libcuda.so.580.126.09")
    rig.machine.link(f"{home}/libcuda.so", f"{home}/libcuda.so.1")
    rig.machine.file("etc/ld.so.cache", "cache")
    names = ("libcuda.so.1", "libcuda.so")
    listed = "".join(f"\t{name} (libc6,x86-64) => /{home}/{name}\n" for name in names)
    program(folder / "ldconfig", f"#!/bin/sh\ncat <<'END'\n{listed}END\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


FILE = "/usr/lib64/libcuda.so.580.126.09"


def test_without_hooks_libraries_have_all_their_names(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs look for `libcuda.so.1`, and no runtime makes that of the file with the version."""
    add_libraries(rig, tmp_path / "bin", monkeypatch)
    prepared = rig.driver.prepare(rig.claim("gpu-0"))
    assert {mount.container_path: mount.host_path for mount in prepared.mounts} == {
        FILE: FILE,
        "/usr/lib64/libcuda.so.1": FILE,
        "/usr/lib64/libcuda.so": FILE,
    }
    assert prepared.hooks == []


def test_programs_are_there_wherever_the_machine_has_them(rig: Rig) -> None:
    """Where NVIDIA's files are in a folder of their own, the usual place has a script that calls them; links are followed."""
    for folder in ("usr/bin", "usr/local/nvidia/bin"):
        program(rig.machine.path(f"{folder}/nvidia-smi"), "#!/bin/sh\n")
    rig.machine.link("bin", "usr/bin")
    assert [mount.container_path for mount in rig.driver.prepare(rig.claim("gpu-0")).mounts] == [
        "/usr/bin/nvidia-smi",
        "/usr/local/nvidia/bin/nvidia-smi",
    ]


TOOLKIT = """\
#!/bin/sh
cat <<'END'
COMMANDS:
   update-ldcache                    Update the cache
   create-symlinks                   Create symlinks
   {more}
END
"""


@pytest.mark.parametrize("more", ["disable-device-node-modification", ""])
def test_hooks_are_those_that_the_toolkit_knows(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """One that it does not know would keep every container from starting."""
    add_libraries(rig, tmp_path / "bin", monkeypatch)
    program(rig.machine.path("usr/bin/nvidia-cdi-hook"), TOOLKIT.format(more=more))
    prepared = rig.driver.prepare(rig.claim("gpu-0"))
    assert [mount.container_path for mount in prepared.mounts] == [FILE]
    link = "libcuda.so.580.126.09::/usr/lib64/libcuda.so"
    wanted = [
        ("create-symlinks", "--link", link),
        ("update-ldcache", "--folder", "/usr/lib64"),
        *([(more,)] if more else []),
    ]
    assert [hook.args[1:] for hook in prepared.hooks] == wanted


def test_where_no_hooks_run_libraries_may_not_make_device_files(rig: Rig, tmp_path: Path) -> None:
    """NVML makes the files of all GPUs in a container of root, unless the parameters of the module forbid it."""
    program(rig.machine.path("usr/bin/nvidia-cdi-hook"), TOOLKIT.format(more=""))
    rig.driver.runs_hooks, rig.driver.folder = False, tmp_path
    prepared = rig.driver.prepare(rig.claim("gpu-0"))
    assert not prepared.hooks
    (mount,) = prepared.mounts
    assert mount.container_path == "/proc/driver/nvidia/params"
    assert Path(mount.host_path).read_text() == "ModifyDeviceFiles: 0\nDeviceFileMode: 438\n"
    rig.machine.path("proc/driver/nvidia/params").write_text("ModifyDeviceFiles: 0\n")
    assert rig.driver.prepare(rig.claim("gpu-1", uid="v")).mounts == []


def test_a_node_has_the_label_of_its_nvlink_domain(rig: Rig) -> None:
    """As NVIDIA's feature discovery writes it; a machine in none is not labelled."""
    assert rig.driver.discover().labels == {}
    for gpu in rig.fake.gpus:
        gpu.clique = (bytes(range(16)), 7)
    labels = rig.driver.discover().labels
    assert labels == {"nvidia.com/gpu.clique": "00010203-0405-0607-0809-0a0b0c0d0e0f.7"}

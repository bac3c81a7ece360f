"""The script that tries the driver on a real machine, tried on one that is not there: the driver as a plugin, on real sockets, and pods."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from drayman.cli.errors import UserError
from drayman.cli.node_agent import find_drivers
from drayman.drivers.nvidia import programs
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES
from drayman.testing import FakeMachine, FakeNvml
from drayman.testing.trees import add_capabilities, add_nvidia_gpus, nvidia_gpus
from stand_in_gpus import HereDriver

FOLDER = Path(__file__).parents[3] / "examples" / "hardware"
SMI = """\
#!/bin/sh
[ "$1" = -L ] || exit 0
for file in /dev/nvidia[0-9]*; do [ -e "$file" ] && echo "GPU ${file#/dev/nvidia}: NVIDIA H200"; done
[ -e /dev/nvidia0 ] || echo no devices
for file in /dev/nvidia-caps/*; do [ -e "$file" ] && echo "  capability $file"; done
true
"""


class Rig:
    """Two GPUs and the script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sys.path.insert(0, str(FOLDER))
        spec = importlib.util.spec_from_file_location("check_nvidia", FOLDER / "check_nvidia.py")
        assert spec is not None
        assert spec.loader is not None
        self.script: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = self.script
        spec.loader.exec_module(self.script)
        (node, *_) = PROFILES["dgx-h200"].unit(0)
        self.machine, gpus = FakeMachine(folder / "root"), nvidia_gpus(node)[:2]
        add_nvidia_gpus(self.machine, gpus)
        self.fake = FakeNvml(gpus)

    def driver(self, *, kept: bool = False) -> HereDriver:
        return HereDriver(
            self.script.NODE,
            dynamic_mig=not kept,
            keep_settings=kept,
            mps_dir=self.folder / "mps",
            nvml=Nvml(self.fake),
            root=self.machine.root,
        )


@pytest.fixture
def rig() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="g") as text:  # sockets need short paths
        yield Rig(Path(text))


async def test_each_step_says_what_happened_and_is_undone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the device files of one GPU alone; what the machine lacks is said in words."""
    monkeypatch.setenv("PATH", "/nonexistent")  # wherever this runs, NVIDIA's programs are missing
    add_capabilities(rig.machine, 0, instance=1)
    lines = [line async for line in rig.script.check(rig.driver(), rig.folder)]
    assert lines[0] == "published: done: 52 devices in 3 slices, 2 of type gpu, 50 of type mig"
    assert "    resource.kubernetes.io/pcieRoot: pci0000:15" in lines
    steps = [line for line in lines[1:] if not line.startswith(" ")]
    assert steps[0].startswith("gpu-0, alone: done: a container gets /dev/nvidiactl ")
    assert "/dev/nvidia0 " in steps[0]
    assert "/dev/nvidia1" not in steps[0]
    missing = "is not installed on the node"
    assert steps[1:3] == [
        f"gpu-0, time slices: not permitted: nvidia-smi {missing}",
        f"gpu-0, MPS: not permitted: nvidia-cuda-mps-control {missing}",
    ]
    assert steps[3].startswith("gpu-0-mig-1g18gb-19-0, alone: done: ")
    lines = [line async for line in rig.script.check_pods(rig.driver(), rig.folder, "gpu")]
    assert lines == ["pods: not permitted: nvidia-smi is not installed"]
    assert rig.fake.gpus[0].made == {}
    assert rig.fake.gpus[0].compute_mode == 0


async def test_settings_are_kept_where_that_is_wanted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked of NVIDIA's programs but the daemon of MPS, and no mode is set, also not for a moment."""
    monkeypatch.setenv("PATH", "/nonexistent")
    rig.fake.may_change = False
    lines = [line async for line in rig.script.check(rig.driver(kept=True), rig.folder)]
    steps = [line.partition(":")[0::2] for line in lines[1:] if not line.startswith(" ")]
    assert [(title, said.split(":")[0]) for title, said in steps] == [
        ("gpu-0, alone", " done"),
        ("gpu-0, time slices", " done"),
        ("gpu-0, MPS", " not permitted"),
    ]
    assert steps[2][1].endswith("nvidia-cuda-mps-control is not installed on the node")


PODS = {
    "at the same time": ("from 3.0 s to 8.0 s", "from 3.5 s to 8.5 s", ""),
    "one after the other": ("from 3.0 s to 8.0 s", "from 7.5 s to 9.0 s", "did not use the GPU at"),
    "one alone": ("from 3.0 s to 8.0 s", "CUDA_ERROR_UNKNOWN", "did not use the GPU at"),
}


@pytest.mark.parametrize("name", PODS)
def test_pods_that_share_a_gpu_use_it_together(rig: Rig, name: str) -> None:
    """By the clock that they share; a limit on memory has to hold for each of them, too."""
    first, second, problem = PODS[name]
    text = f"{first} | {second}"
    assert problem in rig.script.together(text)
    assert bool(rig.script.together(text)) == bool(problem)
    assert rig.script.together_below(text) == "the limit does not hold"
    both = "512 MiB allocated, 8192 MiB refused "
    assert problem in rig.script.together_below(f"{both}{first} | {both}{second}")


async def test_pods_see_their_gpu_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """By logs and exec of a real kubectl; what fails says why, and every claim is given back."""
    refusal = "libcuda.so.1: cannot open shared object file: No such file or directory"
    monkeypatch.setattr(
        rig.script, "CUDA", [sys.executable, "-c", f"raise SystemExit({refusal!r})"]
    )
    monkeypatch.setattr(programs, "MPS_CONTROL", "no-mps-control")  # wherever this runs
    program = rig.folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    driver = rig.driver()
    lines = [line async for line in rig.script.check_pods(driver, rig.folder, "gpu")]
    assert not driver.runs_hooks, "the node has said so"
    first, *shown = lines[0].splitlines()
    assert first == "a pod, its logs and exec: done: GPU 0: NVIDIA H200"
    assert shown[0] == f"  $ kubectl exec p0 -- {program}"
    assert shown[1:] == [
        "  $ kubectl exec p0 -- sh -c 'ls -1 /dev/nvidia*'",
        "  /dev/nvidia-modeset",
        "  /dev/nvidia-uvm",
        "  /dev/nvidia-uvm-tools",
        "  /dev/nvidia0",
        "  /dev/nvidiactl",
        "  $ kubectl exec p0 -- printenv NVIDIA_VISIBLE_DEVICES",
        "  void",
    ]
    assert lines[1] == "a pod without a claim: done: no devices"
    assert lines[2].startswith("a pod that uses CUDA: not permitted: libcuda.so.1: ")
    assert lines[3].startswith("two pods by time slices: not permitted: libcuda.so.1: ")
    assert lines[4] == (
        "two pods by MPS, 4Gi each: not permitted: claim c: driver gpu.nvidia.com:"
        " no-mps-control is not installed on the node"
    )
    assert rig.fake.gpus[0].compute_mode == 0


async def test_pods_are_looked_at_where_there_is_no_kubectl(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with GPUs need not have one: what pods say is read from the files of the node."""
    folder = rig.folder / "bin"
    folder.mkdir()
    for name in ("sh", "sleep"):
        (folder / name).symlink_to(shutil.which(name) or "")
    (folder / "nvidia-smi").write_text(SMI)
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    lines = rig.script.check_pods(rig.driver(), rig.folder, "gpu")
    assert await anext(lines) == (
        "a pod, its logs and exec: done: GPU 0: NVIDIA H200; exec is not tried, because there is no kubectl"
    )
    await lines.aclose()


async def test_a_partition_is_seen_by_its_capabilities(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made for the pod and destroyed after it; a listing without it is a failure."""
    add_capabilities(rig.machine, 0, instance=1)
    program = rig.folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (line,) = [line async for line in rig.script.check_pods(rig.driver(), rig.folder, "mig")]
    assert line == (
        "a pod in a partition: failed: the partition is not seen alone: GPU 0: NVIDIA H200"
        " /   capability /dev/nvidia-caps/nvidia-cap10 /   capability /dev/nvidia-caps/nvidia-cap11"
    )
    assert rig.fake.gpus[0].made == {}
    assert not rig.fake.gpus[0].mig_enabled


def test_a_node_says_what_its_driver_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, as for other mistakes on the command line."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(UserError, match=r"^gpu\.nvidia\.com needs the package nvidia-ml-py"):
        find_drivers(["gpu.nvidia.com"], "n")


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--dry-run", 2)])
def test_only_a_call_without_arguments_touches_gpus(word: str, code: int) -> None:
    """Help, and an option that it does not have, are answered with the usage and nothing else."""
    command = [sys.executable, str(FOLDER / "check_nvidia.py"), word]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert (done.stdout + done.stderr).startswith("usage: check_nvidia.py [-h]")
    assert "nvidia-smi" not in done.stdout

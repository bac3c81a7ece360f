"""The script that tries the driver on a real machine, tried on one that is not there: the driver as a plugin, on real sockets."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import pytest

from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES
from drayman.testing import FakeMachine, FakeNvml
from drayman.testing.trees import add_capabilities, add_nvidia_gpus, nvidia_gpus

SCRIPT = Path(__file__).parents[3] / "examples" / "hardware" / "check_nvidia.py"


async def test_each_step_says_what_happened_and_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the device files of one GPU alone; what the machine lacks is said in words."""
    monkeypatch.setenv(
        "PATH", "/nonexistent"
    )  # wherever this runs, it is as without NVIDIA's programs
    spec = importlib.util.spec_from_file_location("check_nvidia", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    with tempfile.TemporaryDirectory() as text:  # sockets need short paths
        folder = Path(text)
        (node, *_) = PROFILES["dgx-h200"].unit(0)
        machine, gpus = FakeMachine(folder / "root"), nvidia_gpus(node)[:2]
        add_nvidia_gpus(machine, gpus)
        add_capabilities(machine, 0, instance=1)
        library = FakeNvml(gpus)
        driver = NvidiaGpuDriver(
            script.NODE,
            dynamic_mig=True,
            mps_dir=folder / "mps",
            nvml=Nvml(library),
            root=machine.root,
        )
        lines = [line async for line in script.check(driver, folder)]
    assert lines[0] == "published: 52 devices, 2 of type gpu, 50 of type mig"
    assert lines[1].startswith("whole GPU: prepared; a container gets /dev/nvidiactl ")
    assert "/dev/nvidia0 " in lines[1]
    assert "/dev/nvidia1" not in lines[1]
    assert lines[2] == "time slices: not permitted: nvidia-smi is not installed on the node"
    assert lines[3] == "MPS: not permitted: nvidia-cuda-mps-control is not installed on the node"
    assert lines[4].startswith("partition gpu-0-mig-1g18gb-19-0: prepared; ")
    assert library.gpus[0].made == {}
    assert library.gpus[0].compute_mode == 0

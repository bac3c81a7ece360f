"""A machine, and programs in NVIDIA's names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivers.nvidia.rig import Rig, program


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


PROGRAM = """\
#!/bin/sh
told=$(cat)
echo "{name} $* [$told] $CUDA_VISIBLE_DEVICES" >> {calls}
pipe=$CUDA_MPS_PIPE_DIRECTORY
case "$1$told" in
-d*)
    (sleep 0.2; : > "$pipe/control"; while :; do sleep 0.05; done) &
    echo $! > "$pipe/{name}.pid";;
quit*)
    kill "$(cat "$pipe/{name}.pid")";;
esac
"""
"""The daemon keeps what it writes to, as the real one may, and its pipe is not there at once."""


@pytest.fixture
def programs_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs in NVIDIA's names that write down their arguments and what they are told."""
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    calls.touch()
    for name in ("nvidia-smi", "nvidia-cuda-mps-control"):
        program(folder / name, PROGRAM.format(name=name, calls=calls))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return calls

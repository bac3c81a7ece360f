"""Every example that a command's help shows works as it is written there."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from drayman.cli.main import COMMANDS, cli

CLAIM: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: claim
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
"""
SLICE: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "node",
        "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}],
    },
}
PROBLEM: Final = json.dumps({"name": "p", "node": {"metadata": {"name": "n"}}, "claims": []})
DEVICE: Final = {"name": "d", "driver": "gpu.nvidia.com", "device": {"name": "gpu-0"}}
SLICES: Final = {"apiVersion": "v1", "kind": "List", "items": [SLICE]}


def examples(command: str) -> list[str]:
    """The command lines under "Examples:" in the help of a command, continuation lines joined."""
    arguments = [command, "--help"] if command else ["--help"]
    text = CliRunner().invoke(cli, arguments, prog_name="drayman").output
    block = text.split("Examples:\n")[1].split("\n\n")[0]
    lines = block.replace("\\\n", " ").splitlines()
    return [line.split("   ")[0].strip() if not command else line.strip() for line in lines]


def executable(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the examples name, and the programs: ours, and stand-ins for those of others."""
    (tmp_path / "claim.yaml").write_text(CLAIM)
    (tmp_path / "more.json").write_text(json.dumps(SLICES))
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "claim.yml").write_text(CLAIM)
    (tmp_path / "slices.yaml").write_text(json.dumps(SLICE))
    (tmp_path / "slices.json").write_text(json.dumps(SLICES))
    (tmp_path / "devices.json").write_text(json.dumps([DEVICE]))
    (tmp_path / "vectors.jsonl").write_text('{"id": "v", "expression": "true"}\n')
    (tmp_path / "fuzz.jsonl").write_text(PROBLEM)
    (tmp_path / "fuzz.jsonl.gz").write_bytes(gzip.compress(PROBLEM.encode()))
    (tmp_path / "table.json.gz").write_bytes(gzip.compress(f"[{PROBLEM}]".encode()))
    programs = tmp_path / "bin"
    programs.mkdir()
    start = [sys.executable, "-c", "from drayman.cli.main import main; main()"]
    executable(programs / "drayman", f'exec {shlex.join(start)} "$@"')
    executable(programs / "helm", "cat claim.yaml")
    executable(programs / "kubectl", "cat slices.yaml")
    return tmp_path


@pytest.mark.parametrize("command", ["", *COMMANDS], ids=["drayman", *COMMANDS])
def test_examples_of_the_help_work(command: str, folder: Path) -> None:
    """Each exits 0 and says nothing of errors."""
    found = examples(command)
    assert found
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    for line in found:
        script = f"set -o pipefail; {line.replace('COMMAND', 'validate')}"
        process = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, (line, process.stdout, process.stderr)
        assert "error:" not in process.stderr
        assert all(len(shown) <= 80 for shown in process.stderr.splitlines())

"""`kubectl drayman ...`: the same commands, on the cluster that kubectl talks to."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from apiserver.e2e.driving import PATIENCE_S, Kubectl

ROOT = Path(__file__).parents[3]
REFERENCE: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
    "kubectl-drayman"
]


@pytest.fixture
def environment(full: Kubectl, tmp_path: Path) -> dict[str, str]:
    """The executable on the path, as it is installed, and a kubeconfig with a namespace of its own."""
    module, _, function = REFERENCE.partition(":")
    start = [sys.executable, "-c", f"from {module} import {function}; {function}()"]
    program = tmp_path / "kubectl-drayman"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n')
    program.chmod(0o755)
    config = json.loads(full.server.kubeconfig.read_bytes())
    config["contexts"][0]["context"]["namespace"] = full.namespace
    (tmp_path / "config").write_text(json.dumps(config))
    return {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "config"),
        # Where `drayman` itself would look, and find nothing.
        "DRAYMAN_DATA_DIR": str(tmp_path / "none"),
    }


def kubectl(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["kubectl", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "status", "reason"), [("third", 1, "DevicesInUse (not now)"), ("first", 0, "Runs")]
)
def test_kubectl_explains(environment: dict[str, str], name: str, status: int, reason: str) -> None:
    """With kubectl's current context and its namespace, and the exit status of the answer."""
    done = kubectl(environment, "drayman", "explain", f"pod/{name}")
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(f"{reason}: ")


def test_other_commands_are_there_too(environment: dict[str, str]) -> None:
    """On the same cluster."""
    done = kubectl(environment, "drayman", "device", "list", "--all", "--driver", "gpu.example.com")
    assert done.returncode == 0, done.stderr
    assert "team-a/first" in done.stdout


def test_usage_names_what_was_typed(environment: dict[str, str]) -> None:
    """Help is about `kubectl drayman`."""
    done = kubectl(environment, "drayman", "explain")
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: kubectl drayman explain ")


def test_the_executable_is_declared() -> None:
    """What is installed can be imported."""
    module, _, function = REFERENCE.partition(":")
    assert callable(getattr(importlib.import_module(module), function))

"""`drayman bench schedule` on a cluster that others use leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, Kubectl, running

KINDS = "nodes,namespaces,deviceclasses,resourceslices,devicetaintrules,pods,resourceclaims"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("clearing")
    with running(folder / "config", "--ephemeral", "--profile", "example=1") as server:
        yield Kubectl(server, "default", folder)


def everything(kubectl: Kubectl) -> list[str]:
    """All objects of the kinds that a run creates."""
    found = json.loads(kubectl("get", KINDS, "--all-namespaces", "-o", "json"))["items"]
    return sorted(f"{each['kind']}/{each['metadata']['name']}" for each in found)


def command(kubectl: Kubectl, workload: str, nodes: int) -> list[str | Path]:
    where = ("--backend", "kubeconfig", "--kubeconfig", kubectl.server.kubeconfig)
    return [*DRAYMAN, "bench", "schedule", "--workload", workload, "--nodes", str(nodes), *where]


@pytest.mark.parametrize("workload", ["FirstAvailable/fast", "DeviceTaintToleration/fast"])
def test_a_run_deletes_what_it_created(kubectl: Kubectl, workload: str) -> None:
    """Nodes, slices, classes, rules and the namespace with its pods; what was there before stays."""
    before = everything(kubectl)
    done = subprocess.run(
        command(kubectl, workload, 5),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert everything(kubectl) == before
    assert before != []


def test_an_interrupted_run_deletes_what_it_created(kubectl: Kubectl) -> None:
    """Also while nodes are still being created."""
    before = everything(kubectl)
    process = subprocess.Popen(
        command(kubectl, "SchedulingWithResourceClaimTemplate/5000pods_500nodes", 500),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + PATIENCE_S
    while len(everything(kubectl)) < len(before) + 20:
        assert time.monotonic() < deadline
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert everything(kubectl) == before


def test_a_namespace_that_exists_is_left_alone(kubectl: Kubectl) -> None:
    """A run would delete what is in it, so it does not begin."""
    kubectl("create", "namespace", "bench")
    before = everything(kubectl)
    done = subprocess.run(
        command(kubectl, "FirstAvailable/fast", 5),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "there is a namespace bench already" in done.stderr
    assert everything(kubectl) == before
    kubectl("delete", "namespace", "bench")

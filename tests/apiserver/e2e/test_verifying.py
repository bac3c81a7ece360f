"""How people verify that devices are allocated: slices, claims, a look from inside the pod, the scheduler's log."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stand_in_gpus
from apiserver.e2e.driving import DRAYMAN, Kubectl, running

CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "training-gpus"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}
            ]
        }
    },
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "training-job"},
    "spec": {
        "resourceClaims": [{"name": "gpus", "resourceClaimName": "training-gpus"}],
        "containers": [
            {
                "name": "trainer",
                "image": "pytorch/pytorch:latest",
                "resources": {"claims": [{"name": "gpus"}]},
            }
        ],
    },
}


def test_an_allocation_is_verified_from_all_sides(tmp_path: Path, kubectl_home: Path) -> None:
    """kubectl shows slices and claims, runs nvidia-smi in the pod and prints its log; `drayman logs scheduler` has the decision."""
    data = tmp_path / "data"
    with running(tmp_path / "config", "--data-dir", data, "--profile", "dgx-h100=1") as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl(
            "apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": [CLAIM, POD]}
        )
        kubectl("wait", "pod/training-job", "--for=condition=Ready")
        assert "gpu.nvidia.com" in kubectl("get", "resourceslices")
        assert "allocated,reserved" in kubectl("get", "resourceclaims")
        assert "NVIDIA H100 80GB HBM3" in kubectl("exec", "training-job", "--", "nvidia-smi")
        listed = kubectl("exec", "training-job", "--", "nvidia-smi", "-L").splitlines()
        assert len(listed) == 4
        log = kubectl("logs", "training-job")
        assert all(line.rpartition("UUID: ")[2].rstrip(")") in log for line in listed)
        failed = kubectl.attempt("exec", "training-job", "--", "python", "train.py")
        assert failed.returncode == 127
        assert "is simulated" in failed.stderr
        piped = kubectl("exec", "-i", "training-job", "--", "sh", given="hostname\n")
        assert piped == "training-job\n"
        with kubectl.streaming("logs", "-f", "training-job", "--tail=1") as following:
            assert following.next() == ["simulated:", "running"]
            kubectl("delete", "pod", "training-job")
            assert following.next()[-2:] == ["code", "143"]
        decision = decided(data)
    assert "pod default/training-job on dgx-h100-0; DRA claim training-gpus: gpu-0" in decision
    assert "(NV18: 18 NVLinks)" in decision


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Names of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="verify") as name:
        yield Path(name)


def test_an_allocation_is_verified_on_a_real_node(
    short_path: Path, kubectl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same steps with NVIDIA's driver on this machine: a program in the container sees the GPUs of its claim, and no others."""
    monkeypatch.setenv("PYTHONPATH", str(Path(stand_in_gpus.__file__).parent))
    monkeypatch.setenv(stand_in_gpus.FOLDER, str(short_path / "machine"))
    data, programs, images = short_path / "data", short_path / "bin", short_path / "images.yaml"
    programs.mkdir()
    program = programs / "nvidia-smi"
    program.write_text("#!/bin/sh\ncd /dev && ls -d nvidia[0-9]*\n")
    program.chmod(0o755)
    images.write_text('images: {"pytorch/*": {command: [sh, -c, "nvidia-smi; exec sleep 600"]}}')
    pod = {**POD, "spec": {**POD["spec"], "terminationGracePeriodSeconds": 0}}
    (trainer,) = pod["spec"]["containers"]
    path = {"name": "PATH", "value": f"{programs}:/usr/bin:/bin"}
    pod["spec"]["containers"] = [{**trainer, "env": [path]}]
    node = ("--node", "--driver", "stand_in_gpus:DgxDriver", "--images", images)
    with running(short_path / "config", "--data-dir", data, *node) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl(
            "apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": [CLAIM, pod]}
        )
        kubectl("wait", "pod/training-job", "--for=condition=Ready")
        assert "gpu.nvidia.com" in kubectl("get", "resourceslices")
        assert "allocated,reserved" in kubectl("get", "resourceclaims")
        claim = kubectl.object("resourceclaim", "training-gpus")
        results = claim["status"]["allocation"]["devices"]["results"]
        expected = sorted(each["device"].replace("gpu-", "nvidia") for each in results)
        assert len(expected) == 4
        assert kubectl("exec", "training-job", "--", "nvidia-smi").split() == expected
        assert kubectl("logs", "training-job").split() == expected
        decision = decided(data)
    assert "DRA claim training-gpus: gpu-" in decision


def decided(data: Path) -> str:
    """What the scheduler's log says of its one decision about devices. Before that the pod may have waited for its claim to be seen."""
    done = subprocess.run(
        [*DRAYMAN, "logs", "scheduler", "--data-dir", data],
        capture_output=True,
        text=True,
        check=True,
    )
    (decision,) = [line for line in done.stdout.splitlines() if "DRA claim " in line]
    return decision

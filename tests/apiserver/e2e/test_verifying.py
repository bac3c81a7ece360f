"""How people verify that devices are allocated: slices, claims, a look from inside the pod, the scheduler's log."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

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
        done = subprocess.run(
            [*DRAYMAN, "logs", "scheduler", "--data-dir", data],
            capture_output=True,
            text=True,
            check=True,
        )
    (decision,) = [line for line in done.stdout.splitlines() if "DRA" in line]
    assert "pod default/training-job on dgx-h100-0; DRA claim training-gpus: gpu-0" in decision
    assert "(NV18: 18 NVLinks)" in decision

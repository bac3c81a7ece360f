"""Queues of the KAI Scheduler as people use them: the example of two departments, kubectl, a restart, and the commands that show queues."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from apiserver.e2e.driving import DRAYMAN, Kubectl, Server, running
from patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[3] / "examples" / "queues"
TIMEOUT = f"--timeout={int(PATIENCE_S)}s"


def drayman(server: Server, *words: str) -> str:
    command = [*DRAYMAN, *words, "--kubeconfig", str(server.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_department_gets_its_quota_back(tmp_path: Path, kubectl_home: Path) -> None:
    """The batch of one uses what the other leaves idle, and makes way when that one has work. All of it is there after a restart."""
    options = ("--data-dir", tmp_path / "data", "--profile", "dgx-h100=1")
    with running(tmp_path / "config", *options) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("apply", "-f", str(EXAMPLES / "departments.yaml"))
        kubectl("wait", "job/batch", "--for=jsonpath={.status.ready}=8", TIMEOUT)
        (product,) = (row for row in shares(server) if row["name"] == "product")
        assert (product["used"], product["overQuota"]) == (8, 6)
    with running(tmp_path / "config", *options) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("apply", "-f", str(EXAMPLES / "training.yaml"))
        kubectl("wait", "job/training", "--for=jsonpath={.status.ready}=3", TIMEOUT)
        used = {row["name"]: row["used"] for row in shares(server)}
        assert used == {"company": 8, "research": 6, "product": 2}
        shown = drayman(server, "queues")
        assert shown.splitlines()[0].split()[:5] == ["QUEUE", "QUOTA", "LIMIT", "SHARE", "USED"]
        said = drayman(server, "queue", "research")
        assert "Queue research uses 6 GPUs" in said
        assert "pod group default/training" in said
        refused = kubectl.refused(
            "patch", "queue.scheduling.run.ai", "product", "--type=merge", "-p", BAD
        )
        assert "spec.resources.gpu.limit" in refused


BAD = json.dumps({"spec": {"resources": {"gpu": {"limit": -3}}}})


def shares(server: Server) -> list[dict[str, object]]:
    found = json.loads(drayman(server, "queues", "-o", "json"))
    return list(found["shares"])

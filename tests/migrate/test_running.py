"""Migrated manifests run: those of a guide for v1alpha2, and pods made for a device plugin."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, Kubectl, running
from migrate.plugin_cases import PLUGINS

GUIDE = Path(__file__).parents[3] / "shared" / "seeds" / "003_21096f618862851d.txt"
WITHIN = "--timeout=150s"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl for a cluster with machines of two makers that have the same GPUs."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    folder = tmp_path_factory.mktemp("cluster")
    with running(folder / "config", "--ephemeral", "--profile", "p4d=1,dgx-a100=1") as server:
        yield Kubectl(server, "default", folder)


def migrated(path: Path, *options: str) -> tuple[str, str, int]:
    """What `drayman migrate` prints, what it says, and its exit status."""
    done = subprocess.run(
        [*DRAYMAN, "migrate", *options, str(path)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr, done.returncode


def allocated(kubectl: Kubectl, claim: str) -> tuple[str, int]:
    """The pool and the number of devices of a claim."""
    results = kubectl.object("resourceclaim", claim)["status"]["allocation"]["devices"]["results"]
    (pool,) = {each["pool"] for each in results}
    return pool, len(results)


@pytest.mark.skipif(not GUIDE.exists(), reason="../shared/seeds is not there")
def test_the_manifests_of_a_guide_for_v1alpha2(kubectl: Kubectl, tmp_path: Path) -> None:
    """Its pod runs with four GPUs on the machine type that its claim asked for; what has no counterpart is named."""
    manifests = re.findall(r"^apiVersion:.*?(?=\n\n)", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(manifests) == 4
    path = tmp_path / "guide.yaml"
    path.write_text("\n---\n".join(manifests) + "\n")
    text, said, status = migrated(path, "--pod-groups")
    lost = [line for line in said.splitlines() if not line.startswith("note: ")]
    assert (status, len(lost)) == (1, 1)
    assert lost[0].startswith(
        f"{path}:47: PodGroup distributed-training: spec.scheduleTimeoutSeconds"
    )

    path.write_text(text)
    assert migrated(path, "--pod-groups") == (text, "", 0)
    kubectl("apply", "-f", str(path))
    kubectl("wait", "--for=condition=Ready", "pod/training-job", WITHIN)
    group = kubectl.object("podgroup", "distributed-training")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 8}}
    node = kubectl.object("pod", "training-job")["spec"]["nodeName"]
    labels = kubectl.object("node", node)["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "p4d.24xlarge"
    assert allocated(kubectl, "training-gpus") == (node, 4)


def test_a_job_made_for_a_device_plugin(kubectl: Kubectl, tmp_path: Path) -> None:
    """Its pod gets the GPUs it asked the plugin for."""
    path = tmp_path / "job.yaml"
    path.write_text(PLUGINS[0].before.replace("disk: ssd", "kubernetes.io/os: linux"))
    text, said, status = migrated(path)
    assert (said, status) == ("", 0)
    path.write_text(text)
    kubectl("create", "namespace", "ml")
    within = replace(kubectl, namespace="ml")
    within("apply", "-f", str(path))
    within("wait", "--for=condition=Ready", "pod", "-l", "job-name=train", WITHIN)
    (claim,) = within.object("resourceclaims")["items"]
    assert allocated(within, claim["metadata"]["name"])[1] == 2


def test_nodes_that_offer_devices_twice(kubectl: Kubectl) -> None:
    """A node whose plugin still offers what its driver publishes is found, and the other is not."""
    options = ("migrate", "--nodes", "--kubeconfig", str(kubectl.server.kubeconfig))

    def asked(*more: str) -> tuple[str, int]:
        done = subprocess.run(
            [*DRAYMAN, *options, *more],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        return done.stdout, done.returncode

    said, status = asked()
    assert (said.startswith("no node offers"), status) == (True, 0)
    nodes = kubectl.object("nodes", "-l", "node.kubernetes.io/instance-type=p4d.24xlarge")["items"]
    name = nodes[0]["metadata"]["name"]
    offered = {"nvidia.com/gpu": "8"}
    change = json.dumps({"status": {"capacity": offered, "allocatable": offered}})
    kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", change)
    said, status = asked()
    assert status == 1
    assert re.search(
        rf"^{name} +8 nvidia.com/gpu +8 devices of gpu.nvidia.com$", said, re.MULTILINE
    )
    assert max(len(line) for line in said.splitlines()) <= 80
    said, status = asked("-o", "json")
    (overlap,) = json.loads(said)["overlaps"]
    assert overlap["node"] == name
    assert overlap["command"].startswith(f"kubectl label node {name} ")

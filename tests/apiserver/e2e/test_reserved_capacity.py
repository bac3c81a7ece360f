"""Capacity that is reserved for admitted work, in a cluster that is killed in between: it ends with what it was reserved for."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.e2e.driving import Kubectl, running
from patience import PATIENCE_S

Object = dict[str, Any]
TIMEOUT = f"--timeout={int(PATIENCE_S)}s"
GPUS = "example.com/gpu"
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {"deviceClassMappings": [{"name": GPUS, "deviceClassNames": ["gpu.nvidia.com"]}]},
}
POLL_S = 0.1
KUEUE = "kueue.x-k8s.io/v1beta2"


def queues() -> list[Object]:
    resources = [{"name": GPUS, "nominalQuota": "16"}]
    group = {
        "coveredResources": [GPUS],
        "flavors": [{"name": "standard", "resources": resources}],
    }
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    return [
        _object(KUEUE, "ResourceFlavor", "standard"),
        _object(KUEUE, "ClusterQueue", "all", spec),
        _object(KUEUE, "LocalQueue", "team", {"clusterQueue": "all"}),
        *(_template(number) for number in (2, 4, 8)),
    ]


def _object(version: str, kind: str, name: str, spec: Object | None = None) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        **({"spec": spec} if spec else {}),
    }


def _template(number: int) -> Object:
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": number}
    devices = {"requests": [{"name": "g", "exactly": exactly}]}
    spec = {"spec": {"devices": devices}}
    return _object("resource.k8s.io/v1", "ResourceClaimTemplate", f"gpus-{number}", spec)


def pod_spec(gpus: int) -> Object:
    claims = [{"name": "g"}]
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "i", "resources": {"claims": claims}}],
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": f"gpus-{gpus}"}],
    }


def job(name: str, pods: int, gpus: int) -> Object:
    spec = {"parallelism": pods, "completions": pods, "template": {"spec": pod_spec(gpus)}}
    made = _object("batch/v1", "Job", name, spec)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    return made


class Cluster:
    """`drayman up` with two nodes of eight GPUs each, which may be killed and started again."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder = folder
        self._home = home
        (folder / "queues.json").write_text(json.dumps(CONFIGURATION))

    @contextmanager
    def up(self) -> Iterator[Kubectl]:
        options = ("--data-dir", self._folder / "data", "--profile", "dgx-h100=2")
        config = ("--queue-config", self._folder / "queues.json")
        with running(self._folder / "config", *options, *config) as server:
            yield Kubectl(server, "default", self._home)
            server.kill()


def nodes_of(kubectl: Kubectl, selector: str) -> set[str]:
    found = kubectl.object("pods", "-l", selector)["items"]
    return {
        each["spec"]["nodeName"] for each in found if "deletionTimestamp" not in each["metadata"]
    }


def reserved_nodes(kubectl: Kubectl) -> set[str]:
    (workload,) = kubectl.object("kwl")["items"]
    record = json.loads(workload["metadata"]["annotations"]["drayman.dev/room"])
    return {place["node"] for place in record["places"]}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(POLL_S)


def nothing_is_left(kubectl: Kubectl) -> None:
    """Nothing is charged, every device is free, and each node takes a pod that needs all of it."""
    zero = "--for=jsonpath={.status.reservingWorkloads}=0"
    kubectl("wait", "clusterqueue/all", zero, TIMEOUT)
    kubectl("wait", "resourceclaims", "--all", "--for=delete", TIMEOUT)
    for number in range(2):
        kubectl("create", "-f", "-", given=_object("v1", "Pod", f"whole-{number}", pod_spec(8)))
        kubectl("wait", f"pod/whole-{number}", "--for=condition=Ready", TIMEOUT)


def test_reserved_capacity_follows_the_pods(tmp_path: Path, kubectl_home: Path) -> None:
    """A Job that is suspended by hand keeps its quota and starts again, on the other node while its old pods end. What is reserved for it
    is there by then, also after a crash, and a pod that needs all of the first node runs."""
    cluster = Cluster(tmp_path, kubectl_home)
    with cluster.up() as kubectl:
        for each in queues():
            kubectl("apply", "-f", "-", given=each)
        kubectl("wait", "clusterqueue/all", "localqueue/team", "--for=condition=Active", TIMEOUT)
        kubectl("create", "-f", "-", given=job("train", 2, 4))
        kubectl("wait", "job/train", "--for=jsonpath={.status.ready}=2", TIMEOUT)
        old = kubectl("get", "pods", "-o", "name").split()
        kubectl("patch", "job", "train", "-p", '{"spec":{"suspend":true}}')
        kubectl("wait", *old, "--for=delete", TIMEOUT)
        kubectl("wait", "job/train", "--for=jsonpath={.status.ready}=2", TIMEOUT)
        until(lambda: reserved_nodes(kubectl) == nodes_of(kubectl, "job-name=train"))
    with cluster.up() as kubectl:
        (node,) = nodes_of(kubectl, "job-name=train")
        assert reserved_nodes(kubectl) == {node}
        kubectl("create", "-f", "-", given=_object("v1", "Pod", "whole", pod_spec(8)))
        kubectl("wait", "pod/whole", "--for=condition=Ready", TIMEOUT)
        kubectl("delete", "job/train", "pod/whole")
        nothing_is_left(kubectl)


@pytest.mark.parametrize("seed", [1])
def test_nothing_outlives_what_it_was_for(tmp_path: Path, kubectl_home: Path, seed: int) -> None:
    """Jobs are created, suspended and deleted, their pods too, and the process is killed; once all is deleted nothing is left."""
    rng, cluster, made = random.Random(seed), Cluster(tmp_path, kubectl_home), 0
    with cluster.up() as kubectl:
        for each in queues():
            kubectl("apply", "-f", "-", given=each)
        kubectl("wait", "clusterqueue/all", "localqueue/team", "--for=condition=Active", TIMEOUT)
    for _ in range(2):
        with cluster.up() as kubectl:
            for _ in range(8):
                jobs = kubectl("get", "jobs", "-o", "name").split()
                match rng.choice(("create", "create", "suspend", "delete", "lose", "cordon")):
                    case "suspend" if jobs:
                        name = rng.choice(jobs)
                        kubectl("patch", name, "-p", '{"spec":{"suspend":true}}')
                    case "delete" if jobs:
                        kubectl("delete", rng.choice(jobs), "--wait=false")
                    case "lose" if pods := kubectl("get", "pods", "-o", "name").split():
                        kubectl.attempt("delete", rng.choice(pods), "--wait=false")
                    case "cordon":
                        node = f"dgx-h100-{rng.randrange(2)}"
                        kubectl(rng.choice(("cordon", "uncordon")), node)
                    case _:
                        made += 1
                        name = f"job-{made}"
                        pods, gpus = rng.randint(1, 2), rng.choice((2, 4))
                        kubectl("create", "-f", "-", given=job(name, pods, gpus))
    with cluster.up() as kubectl:
        kubectl("delete", "jobs", "--all")
        kubectl("uncordon", "dgx-h100-0", "dgx-h100-1")
        nothing_is_left(kubectl)

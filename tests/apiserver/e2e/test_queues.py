"""Kueue's queues as people use them: `drayman up`, kubectl, and a server that is killed in between."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from apiserver.e2e.driving import DRAYMAN, Kubectl, running
from patience import PATIENCE_S

Object = dict[str, Any]
TIMEOUT = f"--timeout={int(PATIENCE_S)}s"
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: standard}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: standard, resources: [{name: cpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: all}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
"""


def job(name: str, *, seconds: str = "1h", pods: int = 2, **labels: str) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"drayman.dev/run-for": seconds}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    marks = {"kueue.x-k8s.io/queue-name": "team", **labels}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": marks},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


def workload_of(kubectl: Kubectl, name: str) -> Object:
    uid = kubectl("get", "job", name, "-o", "jsonpath={.metadata.uid}")
    selector = f"-l=kueue.x-k8s.io/job-uid={uid}"
    (found,) = kubectl.object("kwl", selector)["items"]
    return found


def condition(workload: Object, type_: str) -> str:
    found = {each["type"]: each["status"] for each in workload["status"].get("conditions", ())}
    return found.get(type_, "")


def test_a_job_waits_runs_and_frees_its_quota(tmp_path: Path, kubectl_home: Path) -> None:
    """And the columns that kubectl prints say so."""
    with running(tmp_path / "config", "--ephemeral", "--profile", "cpu=1") as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        warned = kubectl.attempt("apply", "-f", "-", given=QUEUES)
        assert "Warning" not in warned.stderr
        kubectl("wait", "clusterqueue/all", "localqueue/team", "--for=condition=Active", TIMEOUT)
        kubectl("apply", "-f", "-", given=job("first", seconds="3s"))
        kubectl("wait", "job/first", "--for=jsonpath={.status.ready}=2", TIMEOUT)
        kubectl("apply", "-f", "-", given=job("second", seconds="1s"))
        kubectl("wait", "job/second", "--for=condition=Suspended", TIMEOUT)
        kubectl("wait", "job/first", "--for=condition=Complete", TIMEOUT)
        kubectl("wait", "job/second", "--for=condition=Complete", TIMEOUT)
        kubectl("wait", "kwl", "--all", "--for=condition=Finished", TIMEOUT)
        head, *rows = kubectl("get", "kwl").splitlines()
        assert head.split() == ["NAME", "QUEUE", "RESERVED", "IN", "ADMITTED", "FINISHED", "AGE"]
        assert [row.split()[1:5] for row in rows] == [["team", "all", "True", "True"]] * 2
        kubectl(
            "wait", "clusterqueue/all", "--for=jsonpath={.status.reservingWorkloads}=0", TIMEOUT
        )
        metrics = kubectl("get", "--raw", "/metrics").splitlines()
        assert (
            'kueue_admitted_workloads_total{cluster_queue="all",priority_class="",replica_role="standalone"} 2.0'
            in metrics
        )
        assert (
            'kueue_reserving_active_workloads{cluster_queue="all",replica_role="standalone"} 0.0'
            in metrics
        )
        reasons = kubectl("get", "events", "-o", "jsonpath={.items[*].reason}").split()
        assert {"CreatedWorkload", "QuotaReserved", "Admitted", "Started"} <= set(reasons)


def test_a_server_that_is_killed_loses_and_doubles_nothing(
    tmp_path: Path, kubectl_home: Path
) -> None:
    """What ran goes on, what waited waits; a preemption that had begun is carried out once."""
    config, options = tmp_path / "config", ("--data-dir", tmp_path / "data")
    with running(config, *options, "--profile", "cpu=1") as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("apply", "-f", "-", given=QUEUES)
        kubectl("apply", "-f", "-", given=job("first"))
        kubectl("wait", "job/first", "--for=jsonpath={.status.ready}=2", TIMEOUT)
        before = kubectl.object("job", "first")["spec"]["template"]
        kubectl("apply", "-f", "-", given=job("second"))
        server.kill()
    with running(config, *options) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("wait", "job/second", "--for=condition=Suspended", TIMEOUT)
        assert condition(workload_of(kubectl, "first"), "Admitted") == "True"
        assert kubectl.object("job", "first")["spec"]["template"] == before
        urgent = {"kueue.x-k8s.io/priority-class": "urgent"}
        kubectl("apply", "-f", "-", given=job("urgent", **urgent))
        server.kill()
    with running(config, *options) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("wait", "job/urgent", "--for=jsonpath={.status.ready}=2", TIMEOUT)
        kubectl("wait", "job/first", "--for=condition=Suspended", TIMEOUT)
        evicted = workload_of(kubectl, "first")
        assert condition(evicted, "Evicted") == "True"
        (counted,) = evicted["status"]["schedulingStats"]["evictions"]
        assert (counted["reason"], counted["count"]) == ("Preempted", 1)
        reserving = [
            each["metadata"]["name"]
            for each in kubectl.object("kwl")["items"]
            if condition(each, "QuotaReserved") == "True"
        ]
        assert reserving == [workload_of(kubectl, "urgent")["metadata"]["name"]]
        assert len(kubectl.object("kwl")["items"]) == 3
        labels = kubectl.object("job", "first")["spec"]["template"]["metadata"]["labels"]
        assert "kueue.x-k8s.io/podset" not in labels


GPUS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: standard}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: standard, resources: [{name: nvidia.com/gpu, nominalQuota: 100}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: all}
"""


def gpu_job(name: str, pods: int, gpus: int) -> Object:
    made = job(name, pods=pods)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return made


def test_nothing_is_admitted_that_has_no_room(tmp_path: Path, kubectl_home: Path) -> None:
    """There is quota for a hundred GPUs and there are eight: what does not fit waits, others go on, and room is used when it is free."""
    with running(tmp_path / "config", "--ephemeral", "--profile", "dgx-h100=1") as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("apply", "-f", "-", given=GPUS)
        kubectl("apply", "-f", "-", given=gpu_job("first", 3, 2))
        kubectl("wait", "job/first", "--for=jsonpath={.status.ready}=3", TIMEOUT)
        kubectl("apply", "-f", "-", given=gpu_job("second", 2, 2))
        kubectl("wait", "job/second", "--for=condition=Suspended", TIMEOUT)
        uid = kubectl("get", "job", "second", "-o", "jsonpath={.metadata.uid}")
        selector = f"-l=kueue.x-k8s.io/job-uid={uid}"
        kubectl("wait", "kwl", selector, "--for=condition=QuotaReserved=false", TIMEOUT)
        reserved = {
            each["type"]: each["reason"]
            for each in workload_of(kubectl, "second")["status"]["conditions"]
        }
        assert reserved["QuotaReserved"] == "WaitingForRoom"
        kubectl("apply", "-f", "-", given=gpu_job("small", 1, 2))
        kubectl("wait", "job/small", "--for=jsonpath={.status.ready}=1", TIMEOUT)
        assert "drayman.dev/room" in workload_of(kubectl, "small")["metadata"]["annotations"]
        kubectl("delete", "job", "first")
        kubectl("wait", "job/second", "--for=jsonpath={.status.ready}=2", TIMEOUT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Configuration", "apiVersion: Unsupported value"),
        (
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
            "waitForPodsReady: {timeout: soon}",
            "waitForPodsReady.timeout: Invalid value",
        ),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    """Before anything is started, with the field."""

    path = tmp_path / "kueue.yaml"
    path.write_text(text)
    done = subprocess.run(
        [*DRAYMAN, "up", "--ephemeral", "--port", "0", "--queue-config", str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stderr

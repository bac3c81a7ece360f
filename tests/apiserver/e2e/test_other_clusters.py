"""Work for other clusters as people see it: three servers in processes of their own, kubectl, and a worker that is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apiserver.e2e.driving import Kubectl, Server, running

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
multiKueue: {workerLostTimeout: 1s}
"""
QUOTA = {"name": "cpu", "nominalQuota": 8}
FLAVORS = [{"name": "standard", "resources": [QUOTA]}]


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def queues(*checks: str) -> list[dict[str, Any]]:
    rules = [{"name": name} for name in checks]
    return [
        kueue("ResourceFlavor", "standard"),
        kueue(
            "ClusterQueue",
            "q",
            namespaceSelector={},
            resourceGroups=[{"coveredResources": ["cpu"], "flavors": FLAVORS}],
            **({"admissionChecksStrategy": {"admissionChecks": rules}} if checks else {}),
        ),
        kueue("LocalQueue", "q", clusterQueue="q"),
    ]


def elsewhere(workers: dict[str, Server]) -> list[dict[str, Any]]:
    found = []
    for name, server in workers.items():
        place = {"location": str(server.kubeconfig), "locationType": "Path"}
        found.append(kueue("MultiKueueCluster", name, clusterSource={"kubeConfig": place}))
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    check = kueue(
        "AdmissionCheck",
        "elsewhere",
        controllerName="kueue.x-k8s.io/multikueue",
        parameters=parameters,
    )
    return [*found, kueue("MultiKueueConfig", "all", clusters=list(workers)), check]


def apply(kubectl: Kubectl, objects: list[dict[str, Any]]) -> None:
    kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": objects})


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
                ],
            }
        }
    },
}


def test_work_of_a_killed_worker_runs_on_the_other_one(tmp_path: Path) -> None:
    """The manager has nodes of its own, and hands its work over all the same."""
    settings = tmp_path / "settings.yaml"
    settings.write_text(CONFIGURATION)
    more = ("--profile", "cpu=1", "--ephemeral")
    with (
        running(tmp_path / "one.yaml", *more) as one,
        running(tmp_path / "two.yaml", *more) as two,
        running(
            tmp_path / "manager.yaml",
            "--queue-config",
            settings,
            *more,
        ) as manager,
    ):
        workers = {"one": one, "two": two}
        home = tmp_path / "home"
        home.mkdir()
        there = {name: Kubectl(server, "default", home) for name, server in workers.items()}
        here = Kubectl(manager, "default", home)
        for each in there.values():
            apply(each, queues())
        apply(here, [*elsewhere(workers), *queues("elsewhere")])
        for name in workers:
            here("wait", f"multikueuecluster/{name}", "--for=condition=Active", "--timeout=120s")
        apply(here, [JOB])
        here("wait", "job/train", "--for=jsonpath={.status.ready}=1", "--timeout=120s")
        (workload,) = here.object("workloads.kueue.x-k8s.io")["items"]
        first = workload["status"]["clusterName"]
        (second,) = set(workers) - {first}
        assert there[first].object("job", "train")["spec"]["suspend"] is False
        assert not there[second].object("jobs")["items"]
        assert not here.object("pods")["items"]
        note = f"Its pods run in cluster {first}"
        events = here.object("events")["items"]
        assert any(note in event.get("message", event.get("note", "")) for event in events)
        workers[first].kill()
        name = workload["metadata"]["name"]
        here(
            "wait",
            f"workloads.kueue.x-k8s.io/{name}",
            f"--for=jsonpath={{.status.clusterName}}={second}",
            "--timeout=120s",
        )
        there[second]("wait", "job/train", "--for=jsonpath={.status.ready}=1", "--timeout=120s")
        here("wait", "job/train", "--for=jsonpath={.status.ready}=1", "--timeout=120s")
        here("delete", "job", "train")
        there[second]("wait", "job/train", "--for=delete", "--timeout=120s")
        assert not there[second].object("pods")["items"]

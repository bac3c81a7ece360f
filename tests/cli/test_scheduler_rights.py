"""`drayman scheduler` beside a cluster that lets it do only so much."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, Kubectl, Server, running

SCHEDULER = "drayman-scheduler"
_FOLLOW = ["get", "list", "watch"]
_CHANGE = [*_FOLLOW, "patch", "update"]

STOCK = {
    "system:kube-scheduler": [
        ("", ["events"], ["create", "patch", "update"]),
        ("events.k8s.io", ["events"], ["create", "patch", "update"]),
        ("coordination.k8s.io", ["leases"], ["create"]),
        ("", ["nodes", "namespaces", "replicationcontrollers", "services"], _FOLLOW),
        ("", ["persistentvolumeclaims", "persistentvolumes"], _FOLLOW),
        ("", ["pods"], [*_FOLLOW, "delete"]),
        ("", ["bindings", "pods/binding"], ["create"]),
        ("", ["pods/status"], ["patch", "update"]),
        ("", ["pods/finalizers"], _CHANGE),
        ("apps", ["replicasets", "statefulsets"], _FOLLOW),
        ("policy", ["poddisruptionbudgets"], _FOLLOW),
        ("storage.k8s.io", ["csinodes", "csidrivers", "csistoragecapacities"], _FOLLOW),
        ("resource.k8s.io", ["deviceclasses", "resourceslices", "devicetaintrules"], _FOLLOW),
        ("resource.k8s.io", ["resourceclaims"], [*_CHANGE, "create", "delete"]),
        ("resource.k8s.io", ["resourceclaims/status"], _CHANGE),
        ("resource.k8s.io", ["resourceclaims/binding"], ["patch", "update"]),
        ("scheduling.k8s.io", ["podgroups", "workloads"], _FOLLOW),
    ],
    "system:volume-scheduler": [
        ("", ["persistentvolumeclaims", "persistentvolumes"], _CHANGE),
        ("storage.k8s.io", ["storageclasses"], _FOLLOW),
    ],
}
"""What Kubernetes 1.36 gives kube-scheduler. Its lease is given by name, so that of others is not."""

WORK = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: claims}
spec:
  schedulerName: drayman
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  containers: [{name: main, image: "example.com/image:1", resources: {claims: [{name: gpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: extended}
spec:
  schedulerName: drayman
  containers: [{name: main, image: "example.com/image:1", resources: {limits: {nvidia.com/gpu: "1"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: victim}
spec:
  schedulerName: drayman
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "example.com/image:1", resources: {requests: {cpu: "60"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: waits}
spec:
  schedulerName: drayman
  containers: [{name: main, image: "example.com/image:1", resources: {requests: {cpu: "6000"}}}]
"""
URGENT = """
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  schedulerName: drayman
  priorityClassName: urgent
  containers: [{name: main, image: "example.com/image:1", resources: {requests: {cpu: "200"}}}]
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rights") / "audit.jsonl"


@pytest.fixture(scope="module")
def server(log: Path) -> Iterator[Server]:
    """A node with GPUs, and nobody who schedules."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    options = ("--ephemeral", "--no-scheduler", "--profile", "dgx-h100=1", "--audit-log", log)
    with running(log.parent / "config", *options) as server:
        yield server


@pytest.fixture(scope="module")
def kubectl(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(server, "default", tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def system(kubectl: Kubectl) -> Kubectl:
    """In the namespace of the scheduler."""
    return replace(kubectl, namespace="kube-system")


Account = Callable[[str], Path]


@pytest.fixture
def account(system: Kubectl, tmp_path: Path) -> Account:
    """The kubeconfig of a service account in kube-system."""

    def make(name: str) -> Path:
        config = json.loads(system.server.kubeconfig.read_bytes())
        token = system("create", "token", name, "--duration=10m").strip()
        config["users"][0]["user"] = {"token": token}
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(config))
        return path

    return make


def granted(*options: str) -> list[dict[str, object]]:
    command = [*DRAYMAN, "scheduler", "--print-rbac", *options]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S)
    return list(yaml.safe_load_all(done.stdout))


def grant(system: Kubectl, *kinds: str) -> None:
    """What --print-rbac prints of these kinds, or all of it."""
    documents = [each for each in granted() if not kinds or each["kind"] in kinds]
    system("apply", "-f", "-", given=yaml.safe_dump_all(documents))


@contextmanager
def scheduling(kubeconfig: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [*DRAYMAN, "scheduler", "--kubeconfig", str(kubeconfig), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)


def refusal(kubeconfig: Path, *options: str) -> str:
    """The one sentence with which it ends, with exit status 1."""
    done = subprocess.run(
        [*DRAYMAN, "scheduler", "--kubeconfig", str(kubeconfig), *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.splitlines()
    return line


def test_the_rights_that_it_prints_are_enough(
    kubectl: Kubectl, system: Kubectl, account: Account, log: Path
) -> None:
    """It gives claims their devices, makes claims for extended resources, preempts, refuses and tells, and nothing of it is forbidden."""
    grant(system)
    wait = ("wait", f"--timeout={PATIENCE_S:.0f}s")
    with scheduling(account(SCHEDULER)) as process:
        kubectl("apply", "-f", "-", given=WORK)
        kubectl(*wait, "--for=condition=Ready", "pod/claims", "pod/extended", "pod/victim")
        kubectl(*wait, "--for=condition=PodScheduled=False", "pod/waits")
        kubectl("apply", "-f", "-", given=URGENT)
        kubectl(*wait, "--for=condition=Ready", "pod/urgent")
        kubectl(*wait, "--for=create", "events", "--field-selector=reason=Preempted")
        assert process.poll() is None
    name = f"system:serviceaccount:kube-system:{SCHEDULER}"
    asked = [json.loads(line) for line in log.read_text().splitlines()]
    ours = [each for each in asked if each["user"]["username"] == name]
    assert {"delete", "create", "patch", "watch", "update"} <= {each["verb"] for each in ours}
    assert [each for each in ours if each["responseStatus"]["code"] == 403] == []


def test_the_roles_of_kube_scheduler_are_not_enough(system: Kubectl, account: Account) -> None:
    """It ends with a sentence that names what is missing and how to grant it."""
    system("create", "serviceaccount", "stock")
    for name, rules in STOCK.items():
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [{"apiGroups": [g], "resources": r, "verbs": v} for g, r, v in rules],
        }
        system("apply", "-f", "-", given=role)
        who = "--serviceaccount=kube-system:stock"
        short = name.removeprefix("system:")
        system("create", "clusterrolebinding", f"stock-{short}", f"--clusterrole={name}", who)
    sentence = refusal(account("stock"))
    assert sentence.startswith("error: on context drayman (https://127.0.0.1:")
    for missing in (
        "get, list, watch jobs.batch",
        "patch podgroups.scheduling.k8s.io/status",
        "get, list, watch topologies.kai.scheduler",
        "get, list, watch topologies.kueue.x-k8s.io",
        "create, delete devicetaintrules.resource.k8s.io",
        "get, list, watch workloads.kueue.x-k8s.io",
        "get, list, watch podgroups.scheduling.run.ai",
        "get, list, watch queues.scheduling.run.ai",
        "patch queues.scheduling.run.ai/status",
        "get, list, watch podgroups.scheduling.x-k8s.io",
        "get, update leases.coordination.k8s.io drayman-scheduler in kube-system",
    ):
        sentence = sentence.replace(missing, "")
    assert "the scheduler lacks the rights to ; ; ; ; ; ; ; ; ; ; . " in sentence
    assert "`drayman scheduler --print-rbac | kubectl apply -f -`" in sentence


def test_another_name_is_granted_beside_the_first(system: Kubectl, account: Account) -> None:
    """The sentence that refuses it says how, and what the scheduler of the first name may do stays."""
    grant(system)
    kubeconfig = account(SCHEDULER)
    sentence = refusal(kubeconfig, "--scheduler-name", "other")
    assert "get, update leases.coordination.k8s.io drayman-scheduler-other in kube-sys" in sentence
    assert (
        "`drayman scheduler --print-rbac --scheduler-name other | kubectl apply -f -`" in sentence
    )
    system("apply", "-f", "-", given=yaml.safe_dump_all(granted("--scheduler-name", "other")))
    try:
        for name in ("other", "drayman"):
            with scheduling(kubeconfig, "--scheduler-name", name) as process:
                assert process.stderr is not None
                said = process.stderr.readline()
                assert said.startswith(f"scheduling pods of {name} on 1 node of")
    finally:
        system("delete", "role,rolebinding", "drayman-scheduler-other")


def test_without_an_election_it_needs_no_lease(system: Kubectl, account: Account) -> None:
    """The rights for the lease are a role of their own, in the namespace of the lease."""
    grant(system)
    try:
        system("delete", "rolebinding", SCHEDULER)
        kubeconfig = account(SCHEDULER)
        assert "the rights to create leases.coordination.k8s.io in kube-system; get, update" in (
            refusal(kubeconfig)
        )
        with scheduling(kubeconfig, "--no-leader-elect") as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("scheduling pods of drayman on 1 node of")
    finally:
        grant(system, "RoleBinding")

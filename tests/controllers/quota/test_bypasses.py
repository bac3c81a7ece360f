"""Attempts of tenants to hold more devices than they are charged for.

The law: what a tenant holds never exceeds what its Workloads are charged for longer than the grace period. What no quota covers is not even
placed, so most attempts do not get that far.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.quota.tenants import (
    CLASS,
    KINDS,
    QUEUE,
    Tenant,
    claim_spec,
    cluster,
    configuration_with,
    is_evicted,
    owner,
    pod_spec,
)
from drayman.cluster.errors import ClusterError
from drayman.cluster.options import DeleteOptions

GATES = {"spec": {"schedulingGates": None}}
HELD = "kueue.x-k8s.io/admission"
NOBODY = "00000000-0000-0000-0000-000000000000"
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}
OWN_GATE = {"schedulingGates": [{"name": "example.com/later"}]}


@dataclass(frozen=True)
class Attempt:
    """Something a tenant with one GPU of quota tries."""

    name: str
    do: Callable[[Tenant], Awaitable[None]]
    everything: bool = False
    """Whether quota is only meant to hold where what names no queue waits as well."""
    is_placed: bool = False
    """Whether it concerns pods that run already, which end a moment after their charge, or when the grace period is over."""


ATTEMPTS: list[Attempt] = []


def attempt(
    name: str, *, everything: bool = False, is_placed: bool = False
) -> Callable[[Callable[[Tenant], Awaitable[None]]], None]:
    def add(do: Callable[[Tenant], Awaitable[None]]) -> None:
        ATTEMPTS.append(Attempt(name, do, everything, is_placed))

    return add


def under(kind: str) -> None:
    """A pod that says it was made by an object which does not exist."""

    @attempt(f"a pod under a {kind} that does not exist")
    async def _(t: Tenant) -> None:
        await t.pod("p", owners=[owner(kind, "ghost", NOBODY)])
        await t.until_settled(1)


for each in (
    "JobSet",
    "RayCluster",
    "PyTorchJob",
    "MPIJob",
    "Job",
    "ReplicaSet",
    "ConfigMap",
    "Node",
):
    under(each)


@attempt("a Job under a JobSet that does not exist")
async def _job_under_ghost(t: Tenant) -> None:
    await t.job("j", pod_spec("eight"), owners=[owner("JobSet", "ghost", NOBODY)])
    await t.cluster.until_workloads(t, 1)
    await t.until_settled(0)


@attempt("a Job under a RayJob that does not exist")
async def _job_under_ray(t: Tenant) -> None:
    await t.job("j", pod_spec("eight"), owners=[owner("RayJob", "ghost", NOBODY)])
    await t.cluster.until_workloads(t, 1)


@attempt("a pod under an admitted Job, with more devices")
async def _larger(t: Tenant) -> None:
    uid = await t.admitted_job()
    await t.pod("p", owners=[owner("Job", "own", uid)])
    await t.until_settled(2)


@attempt("pods under an admitted Job, just like its own")
async def _alike(t: Tenant) -> None:
    uid = await t.admitted_job()
    for number in range(4):
        await t.pod(f"p{number}", pod_spec(), owners=[owner("Job", "own", uid)])
    await t.until_settled(2)


@attempt("a pod under an admitted Job that has another uid")
async def _other_uid(t: Tenant) -> None:
    await t.admitted_job()
    await t.pod("p", pod_spec(), owners=[owner("Job", "own", NOBODY)])
    await t.until_settled(1)


@attempt("a Job under an admitted Job")
async def _job_under_job(t: Tenant) -> None:
    uid = await t.admitted_job()
    await t.job("j", pod_spec("eight"), owners=[owner("Job", "own", uid)])
    await t.cluster.until_workloads(t, 2)


@attempt("a pod under a Job that waits")
async def _under_waiting(t: Tenant) -> None:
    uid = await t.job("waits", pod_spec("eight"))
    await t.pod("p", pod_spec("eight"), owners=[owner("Job", "waits", uid)])
    await t.until_settled(1)


@attempt("a pod with a wrong index under an indexed Job")
async def _index(t: Tenant) -> None:
    uid = await t.admitted_job(completionMode="Indexed")
    await t.pod(
        "p",
        pod_spec(),
        owners=[owner("Job", "own", uid)],
        annotations={"batch.kubernetes.io/job-completion-index": "7"},
    )
    await t.until_settled(2)


@attempt("a pod that gets an owner when it is held")
async def _owner_later(t: Tenant) -> None:
    uid = await t.admitted_job()
    await t.pod("p")
    change = {"metadata": {"ownerReferences": [owner("Job", "own", uid)]}}
    await t.patch("Pod", "p", change)
    await t.until_settled(2)


@attempt("a pod that marks itself as let go by its queue")
async def _marked(t: Tenant) -> None:
    uid = await t.admitted_job()
    labels = {QUEUE: "team", "kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/podset": "main"}
    await t.pod("p", pod_spec(), labels=labels, owners=[owner("Job", "own", uid)])
    await t.cluster.until(lambda: all(p.metadata.name != "p" for p in t.pods()), t)


@attempt("a pod whose gate is removed by a patch")
async def _ungated(t: Tenant) -> None:
    await t.pod("p")
    await t.refused(t.patch("Pod", "p", GATES))
    await t.until_settled(1)


@attempt("a pod whose gate is removed by an update")
async def _replaced(t: Tenant) -> None:
    found = await t.pod("p")
    found["spec"]["schedulingGates"] = []
    await t.refused(t.client.update(KINDS["Pod"], found))
    await t.until_settled(1)


@attempt("a pod whose mark of the queue is removed")
async def _unmarked(t: Tenant) -> None:
    await t.pod("p")
    await t.refused(t.patch("Pod", "p", {"metadata": {"labels": {"kueue.x-k8s.io/managed": None}}}))
    await t.until_settled(1)


@attempt("pods of a group whose gates are removed")
async def _group(t: Tenant) -> None:
    labels = {QUEUE: "team", GROUP: "g"}
    for number in range(2):
        await t.pod(f"p{number}", labels=labels, annotations={TOTAL: "2"})
        await t.refused(t.patch("Pod", f"p{number}", GATES))
    await t.until_settled(2)


@attempt("a group that is larger than it says")
async def _large_group(t: Tenant) -> None:
    await t.template()
    labels = {QUEUE: "team", GROUP: "g"}
    for number in range(3):
        await t.pod(f"p{number}", pod_spec(), labels=labels, annotations={TOTAL: "1"})
    await t.until_running(1)


@attempt("a group named like the Workload of a Job")
async def _group_of_job(t: Tenant) -> None:
    await t.admitted_job()
    (workload,) = t.workloads()
    labels = {QUEUE: "team", GROUP: workload.metadata.name}
    await t.pod("p", pod_spec(), labels=labels, annotations={TOTAL: "1"})
    await t.until_settled(2)


@attempt("a Job with the Workload of another one")
async def _prebuilt_job(t: Tenant) -> None:
    await t.admitted_job()
    (workload,) = t.workloads()
    labels = {QUEUE: "team", PREBUILT: workload.metadata.name}
    await t.job("j", pod_spec(), labels=labels)
    await t.patch("Job", "j", {"spec": {"suspend": False}})
    await t.until_settled(1)


@attempt("a pod with the Workload of a Job")
async def _prebuilt_pod(t: Tenant) -> None:
    await t.admitted_job()
    (workload,) = t.workloads()
    await t.pod("p", pod_spec(), labels={QUEUE: "team", PREBUILT: workload.metadata.name})
    await t.until_settled(2)


@attempt("the pods of an elastic Job that has grown, without their gates")
async def _elastic(t: Tenant) -> None:
    await t.admitted_job(annotations=ELASTIC, completions=8)
    await t.patch("Job", "own", {"spec": {"parallelism": 4}})
    await t.until_settled(4)
    for pod in t.pods():
        if pod.spec.scheduling_gates:
            await t.refused(t.patch("Pod", pod.metadata.name, GATES))
    await t.until_settled(4)


@attempt("a Job that is made larger while it runs")
async def _parallelism(t: Tenant) -> None:
    await t.admitted_job(completions=8)
    await t.patch("Job", "own", {"spec": {"parallelism": 4}})
    await t.cluster.until_suspended(t, "own")


@attempt("a Job that is resumed by hand")
async def _resumed(t: Tenant) -> None:
    await t.job("j", pod_spec("eight"))
    await t.patch("Job", "j", {"spec": {"suspend": False}})
    await t.cluster.until_suspended(t, "j")


@attempt("a template that is made larger after admission")
async def _swapped(t: Tenant) -> None:
    await t.admitted_job()
    await t.delete("ResourceClaimTemplate", "one")
    await t.template("one", 8)
    (pod,) = t.running()
    await t.delete("Pod", pod.metadata.name)
    await t.cluster.until_evicted(t)


@attempt("a template that is made larger while a gate of the tenant holds the pod")
async def _swapped_held(t: Tenant) -> None:
    await t.template()
    await t.job("own", pod_spec(**OWN_GATE))
    await t.until_settled(1)
    await t.delete("ResourceClaimTemplate", "one")
    await t.template("one", 8)
    (pod,) = t.pods()
    await t.patch("Pod", pod.metadata.name, GATES)
    await t.until_settled(1)


@attempt("a claim that the tenant puts in place of the one that was made for a pod")
async def _swapped_claim(t: Tenant) -> None:
    await t.template()
    await t.job("own", pod_spec(**OWN_GATE))
    await t.cluster.until(lambda: any(p.status.resource_claim_statuses for p in t.pods()), t)
    (pod,) = t.pods()
    (status,) = pod.status.resource_claim_statuses
    name = status.resource_claim_name
    await t.delete("ResourceClaim", name)
    maker = owner("Pod", pod.metadata.name, pod.metadata.uid)
    await t.create("ResourceClaim", name, claim_spec(8), ownerReferences=[maker])
    await t.patch("Pod", pod.metadata.name, GATES)
    await t.until_settled(1)


@attempt("a named claim that is made larger after admission")
async def _swapped_named(t: Tenant) -> None:
    await t.create("ResourceClaim", "shared", claim_spec(1))
    await t.job("own", pod_spec(claim="shared", **OWN_GATE))
    await t.until_settled(1)
    await t.delete("ResourceClaim", "shared")
    await t.create("ResourceClaim", "shared", claim_spec(8))
    (pod,) = t.pods()
    await t.patch("Pod", pod.metadata.name, GATES)
    await t.cluster.until_evicted(t)


@attempt("a pod with more of an extended resource under an admitted Job")
async def _extended(t: Tenant) -> None:
    uid = await t.admitted_job(spec=pod_spec(gpus=1))
    await t.pod("p", pod_spec(gpus=8), owners=[owner("Job", "own", uid)])
    await t.until_settled(2)


@attempt("a pod that names its node")
async def _on_a_node(t: Tenant) -> None:
    node = next(iter(await t.cluster.nodes()))
    await t.refused(t.pod("p", pod_spec("eight", nodeName=node)))


@attempt("a pod that is bound by its tenant")
async def _bound(t: Tenant) -> None:
    node = next(iter(await t.cluster.nodes()))
    await t.pod("p")
    await t.refused(t.bind("p", node))
    await t.until_settled(1)


async def _deployment_of(t: Tenant) -> None:
    await t.template()
    labels = {"app": "a"}
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(restartPolicy="Always")},
    }
    await t.create("Deployment", "d", spec, labels={QUEUE: "team"})


@attempt("a Deployment that is larger than its quota")
async def _deployment(t: Tenant) -> None:
    await _deployment_of(t)
    await t.until_settled(3)


@attempt("a ReplicaSet whose pods name the queue")
async def _replica_set(t: Tenant) -> None:
    labels = {"app": "a", QUEUE: "team"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": labels},
            "spec": pod_spec("eight", restartPolicy="Always"),
        },
    }
    await t.create("ReplicaSet", "r", spec)
    await t.until_settled(2)


@attempt("a StatefulSet that says it is smaller")
async def _stateful_set(t: Tenant) -> None:
    await t.template()
    labels = {"app": "a"}
    template = {
        "metadata": {"labels": labels, "annotations": {TOTAL: "1"}},
        "spec": pod_spec(restartPolicy="Always"),
    }
    spec = {
        "replicas": 3,
        "podManagementPolicy": "Parallel",
        "serviceName": "s",
        "selector": {"matchLabels": labels},
        "template": template,
    }
    await t.create("StatefulSet", "s", spec, labels={QUEUE: "team"})
    await t.until_settled(3)


@attempt("a Job that is deleted while its pods take long to end", is_placed=True)
async def _deleted(t: Tenant) -> None:
    await t.admitted_job(spec=pod_spec(terminationGracePeriodSeconds=86_400))
    options = DeleteOptions(propagation="Background")
    await t.client.delete(KINDS["Job"], "own", t.namespace, options=options)
    await t.job("next")
    await t.cluster.until(lambda: any(p.metadata.name[:4] == "next" for p in t.pods()), t)


@attempt("a pod without a queue", everything=True)
async def _bare(t: Tenant) -> None:
    await t.pod("p", labels={})
    await t.until_settled(1)


@attempt("a pod without a queue under an admitted Job", everything=True)
async def _bare_under(t: Tenant) -> None:
    uid = await t.admitted_job()
    await t.pod("p", labels={}, owners=[owner("Job", "own", uid)])
    await t.until_settled(2)


@attempt("a DaemonSet without a queue", everything=True)
async def _daemon_set(t: Tenant) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec("eight", restartPolicy="Always")}
    await t.create("DaemonSet", "d", {"selector": {"matchLabels": labels}, "template": template})
    await t.until_settled(1)


@attempt(
    "a pod that leaves its Job, so that the Job makes another one", everything=True, is_placed=True
)
async def _leaves(t: Tenant) -> None:
    await t.admitted_job()
    (pod,) = t.running()
    name = pod.metadata.name
    await t.operate(
        "Pod",
        name,
        {"op": "remove", "path": "/metadata/ownerReferences"},
        {"op": "replace", "path": "/metadata/labels", "value": {}},
    )
    await t.cluster.until(lambda: all(p.metadata.name != name for p in t.running()), t)


async def _by_hand(t: Tenant, **more: Any) -> list[str]:
    """The names of pods that a tenant makes for a Job with quota for one of them, which no controller looks after."""
    await t.template()
    uid = await t.job(managedBy="example.com/nobody", **more)
    await t.cluster.until(lambda: t.cluster.is_resumed(t, "own"), t)
    names = [f"p{number}" for number in range(3)]
    for name in names:
        await t.pod(name, pod_spec(), labels={}, owners=[owner("Job", "own", uid)])
    await t.until_running(1)
    return names


@attempt("pods that leave their Job one after the other, so that the next gets the place")
async def _leave_in_turn(t: Tenant) -> None:
    await _by_hand(t)
    for _ in range(2):
        for pod in t.running():
            await t.patch("Pod", pod.metadata.name, {"metadata": {"ownerReferences": None}})
        await asyncio.sleep(0.2)


@attempt("pods that are covered in turn, so that none is uncovered for long", everything=True)
async def _covered_in_turn(t: Tenant) -> None:
    names = await _by_hand(t)
    found = await t.get("Pod", names[0])
    owners = found["metadata"]["ownerReferences"]
    for number in range(9):
        for name in names:
            has = owners if name == names[number % 3] else None
            with suppress(ClusterError):
                await t.patch("Pod", name, {"metadata": {"ownerReferences": has}})
        await asyncio.sleep(0.2)


@attempt("Jobs that are deleted without their pods, one after the other")
async def _orphaned(t: Tenant) -> None:
    await t.template()
    for number in range(3):
        await t.job(f"j{number}")
        await t.cluster.until(lambda n=number: t.charged() == 1 and len(t.workloads()) > n, t)
        await asyncio.sleep(0.2)
        options = DeleteOptions(propagation="Orphan")
        await t.client.delete(KINDS["Job"], f"j{number}", t.namespace, options=options)


@attempt("an elastic Job that shrinks while pods run that it does not know")
async def _shrunk(t: Tenant) -> None:
    await _by_hand(t, annotations=ELASTIC)
    await t.patch("Job", "own", {"spec": {"parallelism": 0}})
    await t.job("next")
    await t.cluster.until(lambda: len(t.workloads()) == 2, t)
    await asyncio.sleep(0.3)


@attempt("a Job that is changed while pods run that it does not know")
async def _changed(t: Tenant) -> None:
    await _by_hand(t, completions=4)
    await t.patch("Job", "own", {"spec": {"suspend": True, "parallelism": 2}})
    await t.job("next")
    await t.cluster.until(lambda: len(t.workloads()) == 2, t)
    await asyncio.sleep(0.3)


async def tried(tenant: Tenant, what: Attempt) -> str:
    """What is wrong with an attempt; empty if nothing is."""
    try:
        await what.do(tenant)
        await tenant.until_covered()
    except (AssertionError, ClusterError) as error:
        return f"{what.name}: {error}"
    worst = tenant.ledger.worst()
    if worst > 0 and not what.is_placed:
        return f"{what.name}: {worst} more GPUs were held than charged"
    return ""


async def broken(folder: Path, attempts: list[Attempt], *, everything: bool) -> str:
    """What is wrong with attempts that are made side by side."""
    async with cluster(folder, len(attempts) + 4, everything=everything) as here:
        tenants = [await here.tenant(f"t{number}") for number in range(len(attempts))]
        said = await asyncio.gather(
            *(tried(tenant, each) for tenant, each in zip(tenants, attempts, strict=True))
        )
    return "\n".join(each for each in said if each)


async def test_no_attempt_gets_devices_that_are_not_charged(tmp_path: Path) -> None:
    """What names a queue holds no more than it is charged for, however it came about and was changed."""
    attempts = [each for each in ATTEMPTS if not each.everything]
    assert not await broken(tmp_path, attempts, everything=False)


async def test_no_attempt_gets_devices_where_everything_waits(tmp_path: Path) -> None:
    """With `manageJobsWithoutQueueName`, the same holds for everything in the namespace."""
    assert not await broken(tmp_path, ATTEMPTS, everything=True)


# What is charged runs, also where it has replaced something.

FAIR: list[tuple[Attempt, int]] = []


def fair(name: str, gpus: int) -> Callable[[Callable[[Tenant], Awaitable[None]]], None]:
    def add(do: Callable[[Tenant], Awaitable[None]]) -> None:
        FAIR.append((Attempt(name, do, is_placed=True), gpus))

    return add


@fair("a pod of a Job that takes the place of another one", 1)
async def _replaced_pod(t: Tenant) -> None:
    await t.admitted_job()
    (pod,) = t.running()
    await t.delete("Pod", pod.metadata.name)
    await t.cluster.until(
        lambda: [p.metadata.name for p in t.running()] not in ([], [pod.metadata.name]), t
    )


@fair("an elastic Job that grows within its quota", 4)
async def _grown(t: Tenant) -> None:
    await t.admitted_job(annotations=ELASTIC, completions=8)
    await t.patch("Job", "own", {"spec": {"parallelism": 4}})
    await t.until_running(4)
    await t.until_charged(4)


@fair("a template that is made larger, with quota for the difference", 8)
async def _difference(t: Tenant) -> None:
    await t.admitted_job()
    await t.until_charged(1)
    await t.delete("ResourceClaimTemplate", "one")
    await t.template("one", 8)
    (pod,) = t.running()
    await t.delete("Pod", pod.metadata.name)
    await t.until_charged(8)
    await t.cluster.until(lambda: sum(t.ledger.held.values()) == 8, t)
    assert not any(is_evicted(each) for each in t.workloads())


@fair("a template that is made larger, with quota that another Job has at first", 9)
async def _difference_later(t: Tenant) -> None:
    await t.job("first", pod_spec("eight"))
    await t.until_running(1)
    await t.template()
    await t.job("own")
    await t.until_running(2)
    await t.delete("ResourceClaimTemplate", "one")
    await t.template("one", 8)
    (pod,) = [each for each in t.running() if each.metadata.name.startswith("own")]
    await t.delete("Pod", pod.metadata.name)
    await t.cluster.until_evicted(t)
    await t.client.delete(
        KINDS["Job"], "first", t.namespace, options=DeleteOptions(propagation="Background")
    )
    await t.cluster.until(lambda: [p.metadata.name[:3] for p in t.running()] == ["own"], t)
    await t.until_charged(8)


@fair("a group of pods", 2)
async def _whole_group(t: Tenant) -> None:
    await t.template()
    for number in range(2):
        await t.pod(
            f"p{number}",
            pod_spec(),
            labels={QUEUE: "team", GROUP: "g"},
            annotations={TOTAL: "2"},
        )
    await t.until_running(2)


@fair("a Deployment within its quota", 3)
async def _whole_deployment(t: Tenant) -> None:
    await _deployment_of(t)
    await t.until_running(3)


@fair("pods that ask for an extended resource", 2)
async def _extended_pods(t: Tenant) -> None:
    await t.job("own", pod_spec(gpus=1), pods=2)
    await t.until_running(2)


async def test_what_is_charged_is_placed(tmp_path: Path) -> None:
    """The same rule lets run what has quota, and charges the difference where a pod comes to cost more and the quota is free."""
    async with cluster(tmp_path, len(FAIR) + 4) as here:
        tenants = [await here.tenant(f"t{n}", gpus) for n, (_, gpus) in enumerate(FAIR)]
        said = await asyncio.gather(
            *(tried(tenant, each) for tenant, (each, _) in zip(tenants, FAIR, strict=True))
        )
    assert not "\n".join(each for each in said if each)


async def test_running_pods_that_cost_more_are_evicted_after_the_grace_period(
    tmp_path: Path,
) -> None:
    """Devices are charged under another name from now on, of which the queue has nothing: the Job gives up its quota, and waits."""
    async with cluster(tmp_path, 2) as here:
        tenant = await here.tenant("team")
        await tenant.admitted_job()
        other = [{"name": "example.com/rare", "deviceClassNames": [CLASS]}]
        here.source.use(configuration_with(other, strategy="BlockUndeclared").current)
        await here.until_evicted(tenant)
        await here.until(lambda: not tenant.running(), tenant)
        assert tenant.ledger.worst() == 0

"""A whole cluster with queues, and tenants: service accounts with the role `edit` in a namespace, a GPU of quota, and eight to take.

What a tenant holds is compared with what its Workloads are charged after every change of a claim or a Workload, so that nothing is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drayman.api.core import Pod
from drayman.api.kueue import status_of
from drayman.api.kueue_workload import Workload, WorkloadStatus
from drayman.api.pods import is_finished
from drayman.api.resource import ResourceClaim
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.cluster import HttpClient, Informers, json_patch, merge_patch
from drayman.cluster.errors import ClusterError
from drayman.cluster.kube.credentials import Credential, StaticCredentials, bearer
from drayman.cluster.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    JsonObject,
    Resource,
    generic,
    typed,
)
from drayman.controllers.quota.configuration import configuration_of
from drayman.controllers.quota.source import ConfigurationSource
from drayman.drivers.profiles import parse_profiles, simulate
from drayman.quota.amounts import amount_of
from drayman.workloads.queued import life
from patience import PATIENCE_S

GPU = "example.com/gpu"
CLASS = "gpu.nvidia.com"
QUEUE = "kueue.x-k8s.io/queue-name"
GRACE_S = 1
WORKLOADS = typed(Workload)
KINDS: Mapping[str, Resource[JsonObject]] = {
    each.kind: each
    for each in (
        generic("v1", "namespaces", "Namespace", namespaced=False),
        generic("v1", "pods", "Pod"),
        generic("v1", "serviceaccounts", "ServiceAccount"),
        generic("batch/v1", "jobs", "Job"),
        generic("batch/v1", "cronjobs", "CronJob"),
        generic("apps/v1", "deployments", "Deployment"),
        generic("apps/v1", "replicasets", "ReplicaSet"),
        generic("apps/v1", "statefulsets", "StatefulSet"),
        generic("apps/v1", "daemonsets", "DaemonSet"),
        generic("resource.k8s.io/v1", "resourceclaims", "ResourceClaim"),
        generic("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
        generic("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
        generic("kueue.x-k8s.io/v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False),
        generic("kueue.x-k8s.io/v1beta2", "clusterqueues", "ClusterQueue", namespaced=False),
        generic("kueue.x-k8s.io/v1beta2", "localqueues", "LocalQueue"),
    )
}


def claim_spec(count: int) -> JsonObject:
    exactly = {"deviceClassName": CLASS, "count": count}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def pod_spec(template: str = "one", *, claim: str = "", **more: Any) -> JsonObject:
    """A pod with devices from a template, or with a claim; `gpus` of the extended resource instead."""
    gpus = more.pop("gpus", 0)
    container: JsonObject = {"name": "c", "image": "i"}
    spec: JsonObject = {"restartPolicy": "Never", "containers": [container]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    else:
        entry = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
        spec["resourceClaims"] = [{"name": "gpu", **entry}]
        container["resources"] = {"claims": [{"name": "gpu"}]}
    return {**spec, **more}


def owner(kind: str, name: str, uid: str) -> JsonObject:
    versions = {
        "JobSet": "jobset.x-k8s.io/v1alpha2",
        "RayCluster": "ray.io/v1",
        "RayJob": "ray.io/v1",
        "PyTorchJob": "kubeflow.org/v1",
        "MPIJob": "kubeflow.org/v2beta1",
        "Job": "batch/v1",
        "ReplicaSet": "apps/v1",
        "StatefulSet": "apps/v1",
    }
    version = versions.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


@dataclass
class Ledger:
    """What a namespace holds and what it is charged."""

    held: dict[str, int] = field(default_factory=dict)
    charged: dict[str, int] = field(default_factory=dict)
    since: float | None = None
    """Since when more is held than charged, as far as is seen: each kind has a watch of its own."""
    history: list[tuple[int, str, str, int]] = field(default_factory=list)
    """Every change, with its version."""

    def note(self, book: str, version: str, uid: str, amount: int) -> None:
        self.history.append((int(version), book, uid, amount))
        getattr(self, book)[uid] = amount
        if sum(self.held.values()) <= sum(self.charged.values()):
            self.since = None
        elif self.since is None:
            self.since = asyncio.get_running_loop().time()

    def worst(self) -> int:
        """How much more was held than charged, at most, in the order in which the server wrote."""
        books: dict[str, dict[str, int]] = {"held": {}, "charged": {}}
        worst = 0
        for _, book, uid, amount in sorted(self.history):
            books[book][uid] = amount
            worst = max(worst, sum(books["held"].values()) - sum(books["charged"].values()))
        return worst


class Tenant:
    """Who may do in one namespace what the role `edit` permits."""

    def __init__(self, cluster: Cluster, namespace: str, client: HttpClient) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.client = client
        self.ledger = Ledger()

    async def create(
        self, kind: str, name: str, spec: JsonObject | None = None, **metadata: Any
    ) -> JsonObject:
        body: JsonObject = {"metadata": {"name": name, **metadata}}
        if spec is not None:
            body["spec"] = spec
        return await self.client.create(KINDS[kind], body, self.namespace)

    async def patch(
        self, kind: str, name: str, change: JsonObject, subresource: str = ""
    ) -> JsonObject:
        return await self.client.patch(
            KINDS[kind], name, merge_patch(change), self.namespace, subresource=subresource
        )

    async def operate(self, kind: str, name: str, *operations: JsonObject) -> JsonObject:
        return await self.client.patch(
            KINDS[kind], name, json_patch(list(operations)), self.namespace
        )

    async def get(self, kind: str, name: str) -> JsonObject:
        return await self.client.get(KINDS[kind], name, self.namespace)

    async def delete(self, kind: str, name: str) -> None:
        await self.client.delete(KINDS[kind], name, self.namespace)

    async def refused(self, doing: Any) -> str:
        """The message of a refusal."""
        try:
            await doing
        except ClusterError as error:
            return str(error)
        raise AssertionError(f"{self.namespace}: it was not refused")

    async def template(self, name: str = "one", count: int = 1) -> None:
        await self.create("ResourceClaimTemplate", name, {"spec": claim_spec(count)})

    async def job(
        self, name: str = "own", spec: JsonObject | None = None, *, pods: int = 1, **more: Any
    ) -> str:
        """A Job in the queue. Returns its uid."""
        annotations = more.pop("annotations", {})
        labels = more.pop("labels", {QUEUE: "team"})
        owners = more.pop("owners", [])
        body = {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": spec or pod_spec()},
            **more,
        }
        made = await self.create(
            "Job", name, body, labels=labels, annotations=annotations, ownerReferences=owners
        )
        return str(made["metadata"]["uid"])

    async def pod(self, name: str, spec: JsonObject | None = None, **more: Any) -> JsonObject:
        """A pod in the queue."""
        labels = more.pop("labels", {QUEUE: "team"})
        owners = more.pop("owners", [])
        return await self.create(
            "Pod", name, spec or pod_spec("eight"), labels=labels, ownerReferences=owners, **more
        )

    async def admitted_job(
        self, name: str = "own", spec: JsonObject | None = None, **more: Any
    ) -> str:
        """A Job with quota whose pods run."""
        await self.template()
        uid = await self.job(name, spec, **more)
        await self.until_running(1)
        return uid

    def pods(self) -> list[Pod]:
        return [p for p in self.cluster.pods if p.metadata.namespace == self.namespace]

    def workloads(self) -> list[Workload]:
        return [w for w in self.cluster.workloads if w.metadata.namespace == self.namespace]

    async def bind(self, pod: str, node: str) -> None:
        """Have a pod go to a node, as schedulers do."""
        await self.client.bind(pod, self.namespace, node)

    def running(self) -> list[Pod]:
        return [
            p
            for p in self.pods()
            if p.spec.node_name and not is_finished(p) and not p.metadata.deletion_timestamp
        ]

    def charged(self) -> int:
        return sum(self.ledger.charged.values())

    async def until_running(self, number: int) -> list[Pod]:
        await self.cluster.until(lambda: len(self.running()) == number, self)
        return self.running()

    async def until_settled(self, pods: int) -> None:
        """So many pods came, and each is gone, is on a node, is held by a gate, or was refused by the scheduler."""

        def settled() -> bool:
            found = [p for p in self.pods() if not p.metadata.deletion_timestamp]
            seen = sum(namespace == self.namespace for namespace, _ in self.cluster.seen)
            return seen >= pods and all(
                p.spec.node_name or p.spec.scheduling_gates or is_finished(p) or _is_refused(p)
                for p in found
            )

        await self.cluster.until(settled, self)

    async def until_covered(self) -> None:
        """No more is held than charged."""
        await self.cluster.until(lambda: self.ledger.since is None, self)

    async def until_charged(self, number: int) -> None:
        await self.cluster.until(lambda: sum(self.ledger.charged.values()) == number, self)


def _is_refused(pod: Pod) -> bool:
    return any(
        each.type_ == "PodScheduled" and each.status == "False" for each in pod.status.conditions
    )


class Cluster:
    """A cluster whose claims and Workloads are followed."""

    def __init__(
        self, admin: HttpClient, informers: Informers, source: ConfigurationSource
    ) -> None:
        self.admin = admin
        self.source = source
        self.tenants: dict[str, Tenant] = {}
        self._changed = asyncio.Condition()
        self._informers = informers
        self.pods = informers.informer(PODS).cache
        self.workloads = informers.informer(WORKLOADS).cache
        self.jobs = informers.informer(KINDS["Job"]).cache
        informers.informer(KINDS["Job"]).add_handler(lambda _: self._wake())
        self.seen: set[tuple[str, str]] = set()
        """Pods that exist or existed, by namespace and name."""
        informers.informer(PODS).add_handler(self._pod)
        informers.informer(RESOURCE_CLAIMS).add_handler(self._claim)
        informers.informer(WORKLOADS).add_handler(self._workload)
        self._event = asyncio.Event()

    async def close(self) -> None:
        for tenant in self.tenants.values():
            await tenant.client.close()

    def _wake(self) -> None:
        self._event.set()

    def _pod(self, notice: Any) -> None:
        self.seen.add((notice.object.metadata.namespace, notice.object.metadata.name))
        self._wake()

    def _claim(self, notice: Any) -> None:
        claim: ResourceClaim = notice.object
        tenant = self.tenants.get(claim.metadata.namespace)
        if tenant is not None:
            gone = notice.type == "DELETED" or claim.status.allocation is None
            number = 0 if gone else len(claim.status.results)
            version = claim.metadata.resource_version
            tenant.ledger.note("held", version, claim.metadata.uid, number)
        self._wake()

    def _workload(self, notice: Any) -> None:
        workload: Workload = notice.object
        tenant = self.tenants.get(workload.metadata.namespace)
        if tenant is not None:
            charged = 0 if notice.type == "DELETED" else charge_of(workload)
            version = workload.metadata.resource_version
            tenant.ledger.note("charged", version, workload.metadata.uid, charged)
        self._wake()

    async def until(self, holds: Callable[[], bool], tenant: Tenant) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():
                    await self._event.wait()
                    self._event.clear()
                    await asyncio.sleep(0)
        except TimeoutError:
            shown = [
                f"{p.metadata.name} on {p.spec.node_name or '-'} {[g.name for g in p.spec.scheduling_gates]}"
                f" {[c.message for c in p.status.conditions if c.status == 'False']}"
                for p in tenant.pods()
            ]
            raise AssertionError(
                f"{tenant.namespace}: it never came true: holds {sum(tenant.ledger.held.values())}, is charged"
                f" {sum(tenant.ledger.charged.values())}; {shown}"
            ) from None

    async def until_workloads(self, tenant: Tenant, number: int) -> None:
        """So many Workloads exist, one for each object that waits by itself."""
        await self.until(lambda: len(tenant.workloads()) == number, tenant)

    async def until_suspended(self, tenant: Tenant, job: str) -> None:
        def suspended() -> bool:
            found = self.jobs.get(job, tenant.namespace)
            return found is not None and bool(found["spec"].get("suspend"))

        await self.until(suspended, tenant)

    def is_resumed(self, tenant: Tenant, job: str) -> bool:
        found = self.jobs.get(job, tenant.namespace)
        return found is not None and not found["spec"].get("suspend")

    async def until_evicted(self, tenant: Tenant) -> None:
        """A Workload has lost its quota because its pods cost more than it was admitted with."""

        def evicted() -> bool:
            return any(is_evicted(each) and not charge_of(each) for each in tenant.workloads())

        await self.until(evicted, tenant)

    async def nodes(self) -> list[str]:
        return [each.metadata.name for each in (await self.admin.list(NODES)).items]

    async def tenant(self, namespace: str, gpus: int = 1) -> Tenant:
        """A new namespace with an account, and a queue with so many GPUs."""
        admin = self.admin
        await admin.create(
            KINDS["Namespace"], {"metadata": {"name": namespace, "labels": {"team": "yes"}}}
        )
        await admin.create(KINDS["ServiceAccount"], {"metadata": {"name": "dev"}}, namespace)
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        subject = {"kind": "ServiceAccount", "name": "dev", "namespace": namespace}
        binding = {"metadata": {"name": "dev"}, "roleRef": role, "subjects": [subject]}
        await admin.create(KINDS["RoleBinding"], binding, namespace)
        quota = {"name": GPU, "nominalQuota": gpus}
        group = {"coveredResources": [GPU], "flavors": [{"name": "h100", "resources": [quota]}]}
        spec = {"namespaceSelector": {}, "resourceGroups": [group]}
        await admin.create(KINDS["ClusterQueue"], {"metadata": {"name": namespace}, "spec": spec})
        local = {"metadata": {"name": "team"}, "spec": {"clusterQueue": namespace}}
        await admin.create(KINDS["LocalQueue"], local, namespace)
        issued = await admin.request_token("dev", namespace, {})
        token = StaticCredentials(Credential(bearer(issued.value)))
        client = HttpClient(replace(admin.connection, credentials=token))
        made = self.tenants[namespace] = Tenant(self, namespace, client)
        await made.template("eight", 8)
        return made


def charge_of(workload: Workload) -> int:
    """How many GPUs a Workload holds quota for."""
    status = status_of(WorkloadStatus, workload)
    if not life.holds_quota(status) or life.is_finished(status) or status.admission is None:
        return 0
    return sum(
        amount_of(GPU, each.resource_usage[GPU])
        for each in status.admission.pod_set_assignments
        if GPU in each.resource_usage
    )


def is_evicted(workload: Workload) -> bool:
    """Whether a Workload lost its quota because its pods cost more than it was admitted with."""
    status = status_of(WorkloadStatus, workload)
    return life.reason_of(status, "Evicted") == life.DRIFT


def configuration_with(
    mappings: list[JsonObject], *, everything: bool = False, strategy: str = "IgnoreUndeclared"
) -> ConfigurationSource:
    given: JsonObject = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"deviceClassMappings": mappings, "quotaCheckStrategy": strategy},
        "drayman": {"unchargedGracePeriod": f"{GRACE_S}s"},
        "manageJobsWithoutQueueName": everything,
        "managedJobsNamespaceSelector": {"matchLabels": {"team": "yes"}},
    }
    return ConfigurationSource(configuration_of(given))


@asynccontextmanager
async def cluster(folder: Path, nodes: int, *, everything: bool = False) -> AsyncIterator[Cluster]:
    """A cluster with so many nodes of eight GPUs; with `everything`, also what names no queue waits."""
    mappings: list[JsonObject] = [{"name": GPU, "deviceClassNames": [CLASS]}]
    source = configuration_with(mappings, everything=everything)
    hardware = simulate(parse_profiles(f"dgx-h100={nodes}"))
    parts = ControlPlane(hardware=hardware, queues=source)
    async with AsyncExitStack() as end:
        instance = await start(Options(folder=Folder(folder), durable=False, control_plane=parts))
        end.push_async_callback(instance.stop)
        client = await end.enter_async_context(HttpClient.from_environment(instance.kubeconfig))
        seen = Informers(client)
        end.push_async_callback(seen.stop)
        made = Cluster(client, seen, source)
        await seen.start()
        await seen.wait_synced()
        await client.create(KINDS["ResourceFlavor"], {"metadata": {"name": "h100"}})
        end.push_async_callback(made.close)
        yield made

"""Small clusters with queues, built object by object and named by what matters: what is given out is cpu of some flavor."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import KueueTopology
from drayman.api.jobs import Job
from drayman.api.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    WorkloadPriorityClass,
)
from drayman.api.kueue_workload import Workload
from drayman.api.resource import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.times import timestamp_at
from drayman.placement.world import Objects, World
from oracle.nodes import JsonObject

NOW = 1_900_000_000.0
GROUP = "kueue.x-k8s.io/v1beta2"


def moment(seconds: float) -> str:
    """A time so long after the world was read."""
    return timestamp_at(NOW + seconds)


class Hall:
    """Queues, and workloads in them. Everything is in namespace `default`, where local queue `lq-NAME` leads to cluster queue `NAME`."""

    def __init__(self) -> None:
        self.objects: dict[str, list[JsonObject]] = {}
        self.configuration: JsonObject | None = None
        self._add("namespaces", {"metadata": {"name": "default"}})
        self._count = 0

    def _add(self, member: str, value: JsonObject) -> Hall:
        self.objects.setdefault(member, []).append(value)
        return self

    def flavor(self, name: str, **spec: Any) -> Hall:
        return self._add("flavors", {"metadata": {"name": name}, "spec": spec})

    def cohort(self, name: str, parent: str = "", **quotas: Any) -> Hall:
        spec: JsonObject = {"parentName": parent} if parent else {}
        if quotas:
            spec["resourceGroups"] = [_group(quotas)]
        return self._add("cohorts", {"metadata": {"name": name}, "spec": spec})

    def queue(
        self, name: str, cohort: str = "", *, local: bool = True, more: Any = None, **quotas: Any
    ) -> Hall:
        """A cluster queue with cpu of each flavor, as a number or with its limits, and its local queue."""
        spec: JsonObject = {
            "namespaceSelector": {},
            "resourceGroups": [_group(quotas)],
            **(more or {}),
        }
        if cohort:
            spec["cohortName"] = cohort
        self._add("cluster_queues", {"metadata": {"name": name}, "spec": spec})
        return self.local(f"lq-{name}", name) if local else self

    def local(self, name: str, cluster_queue: str, **spec: Any) -> Hall:
        metadata = {"name": name, "namespace": "default"}
        return self._add(
            "local_queues", {"metadata": metadata, "spec": {"clusterQueue": cluster_queue, **spec}}
        )

    def workload(
        self,
        name: str,
        queue: str,
        cpu: int | str,
        *,
        priority: int = 0,
        count: int = 1,
        has: str = "",
        admitted: bool = True,
        since: float = -3600,
        runs: str = "",
        owner: JsonObject | None = None,
        status: JsonObject | None = None,
        **spec: Any,
    ) -> Hall:
        """A workload of pods with so much cpu each. `has` is the flavor of which it holds quota already."""
        self._count += 1
        metadata: JsonObject = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": moment(-10_000 + self._count),
        }
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        annotations = {"drayman.dev/runtime": runs} if runs else {}
        requests = {"resources": {"requests": {"cpu": str(cpu)}}}
        template = {
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": "none", **requests}]},
        }
        pod_set = {"name": "main", "count": count, "template": template}
        body = {
            "podSets": [pod_set],
            "queueName": queue if queue.startswith("lq-") else f"lq-{queue}",
            "priority": priority,
            **spec,
        }
        found = status or (_status(queue, has, cpu, count, admitted, since) if has else {})
        return self._add("queued_workloads", {"metadata": metadata, "spec": body, "status": found})

    def world(self) -> World:
        types: dict[str, Any] = {
            "namespaces": Namespace,
            "flavors": ResourceFlavor,
            "cohorts": Cohort,
            "admission_checks": AdmissionCheck,
            "cluster_queues": ClusterQueue,
            "local_queues": LocalQueue,
            "workload_classes": WorkloadPriorityClass,
            "queued_workloads": Workload,
            "nodes": Node,
            "kueue_topologies": KueueTopology,
            "pods": Pod,
            "jobs": Job,
            "slices": ResourceSlice,
            "classes": DeviceClass,
            "claims": ResourceClaim,
            "templates": ResourceClaimTemplate,
        }
        objects: dict[str, Any] = {
            member: tuple(convert(types[member], each) for each in values)
            for member, values in self.objects.items()
        }
        return World(Objects(**objects), NOW, queue_configuration=self.configuration)


def _group(quotas: JsonObject) -> JsonObject:
    return {
        "coveredResources": ["cpu"],
        "flavors": [
            {"name": flavor, "resources": [{"name": "cpu", **_quota(value)}]}
            for flavor, value in quotas.items()
        ],
    }


def _quota(value: Any) -> JsonObject:
    """A number, or the number with the limits: `{"nominal": 3, "borrow": 1, "lend": 2}`."""
    given = value if isinstance(value, dict) else {"nominal": value}
    names = {"nominal": "nominalQuota", "borrow": "borrowingLimit", "lend": "lendingLimit"}
    return {names[name]: str(each) for name, each in given.items()}


def _status(
    queue: str, flavor: str, cpu: int | str, count: int, admitted: bool, since: float
) -> JsonObject:
    total = f"{int(cpu) * count}"
    admission = {
        "clusterQueue": queue.removeprefix("lq-"),
        "podSetAssignments": [
            {
                "name": "main",
                "flavors": {"cpu": flavor},
                "resourceUsage": {"cpu": total},
                "count": count,
            }
        ],
    }
    at = {"lastTransitionTime": moment(since), "reason": "QuotaReserved", "message": ""}
    conditions = [{"type": "QuotaReserved", "status": "True", **at}]
    if admitted:
        conditions.append({"type": "Admitted", "status": "True", **at})
    return {"admission": admission, "conditions": conditions}

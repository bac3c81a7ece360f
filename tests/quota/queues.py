"""Small builders for queues, cohorts and workloads, and a run of them through the engine.

Every cluster queue has a local queue of the same name. Amounts are cpu unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drayman.api.codec import convert
from drayman.api.times import timestamp_at
from drayman.simulate.quota_replay.driving import Run
from drayman.simulate.quota_replay.scenario import Scenario, Step

Object = dict[str, Any]
Limits = tuple[Any, Any, Any]
"""Nominal quota, borrowing limit, lending limit."""

NAMESPACE = "default"
FLAVOR = "f"


def limits(nominal: Any, borrow: Any = None, lend: Any = None) -> Limits:
    return nominal, borrow, lend


def flavor(name: str = FLAVOR, **spec: Any) -> Object:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def groups(quota: Mapping[str, Mapping[str, Any]]) -> list[Object]:
    """One resource group: by flavor and resource, an amount or `limits`."""
    if not quota:
        return []
    return [
        {
            "coveredResources": list(next(iter(quota.values()))),
            "flavors": [
                {"name": name, "resources": [_quota(r, q) for r, q in resources.items()]}
                for name, resources in quota.items()
            ],
        }
    ]


def _quota(resource: str, quota: Any) -> Object:
    nominal, borrow, lend = quota if isinstance(quota, tuple) else (quota, None, None)
    found = {"name": resource, "nominalQuota": str(nominal)}
    if borrow is not None:
        found["borrowingLimit"] = str(borrow)
    if lend is not None:
        found["lendingLimit"] = str(lend)
    return found


def queue(
    name: str,
    cpu: Any = None,
    cohort: str = "",
    *,
    quota: Mapping[str, Mapping[str, Any]] | None = None,
    within: str = "Never",
    reclaim: str = "Never",
    force: int | bool | None = False,
    weight: Any = None,
    **spec: Any,
) -> list[Object]:
    """A cluster queue and its local queue. `force`: borrowWithinCohort, with a threshold or None for none."""
    preemption: Object = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}
    if force is not False:
        preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if force is not None:
            preemption["borrowWithinCohort"]["maxPriorityThreshold"] = force
    if quota is None:
        quota = {} if cpu is None else {FLAVOR: {"cpu": cpu}}
    described = {
        "namespaceSelector": {},
        "cohortName": cohort,
        "preemption": preemption,
        "resourceGroups": groups(quota),
        **({"fairSharing": {"weight": str(weight)}} if weight is not None else {}),
        **spec,
    }
    return [
        {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": described},
        {
            "kind": "LocalQueue",
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"clusterQueue": name},
        },
    ]


def cohort(name: str, parent: str = "", cpu: Any = None, weight: Any = None) -> Object:
    spec: Object = {"parentName": parent}
    if cpu is not None:
        spec["resourceGroups"] = groups({FLAVOR: {"cpu": cpu}})
    if weight is not None:
        spec["fairSharing"] = {"weight": str(weight)}
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def pods(name: str = "main", count: int = 1, least: int | None = None, **requests: Any) -> Object:
    """A pod set. Underscores in names of resources stand for what Python does not allow."""
    asked = {r.replace("__", "/").replace("_", "."): str(q) for r, q in requests.items()}
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": asked}}]}}
    found: Object = {"name": name, "count": count, "template": template}
    if least is not None:
        found["minCount"] = least
    return found


class Made:
    """Numbers for objects that are created one after the other."""

    count = 0


def workload(name: str, queue: str, *sets: Object | float | str, priority: int = 0) -> Object:
    """A workload that waits. A number stands for a pod that asks for so much cpu."""
    Made.count += 1
    pod_sets = [each if isinstance(each, dict) else pods(cpu=each) for each in sets]
    return {
        "kind": "Workload",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "creationTimestamp": timestamp_at(1_000_000 + Made.count),
        },
        "spec": {"queueName": queue, "priority": priority, "active": True, "podSets": pod_sets},
    }


def held(
    name: str,
    queue: str,
    *sets: Object | float | str,
    priority: int = 0,
    flavor: str = FLAVOR,
    evicted: bool = False,
    since: int = 0,
) -> Object:
    """A workload that has quota, all since the same moment or some seconds later."""
    found = workload(name, queue, *sets, priority=priority)
    at = timestamp_at(2_000_000 + since)
    assigned = []
    for each in found["spec"]["podSets"]:
        asked = each["template"]["spec"]["containers"][0]["resources"]["requests"]
        assigned.append(
            {
                "name": each["name"],
                "count": each["count"],
                "flavors": dict.fromkeys(asked, flavor),
                "resourceUsage": asked,
            }
        )
    conditions = [
        {"type": type_, "status": "True", "reason": type_, "lastTransitionTime": at}
        for type_ in ("QuotaReserved", "Admitted", *(("Evicted",) if evicted else ()))
    ]
    admission = {"clusterQueue": queue, "podSetAssignments": assigned}
    found["status"] = {"admission": admission, "conditions": conditions}
    return found


class Story:
    """A scenario that is told step by step."""

    def __init__(self, *objects: Object | list[Object], config: Any = None) -> None:
        self.run = Run(Scenario(name="story", config=config))
        self._steps = 0
        self.create(flavor(), *objects)

    def create(self, *objects: Object | list[Object]) -> None:
        flat = [one for each in objects for one in (each if isinstance(each, list) else [each])]
        self._step(create=flat)

    def patch(self, kind: str, name: str, body: Object) -> None:
        namespace = NAMESPACE if kind in ("Workload", "LocalQueue") else ""
        target = {"kind": kind, "name": name, "namespace": namespace, "body": body}
        self._step(patch=target)

    def delete(self, kind: str, name: str) -> None:
        namespace = NAMESPACE if kind in ("Workload", "LocalQueue") else ""
        self._step(delete={"kind": kind, "name": name, "namespace": namespace})

    def finish(self, name: str) -> None:
        self._step(finish={"name": name, "namespace": NAMESPACE})

    def settle(self) -> Object:
        """Everything comes to rest. The checkpoint."""
        self._step(settle="now")
        checkpoint = self.run.checkpoints[-1]
        assert not checkpoint.get("unsettled"), checkpoint["events"][-6:]
        return checkpoint

    def admitted(self) -> set[str]:
        """Who has quota when everything has come to rest."""
        return {
            key.partition("/")[2]
            for key, each in self.settle()["workloads"].items()
            if each["status"] == "admitted"
        }

    def victims(self, by: str) -> dict[str, str]:
        """Whom a workload drives out on the way, and why."""
        return {
            event["workload"].partition("/")[2]: event["reason"]
            for event in self.settle()["events"]
            if event["type"] == "preempted" and event["by"] == f"{NAMESPACE}/{by}"
        }

    def reason(self, name: str) -> str:
        """Why a workload waits."""
        found = self.run.checkpoints[-1]["workloads"][f"{NAMESPACE}/{name}"]
        return str(found["conditions"]["QuotaReserved"][1])

    def _step(self, **what: Any) -> None:
        self.run.step(self._steps, convert(Step, what))
        self._steps += 1

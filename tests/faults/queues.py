"""Queues in cohorts, and the hand that changes them: less quota, stopped queues, local queues that are gone. What it did can be undone.

Quota is only ever lowered below what is here, so that whatever was given while it was lower is within the limits when it is back.
"""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Final

from faults.charges import GPUS, PARTS
from faults.cluster import Api
from faults.snapshot import PATHS, Object
from faults.units import NAMESPACE

GROUP: Final = "kueue.x-k8s.io"
_ROOT: Final = f"/apis/{GROUP}/v1beta2"
FLAVORS: Final = f"{_ROOT}/resourceflavors"
CLASSES: Final = f"{_ROOT}/workloadpriorityclasses"
LOCAL_QUEUES: Final = f"{_ROOT}/namespaces/{NAMESPACE}/localqueues"
WORKLOADS: Final = f"{_ROOT}/namespaces/{NAMESPACE}/workloads"
FLAVOR: Final = "standard"
PRIORITIES: Final = {"low": -10, "high": 10}


def _named(kind: str, name: str, **more: object) -> Object:
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "metadata": {"name": name}, **more}


def _groups(cpu: int, gpus: int, parts: int, **limits: str) -> list[Object]:
    amounts = {"cpu": cpu, GPUS: gpus, PARTS: parts}
    resources = [{"name": name, "nominalQuota": str(n), **limits} for name, n in amounts.items()]
    flavor = {"name": FLAVOR, "resources": resources}
    return [{"coveredResources": list(amounts), "flavors": [flavor]}]


def _queue(name: str, cohort: str, groups: list[Object], strategy: str) -> Object:
    spec = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "queueingStrategy": strategy,
        "resourceGroups": groups,
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "stopPolicy": "None",
    }
    return _named("ClusterQueue", name, spec=spec)


COHORTS: Final[tuple[Object, ...]] = (
    _named("Cohort", "company", spec={"resourceGroups": _groups(1, 0, 1)}),
    _named("Cohort", "research", spec={"parentName": "company"}),
)
CLUSTER_QUEUES: Final = (
    _queue("vision", "research", _groups(2, 2, 1), "BestEffortFIFO"),
    _queue(
        "speech",
        "research",
        _groups(2, 2, 1, borrowingLimit="1", lendingLimit="1"),
        "BestEffortFIFO",
    ),
    _queue("service", "company", _groups(2, 1, 1), "StrictFIFO"),
)
NAMES: Final = tuple(queue["metadata"]["name"] for queue in CLUSTER_QUEUES)
"""Each has a local queue of its name."""


def _local(name: str) -> Object:
    return _named("LocalQueue", name, spec={"clusterQueue": name, "stopPolicy": "None"})


class QueueHand:
    """Makes queues, and changes them over the API."""

    def __init__(self, api: Api, rng: random.Random) -> None:
        self._api = api
        self._rng = rng
        self._changed: set[str] = set()
        """Cluster queues."""
        self._stopped: set[str] = set()
        self._deleted: set[str] = set()
        """Local queues."""

    def prepare(self) -> None:
        self._api.create(FLAVORS, _named("ResourceFlavor", FLAVOR, spec={}))
        for name, value in PRIORITIES.items():
            self._api.create(CLASSES, _named("WorkloadPriorityClass", name, value=value))
        for cohort in COHORTS:
            self._api.create(PATHS["cohorts"], cohort)
        for queue in CLUSTER_QUEUES:
            self._api.create(PATHS["cluster_queues"], queue)
        for name in NAMES:
            self._api.create(LOCAL_QUEUES, _local(name))

    def change(self) -> str:
        """Change a queue in a way that matters to those in it."""
        name = self._rng.choice(NAMES)
        act = self._rng.choice(
            (self._lower, self._lower, self._stop, self._stop_local, self._delete)
        )
        return act(name)

    def _lower(self, name: str) -> str:
        """Another quota, at most what it was made with."""
        spec = deepcopy(next(q for q in CLUSTER_QUEUES if q["metadata"]["name"] == name)["spec"])
        for resource in spec["resourceGroups"][0]["flavors"][0]["resources"]:
            full = int(resource["nominalQuota"])
            resource["nominalQuota"] = str(self._rng.randint(0, full))
            if "borrowingLimit" in resource:
                resource["borrowingLimit"] = str(self._rng.randint(0, 1))
                resource["lendingLimit"] = str(min(1, int(resource["nominalQuota"])))
        self._set(name, spec)
        return f"lower the quota of {name}"

    def _stop(self, name: str) -> str:
        spec = deepcopy(next(q for q in CLUSTER_QUEUES if q["metadata"]["name"] == name)["spec"])
        spec["stopPolicy"] = self._rng.choice(("Hold", "HoldAndDrain"))
        self._set(name, spec)
        return f"stop {name}: {spec['stopPolicy']}"

    def _set(self, name: str, spec: Object) -> None:
        self._changed.add(name)
        self._api.change(f"{PATHS['cluster_queues']}/{name}", lambda q: q.update(spec=spec))

    def _stop_local(self, name: str) -> str:
        self._stopped.add(name)
        policy = self._rng.choice(("Hold", "HoldAndDrain"))
        self._set_local(name, policy)
        return f"stop the local queue {name}: {policy}"

    def _set_local(self, name: str, policy: str) -> None:
        self._api.change(f"{LOCAL_QUEUES}/{name}", lambda q: q["spec"].update(stopPolicy=policy))

    def _delete(self, name: str) -> str:
        self._deleted.add(name)
        self._api.delete(f"{LOCAL_QUEUES}/{name}")
        return f"delete the local queue {name}"

    def restore(self) -> None:
        """All queues as they were made."""
        for queue in CLUSTER_QUEUES:
            if queue["metadata"]["name"] in self._changed:
                self._set(queue["metadata"]["name"], deepcopy(queue["spec"]))
        for name in sorted(self._deleted):
            if self._api.get(f"{LOCAL_QUEUES}/{name}") is None:
                self._api.create(LOCAL_QUEUES, _local(name))
        for name in sorted(self._stopped - self._deleted):
            self._set_local(name, "None")
        self._changed.clear()
        self._stopped.clear()
        self._deleted.clear()

    def delete_workload(self, owners: set[str]) -> str:
        """Delete a Workload of queued work: another one has to come."""
        found = self._api.get(WORKLOADS)
        assert found is not None
        mine = [
            item["metadata"]["name"]
            for item in found["items"]
            if owners & {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}
        ]
        for name in mine:
            self._api.delete(f"{WORKLOADS}/{name}")
        return f"delete {', '.join(mine) or 'no Workload'}"

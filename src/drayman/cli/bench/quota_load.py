"""The load of Kueue's own load tests: cohorts of queues, and the workloads in them, as objects.

Queues have 20 and may borrow 100; small (1), medium (5) and large (20) workloads have rising priority, and queues take from others what is
theirs. With devices, each pod asks for them with a claim template instead; Kueue has no such load test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from drayman.api.times import timestamp_at

Object = dict[str, Any]

NAMESPACE: Final = "bench"
CREATED: Final = 1_767_225_600.0
CLASS: Final = "gpu.example.com"
DEVICES: Final = "example.com/gpus"
PUBLISHED: Final = {"baseline": 43.0, "large-scale": 42.0}
"""Admissions per second that Kueue publishes, with a test API server."""
_NODES: Final = 100
_KINDS: Final = (("small", 1, 50, 7), ("medium", 5, 100, 2), ("large", 20, 200, 1))
"""Name, size, priority, and how many of ten."""


@dataclass(frozen=True, slots=True)
class Suite:
    """How many of what."""

    cohorts: int
    queues: int
    """In each cohort."""
    workloads: int
    """In each queue."""

    @property
    def total(self) -> int:
        return self.cohorts * self.queues * self.workloads


SUITES: Final = {"baseline": Suite(5, 6, 500), "large-scale": Suite(10, 100, 50)}


def cluster_queues(suite: Suite, *, devices: bool) -> Iterator[Object]:
    charged = DEVICES if devices else "cpu"
    quota = {"name": charged, "nominalQuota": "20", "borrowingLimit": "100"}
    group = {
        "coveredResources": [charged],
        "flavors": [{"name": "default", "resources": [quota]}],
    }
    for name, cohort in _queues(suite):
        yield {
            "metadata": {"name": name},
            "spec": {
                "cohortName": cohort,
                "namespaceSelector": {},
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "resourceGroups": [group],
            },
        }


def local_queues(suite: Suite) -> Iterator[Object]:
    for name, _cohort in _queues(suite):
        yield {
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"clusterQueue": name},
        }


def workloads(suite: Suite, *, devices: bool) -> Iterator[Object]:
    """The workloads of all queues, as they would come: one of each queue after the other."""
    pod: Callable[[str, int], Object] = _claiming if devices else _requesting
    kinds = [kind for kind in _KINDS for _ in range(kind[3])]
    for number in range(suite.workloads):
        kind, size, priority, _ = kinds[number % len(kinds)]
        for queue, _cohort in _queues(suite):
            yield {
                "metadata": {
                    "namespace": NAMESPACE,
                    "name": f"{kind}-{queue}-{number}",
                    "creationTimestamp": timestamp_at(CREATED + number),
                },
                "spec": {
                    "queueName": queue,
                    "priority": priority,
                    "podSets": [
                        {"name": "main", "count": 1, "template": {"spec": pod(kind, size)}}
                    ],
                },
            }


def device_class() -> Object:
    expression = f'device.driver == "{CLASS}"'
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": CLASS}, "spec": {"selectors": selectors}}


def slices() -> Iterator[Object]:
    """Those of nodes with eight devices each."""
    for number in range(_NODES):
        name = f"node-{number}"
        spec = {
            "driver": CLASS,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{index}"} for index in range(8)],
        }
        yield {"metadata": {"name": name}, "spec": spec}


def claim_templates() -> Iterator[Object]:
    """One for each kind of workload."""
    for kind, size, _, _ in _KINDS:
        request = {"name": "r", "exactly": {"deviceClassName": CLASS, "count": size}}
        yield {
            "metadata": {"namespace": NAMESPACE, "name": kind},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }


def configuration() -> Object:
    """Kueue's configuration, under which devices are charged."""
    mapping = {"name": DEVICES, "deviceClassNames": [CLASS]}
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"deviceClassMappings": [mapping]},
    }


def _queues(suite: Suite) -> Iterator[tuple[str, str]]:
    for cohort in range(suite.cohorts):
        for queue in range(suite.queues):
            yield f"queue-{cohort}-{queue}", f"cohort-{cohort}"


def _requesting(_kind: str, size: int) -> Object:
    """The spec of a pod that asks for cpu."""
    requests = {"requests": {"cpu": str(size)}}
    return {"containers": [{"name": "c", "image": "i", "resources": requests}]}


def _claiming(kind: str, _size: int) -> Object:
    """The spec of a pod that asks for devices."""
    claim = {"name": "devices", "resourceClaimTemplateName": kind}
    return {"containers": [{"name": "c", "image": "i"}], "resourceClaims": [claim]}

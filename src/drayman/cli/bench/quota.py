"""Kueue's own load tests on the engine of quota: many workloads in many queues, each of which ends as soon as it is admitted.

The load is Kueue's: cohorts of queues of 20 that may borrow 100, small (1), medium (5) and large (20) workloads of rising priority, queues
that take from others what is theirs. What is measured is deciding: from the first workload that the engine is told of to the last that it
admits. Nothing is written anywhere. Kueue publishes 37 to 43 admissions per second for the same with a test API server.

With devices, each pod asks for them with a claim template instead, and each workload is priced when the engine is told of it. Kueue has no
such load test.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from drayman.api import codec
from drayman.api.core import Namespace
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceClaimTemplate, ResourceSlice
from drayman.api.times import timestamp_at
from drayman.cli.bench.scheduling import Progress
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.decisions import Preempted, Reserved
from drayman.quota.settings import QuotaSettings
from drayman.quota.state import QuotaState

Object = dict[str, Any]

NAMESPACE: Final = "bench"
_CREATED: Final = 1_767_225_600.0
_CLASS: Final = "gpu.example.com"
_DEVICES: Final = "example.com/gpus"
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


@dataclass(frozen=True, slots=True)
class Figure:
    """What a suite has measured."""

    suite: str
    workloads: int
    queues: int
    seconds: float
    cycles: int
    preemptions: int
    peak_mib: float
    published: float
    """Admissions per second that Kueue publishes; 0 where it has no such test."""

    @property
    def per_second(self) -> float:
        return self.workloads / self.seconds


_PUBLISHED: Final = {"baseline": 43.0, "large-scale": 42.0}


def measure(name: str, suite: Suite, progress: Progress, *, devices: bool = False) -> Figure:
    """Run a suite. Objects are made before the clock starts."""
    state = QuotaState(QuotaSettings(), _pricing() if devices else None)
    charged = _DEVICES if devices else "cpu"
    _prepare(state, suite, charged)
    made = _workloads(suite, _claiming if devices else _requesting)
    workloads = [codec.convert(Workload, each) for each in made]
    started = time.perf_counter()
    for workload in workloads:
        state.set_workload(workload, _CREATED)
    cycles, preemptions = _admit_all(state, suite, progress)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Figure(
        f"{name} with devices" if devices else name,
        suite.total,
        suite.cohorts * suite.queues,
        seconds,
        cycles,
        preemptions,
        peak,
        0.0 if devices else _PUBLISHED.get(name, 0.0),
    )


def _admit_all(state: QuotaState, suite: Suite, progress: Progress) -> tuple[int, int]:
    """Cycles until everybody was admitted once. Whoever is admitted ends at once; who is driven out waits again."""
    admitted = cycles = preemptions = 0
    progress.begin("admitting", suite.total)
    now = _CREATED + 10_000
    while admitted < suite.total:
        cycles += 1
        now += 1
        decisions = state.cycle(now)
        if not decisions:
            raise RuntimeError(f"{suite.total - admitted} workloads are never admitted")
        for decision in decisions:
            if isinstance(decision, Reserved):
                state.remove_workload(decision.key)
                admitted += 1
                progress.advance()
            elif isinstance(decision, Preempted):
                preemptions += 1
                state.forget(decision.key, now)
    return cycles, preemptions


def _prepare(state: QuotaState, suite: Suite, charged: str) -> None:
    state.set_namespace(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    state.set_flavor(ResourceFlavor(metadata=ObjectMeta(name="default")))
    for name, cohort in _queues(suite):
        quota = {"name": charged, "nominalQuota": "20", "borrowingLimit": "100"}
        spec = {
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {
                    "coveredResources": [charged],
                    "flavors": [{"name": "default", "resources": [quota]}],
                }
            ],
        }
        state.set_cluster_queue(ClusterQueue(metadata=ObjectMeta(name=name), spec=spec), _CREATED)
        local = ObjectMeta(namespace=NAMESPACE, name=name)
        state.set_local_queue(LocalQueue(metadata=local, spec={"clusterQueue": name}), _CREATED)


def _queues(suite: Suite) -> Iterator[tuple[str, str]]:
    for cohort in range(suite.cohorts):
        for queue in range(suite.queues):
            yield f"queue-{cohort}-{queue}", f"cohort-{cohort}"


def _requesting(kind: str, size: int) -> Object:
    """The spec of a pod that asks for cpu."""
    requests = {"requests": {"cpu": str(size)}}
    return {"containers": [{"name": "c", "resources": requests}]}


def _claiming(kind: str, size: int) -> Object:
    """The spec of a pod that asks for devices."""
    claim = {"name": "devices", "resourceClaimTemplateName": kind}
    return {"containers": [{"name": "c"}], "resourceClaims": [claim]}


def _pricing() -> DevicePricing:
    """A cluster with nodes of eight devices, and a claim template for each kind of workload."""
    state = ClusterState(Features(), lambda change: None)
    state.set_class(DeviceClass(metadata=ObjectMeta(name=_CLASS)))
    for number in range(_NODES):
        described = [{"name": f"gpu-{index}"} for index in range(8)]
        spec = {
            "driver": _CLASS,
            "nodeName": f"node-{number}",
            "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
            "devices": described,
        }
        value = {"metadata": {"name": f"node-{number}"}, "spec": spec}
        state.set_slice(codec.convert(ResourceSlice, value))
    for kind, size, _, _ in _KINDS:
        request = {"name": "r", "exactly": {"deviceClassName": _CLASS, "count": size}}
        template = {
            "metadata": {"namespace": NAMESPACE, "name": kind},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
        state.set_template(codec.convert(ResourceClaimTemplate, template))
    mapping = {"name": _DEVICES, "deviceClassNames": [_CLASS]}
    configuration = {"resources": {"deviceClassMappings": [mapping]}}
    return DevicePricing(state, read_mappings(configuration))


def _workloads(suite: Suite, pod: Callable[[str, int], Object]) -> Iterator[Object]:
    """The workloads of all queues, as they would come: one of each queue after the other."""
    kinds = [kind for kind in _KINDS for _ in range(kind[3])]
    for number in range(suite.workloads):
        kind, size, priority, _ = kinds[number % len(kinds)]
        for queue, _cohort in _queues(suite):
            yield {
                "metadata": {
                    "namespace": NAMESPACE,
                    "name": f"{kind}-{queue}-{number}",
                    "creationTimestamp": timestamp_at(_CREATED + number),
                },
                "spec": {
                    "queueName": queue,
                    "priority": priority,
                    "podSets": [
                        {
                            "name": "main",
                            "count": 1,
                            "template": {"spec": pod(kind, size)},
                        }
                    ],
                },
            }

"""Kueue's own load tests on the engine of quota: many workloads in many queues, each of which ends as soon as it is admitted.

What is measured is deciding: from the first workload that the engine is told of to the last that it admits. Nothing is written anywhere;
`quota_served` has the same with everything written. With devices, each workload is priced when the engine is told of it.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

from drayman.api import codec
from drayman.api.core import Namespace
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceClaimTemplate, ResourceSlice
from drayman.cli.bench import quota_load as load
from drayman.cli.bench.quota_load import CREATED, NAMESPACE, PUBLISHED, Suite
from drayman.cli.bench.scheduling import Progress
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.decisions import Preempted, Reserved
from drayman.quota.settings import QuotaSettings
from drayman.quota.state import QuotaState


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


def measure(name: str, suite: Suite, progress: Progress, *, devices: bool = False) -> Figure:
    """Run a suite. Objects are made before the clock starts."""
    state = QuotaState(QuotaSettings(), _pricing() if devices else None)
    _prepare(state, suite, devices=devices)
    workloads = [codec.convert(Workload, each) for each in load.workloads(suite, devices=devices)]
    started = time.perf_counter()
    for workload in workloads:
        state.set_workload(workload, CREATED)
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
        0.0 if devices else PUBLISHED.get(name, 0.0),
    )


def _admit_all(state: QuotaState, suite: Suite, progress: Progress) -> tuple[int, int]:
    """Cycles until everybody was admitted once. Whoever is admitted ends at once; who is driven out waits again."""
    admitted = cycles = preemptions = 0
    progress.begin("admitting", suite.total)
    now = CREATED + 10_000
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


def _prepare(state: QuotaState, suite: Suite, *, devices: bool) -> None:
    state.set_namespace(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    state.set_flavor(ResourceFlavor(metadata=ObjectMeta(name="default")))
    for queue in load.cluster_queues(suite, devices=devices):
        state.set_cluster_queue(codec.convert(ClusterQueue, queue), CREATED)
    for local in load.local_queues(suite):
        state.set_local_queue(codec.convert(LocalQueue, local), CREATED)


def _pricing() -> DevicePricing:
    """A cluster with nodes of eight devices, and a claim template for each kind of workload."""
    state = ClusterState(Features(), lambda change: None)
    state.set_class(codec.convert(DeviceClass, load.device_class()))
    for value in load.slices():
        state.set_slice(codec.convert(ResourceSlice, value))
    for template in load.claim_templates():
        state.set_template(codec.convert(ResourceClaimTemplate, template))
    return DevicePricing(state, read_mappings(load.configuration()))

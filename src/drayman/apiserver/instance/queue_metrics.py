"""What `/metrics` says about queues, by the names that Kueue gives its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from drayman.controllers.quota.tally import Labels, QueueTally
from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.state import QuotaState

_QUEUE: Final = ("cluster_queue",)
_STATUSES: Final = ("active", "pending")


class QueueMetrics(Collector):
    """Reads the figures when they are asked for."""

    def __init__(self, tally: QueueTally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        tally = self._tally
        yield _counted(
            "kueue_admission_attempts", "Attempts to give quota.", ("result",), tally.attempts
        )
        yield _counted(
            "kueue_quota_reserved_workloads", "Workloads that got quota.", _QUEUE, tally.reserved
        )
        yield _counted(
            "kueue_admitted_workloads", "Workloads that were admitted.", _QUEUE, tally.admitted
        )
        yield _counted(
            "kueue_finished_workloads", "Workloads that have ended.", _QUEUE, tally.finished
        )
        labels: Labels = ("cluster_queue", "reason", "underlying_cause")
        yield _counted("kueue_evicted_workloads", "Evictions of workloads.", labels, tally.evicted)
        labels = ("preempting_cluster_queue", "reason")
        text = "Workloads that gave up their quota to others."
        yield _counted("kueue_preempted_workloads", text, labels, tally.preempted)
        labels = ("cluster_queue", "cluster")
        text = "Workloads that were offered to a worker cluster."
        yield _counted("kueue_multikueue_workloads_dispatched", text, labels, tally.dispatched)
        text = "Workloads that a worker cluster has admitted and got."
        yield _counted("kueue_multikueue_workloads_admitted", text, labels, tally.taken)
        state = tally.state()
        if state is not None:
            yield from _present(state)


def _counted(name: str, text: str, labels: Labels, counts: Counter[Labels]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in sorted(counts.items()):
        family.add_metric(values, float(number))
    return family


def _present(state: QuotaState) -> Iterator[Metric]:
    """The numbers of each cluster queue as they are."""
    pending = GaugeMetricFamily(
        "kueue_pending_workloads", "Workloads that wait.", labels=("cluster_queue", "status")
    )
    reserving = GaugeMetricFamily(
        "kueue_reserving_active_workloads", "Workloads that hold quota.", labels=_QUEUE
    )
    admitted = GaugeMetricFamily(
        "kueue_admitted_active_workloads", "Workloads that are admitted.", labels=_QUEUE
    )
    status = GaugeMetricFamily(
        "kueue_cluster_queue_status",
        "Whether a queue is active.",
        labels=("cluster_queue", "status"),
    )
    labels = ("cluster_queue", "flavor", "resource")
    used = GaugeMetricFamily(
        "kueue_cluster_queue_resource_reservation", "Quota that is reserved.", labels=labels
    )
    nominal = GaugeMetricFamily(
        "kueue_cluster_queue_nominal_quota", "Quota that a queue has.", labels=labels
    )
    looked_at = GaugeMetricFamily(
        "drayman_queue_admin_access_devices",
        "Devices that workloads with quota look at with admin access, at no charge.",
        labels=_QUEUE,
    )
    for name, queue in sorted(state.books.queues.items()):
        holders = queue.holders.values()
        pending.add_metric(
            (name, "inadmissible" if queue.inactive else "active"), len(queue.waiting)
        )
        reserving.add_metric((name,), len(holders))
        admitted.add_metric((name,), sum(1 for each in holders if each.facts.admitted))
        looked_at.add_metric((name,), sum(each.admin_devices for each in holders))
        for each in _STATUSES:
            is_so = (each == "active") is not bool(queue.inactive)
            status.add_metric((name, each), float(is_so))
        for flavor, resource, quota, amount in _amounts(queue):
            nominal.add_metric((name, flavor, resource), quota)
            used.add_metric((name, flavor, resource), amount)
    yield from (pending, reserving, admitted, status, nominal, used, looked_at)


def _amounts(queue: ClusterQueueState) -> Iterator[tuple[str, str, float, float]]:
    """Flavor, resource, quota and what is reserved of it, in units and not in thousandths."""
    used: dict[FlavorResource, int] = {}
    for entry in queue.holders.values():
        if entry.holding is not None:
            for what, amount in entry.holding.usage.quota.items():
                used[what] = used.get(what, 0) + amount
    for flavor in queue.flavors.values():
        for quota in flavor.resources:
            scale = 1000.0 if quota.name == "cpu" else 1.0
            amount = used.get(FlavorResource(flavor.name, quota.name), 0)
            yield flavor.name, quota.name, float(quota.nominal_quota.amount), amount / scale

"""What `/metrics` says about the scheduler of an instance: whether it leads, named as in Kubernetes, and what should not have happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from drayman.apiserver.instance.control_plane import SCHEDULER
from drayman.placement.schedulers import lease_of
from drayman.scheduler.tally import Tally


class SchedulerMetrics(Collector):
    """Reads the figures when they are asked for."""

    def __init__(self, tally: Tally, leaders: Callable[[], Mapping[str, str]]) -> None:
        """`leaders`: who schedules the pods of each `schedulerName`."""
        self._tally = tally
        self._leaders = leaders

    def collect(self) -> Iterator[Metric]:
        leads = GaugeMetricFamily(
            "leader_election_master_status",
            "Whether the scheduler of this process is at work for the pods of the lease.",
            labels=("name",),
        )
        for name, leader in self._leaders().items():
            leads.add_metric((lease_of(name),), float(leader == SCHEDULER))
        yield leads
        for name, text, number in (
            (
                "drayman_scheduler_claims_lost",
                "Claims that were taken from pods on nodes.",
                self._tally.claims_lost,
            ),
            (
                "drayman_scheduler_allocations_taken_back",
                "Allocations that gave way to another claim.",
                self._tally.taken_back,
            ),
            (
                "drayman_scheduler_devices_held_twice",
                "Times that claims were found to hold more than there is.",
                self._tally.held_twice,
            ),
        ):
            yield CounterMetricFamily(name, text, value=number)

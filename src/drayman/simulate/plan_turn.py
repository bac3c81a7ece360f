"""A pod of a plan, whose turn it is at some point."""

from __future__ import annotations

from dataclasses import dataclass

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.placement.decision.placements import Placement
from drayman.placement.demand import Demand
from drayman.placement.placing import Found, NotFound
from drayman.reasons.reason import Headline
from drayman.simulate.expanding import ExpandedPod
from drayman.simulate.plan_report import PlannedDevice, PlannedPod


@dataclass(slots=True, eq=False)
class Turn:
    """A pod whose turn it is, with what the steps so far have found out."""

    expanded: ExpandedPod
    copy: int = 1
    demand: Demand | None = None
    found: Found | None = None
    placement: Placement | None = None
    not_found: NotFound | None = None

    @property
    def pod(self) -> Pod:
        return self.expanded.pod

    @property
    def rank(self) -> int:
        return -priority_of(self.pod)

    def result(
        self,
        node: str = "",
        devices: tuple[PlannedDevice, ...] = (),
        waits: Headline | None = None,
        cost_per_hour: float | None = None,
    ) -> PlannedPod:
        metadata = self.pod.metadata
        return PlannedPod(
            name=metadata.name,
            namespace=metadata.namespace,
            workload=self.expanded.workload.original,
            node=node,
            devices=devices,
            cost_per_hour=cost_per_hour,
            waits=waits,
            copy=self.copy,
        )

"""A plan as data. What is printed and what `-o json` gives are made from this alone."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.struct import ApiStruct
from drayman.reasons.reason import Headline


class PlannedDevice(ApiStruct):
    """A device that a pod would get."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str


class PlannedCost(ApiStruct):
    """What would be paid for the devices that pods would get, by the hour."""

    per_hour: float
    currency: str = ""
    """As in the table of prices; empty where prices come from labels alone."""
    unpriced_pods: int = 0
    """How many pods would get devices on nodes without a price. They are not included."""


class PlannedPod(ApiStruct):
    """What would become of one pod."""

    name: str
    namespace: str
    workload: str
    """The pod's owner, or what the owner is a copy of, as kind/name."""
    node: str = ""
    """Where it would run; empty where it would wait."""
    devices: tuple[PlannedDevice, ...] = ()
    cost_per_hour: float | None = None
    """Of the devices that it would get in addition to what its claims have; None if its node has no price."""
    waits: Headline | None = None
    """Why it would wait."""
    refused_configs: tuple[str, ...] = ()
    """What drivers will refuse when they prepare its devices, so that it would not start."""
    refused_devices: tuple[str, ...] = ()
    """And which of its devices its node will refuse to give to its containers."""
    copy: int = 1
    """The copy that it belongs to, counted from 1."""

    @property
    def kept_from_starting(self) -> tuple[str, ...]:
        """What keeps it from starting once it has its devices."""
        return (*self.refused_configs, *self.refused_devices)


class PlannedWorkload(ApiStruct):
    """What would become of the pods of one workload."""

    name: str
    """As kind/name."""
    namespace: str
    pods: int
    """How many would be made now."""
    fitting: int
    existing: int = 0
    """How many it already has in the cluster. They are not planned again."""
    cost_per_hour: float | None = None
    """Of its pods, as far as their nodes have prices."""
    note: str = ""
    """Why there are none to be made."""
    copy: int = 1


class PlanReport(ApiStruct):
    """What would become of everything."""

    fits: bool
    """Whether every pod finds its place."""
    pods: tuple[PlannedPod, ...]
    workloads: tuple[PlannedWorkload, ...] = ()
    copies: int = 1
    copies_fitting: int = 0
    """How many copies fit with all their pods."""
    cost: PlannedCost | None = None
    """None where no pod would go to a node with a price."""
    price_faults: tuple[str, ...] = ()
    """Labels of nodes about prices that cannot be understood, and are ignored."""
    nodes: int = 0
    unseen: tuple[str, ...] = ()
    evidence: Mapping[str, str] = {}

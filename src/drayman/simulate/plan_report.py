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


class PlannedPod(ApiStruct):
    """What would become of one pod."""

    name: str
    namespace: str
    workload: str
    """The pod's owner, or what the owner is a copy of, as kind/name."""
    node: str = ""
    """Where it would run; empty where it would wait."""
    devices: tuple[PlannedDevice, ...] = ()
    waits: Headline | None = None
    """Why it would wait."""
    copy: int = 1
    """The copy that it belongs to, counted from 1."""


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
    nodes: int = 0
    unseen: tuple[str, ...] = ()
    evidence: Mapping[str, str] = {}

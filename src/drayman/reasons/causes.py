"""Maps what refused to the reason that is given: one row for each rule of node fit and each test of devices.

A rule that refuses means one thing while something is in use, and another on a node that would refuse with nothing in use: devices in use
can be given back, devices that do not exist cannot. `headline` finds out which of the two applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from drayman.allocator import Defect
from drayman.allocator import RejectionReason as DeviceTest
from drayman.inventory.pool import PoolState
from drayman.placement.fit import Cause
from drayman.reasons.reason import Outlook, Reason


class FitTest(Enum):
    """What is tested before devices are looked at, in the scheduler's order."""

    CORDON = "cordon"
    NAME = "node name"
    TAINTS = "node taints"
    SELECTOR = "node selector"
    SPOT = "spot"
    PORTS = "ports"
    RESOURCES = "resources"
    VOLUMES = "volumes"
    SPREAD = "spreading"
    NEIGHBOURS = "pod affinity"
    CLAIMS = "allocated claims"

    @property
    def order(self) -> int:
        return _ORDER[self]


_ORDER: Final = {test: index for index, test in enumerate(FitTest)}


class Row(Struct, frozen=True):
    """What a refusal is called."""

    now: Reason | None = None
    """By a node that would take the pod with nothing in use."""
    empty: Reason | None = None
    """By a node that would not. Its kind says what is wrong: the hardware, the place, or a decision by a person."""
    anyway: Reason | None = None
    """Where the cause lies with the pod, or leaves nothing else to say."""
    test: FitTest | None = None


CAUSES: Final[Mapping[Cause, Row]] = {
    Cause.CORDONED: Row(empty=Reason.NODES_CORDONED, test=FitTest.CORDON),
    Cause.NODE_NAME: Row(empty=Reason.NODE_MISMATCH, test=FitTest.NAME),
    Cause.NODE_TAINT: Row(empty=Reason.NODES_TAINTED, test=FitTest.TAINTS),
    Cause.NODE_AFFINITY: Row(empty=Reason.NODE_MISMATCH, test=FitTest.SELECTOR),
    Cause.SPOT: Row(empty=Reason.SPOT_NOT_ACCEPTED, test=FitTest.SPOT),
    Cause.PORTS: Row(Reason.PORTS_IN_USE, Reason.NODE_TOO_SMALL, test=FitTest.PORTS),
    Cause.RESOURCES: Row(Reason.NODES_FULL, Reason.NODE_TOO_SMALL, test=FitTest.RESOURCES),
    Cause.VOLUME_UNBOUND: Row(anyway=Reason.VOLUME_UNBOUND, test=FitTest.VOLUMES),
    Cause.VOLUME_IN_USE: Row(Reason.VOLUME_IN_USE, test=FitTest.VOLUMES),
    Cause.VOLUME_ELSEWHERE: Row(empty=Reason.VOLUME_ELSEWHERE, test=FitTest.VOLUMES),
    Cause.VOLUME_LACKING: Row(empty=Reason.VOLUME_LACKING, test=FitTest.VOLUMES),
    Cause.SPREAD: Row(Reason.TOPOLOGY_SPREAD, Reason.TOPOLOGY_SPREAD, test=FitTest.SPREAD),
    Cause.POD_AFFINITY: Row(Reason.POD_AFFINITY, Reason.POD_AFFINITY, test=FitTest.NEIGHBOURS),
    Cause.POD_ANTI_AFFINITY: Row(
        Reason.POD_ANTI_AFFINITY, Reason.POD_ANTI_AFFINITY, test=FitTest.NEIGHBOURS
    ),
    Cause.CLASS_MISSING: Row(anyway=Reason.CLASS_MISSING),
    Cause.CLAIM_LEFT_BEHIND: Row(anyway=Reason.CLAIM_LEFT_BEHIND),
    # The device tests are below. What an untainted node would have is tainted.
    Cause.DEVICES: Row(empty=Reason.DEVICES_TAINTED),
    Cause.DEVICE_RESOURCES: Row(Reason.NODES_FULL, Reason.NODE_TOO_SMALL),
    Cause.CLAIM_ELSEWHERE: Row(empty=Reason.CLAIM_ELSEWHERE, test=FitTest.CLAIMS),
    Cause.SEARCH_LIMIT: Row(anyway=Reason.SEARCH_LIMIT),
}
"""By the rule that refuses."""

DEVICE_TESTS: Final[Mapping[DeviceTest, Row]] = {
    DeviceTest.IN_USE: Row(Reason.DEVICES_IN_USE, Reason.COUNT_TOO_HIGH),
    DeviceTest.COUNTERS: Row(Reason.COUNTERS_IN_USE, Reason.COUNT_TOO_HIGH),
    DeviceTest.CAPACITY: Row(Reason.CAPACITY_IN_USE, Reason.CAPACITY_TOO_HIGH),
    DeviceTest.CONSTRAINT: Row(Reason.MISALIGNED, Reason.CONSTRAINT_UNMEETABLE),
    DeviceTest.COMBINATION: Row(Reason.REQUESTS_COMPETE, Reason.REQUESTS_CONFLICT),
}
"""By the test at which devices drop out."""

DEFECTS: Final[Mapping[Defect, Reason]] = {
    Defect.CLAIM: Reason.CLAIM_INVALID,
    Defect.TOO_MANY: Reason.CLAIM_TOO_LARGE,
    Defect.CLASS: Reason.CLASS_MISSING,
    Defect.SELECTOR: Reason.SELECTOR_INVALID,
    Defect.CONSTRAINT: Reason.CONSTRAINT_UNMEETABLE,
    Defect.FEATURE: Reason.FEATURE_OFF,
    Defect.POOL: Reason.POOL_INVALID,
}
"""By what is wrong with the question."""

POOLS: Final[Mapping[PoolState, Reason]] = {
    PoolState.INVALID: Reason.POOL_INVALID,
    PoolState.INCOMPLETE: Reason.POOL_INCOMPLETE,
}
"""By what is wrong with a pool whose devices would do."""


def _empty(kind: Outlook) -> dict[Cause, Reason]:
    return {c: row.empty for c, row in CAUSES.items() if row.empty and row.empty.kind is kind}


TESTS: Final = {cause: row.test for cause, row in CAUSES.items() if row.test}
NOW: Final = {cause: row.now for cause, row in CAUSES.items() if row.now}
ANYWAY: Final = {cause: row.anyway for cause, row in CAUSES.items() if row.anyway}
ON_ONE_NODE: Final = {
    cause: reason for cause, row in CAUSES.items() if (reason := row.now or row.empty or row.anyway)
}
"""What is said about one node, regardless of the others."""
HARDWARE: Final = _empty(Outlook.NEVER)
PLACES: Final = _empty(Outlook.NOT_HERE)
DECIDED: Final = _empty(Outlook.HELD)
USED: Final = {
    test: row.now
    for test, row in DEVICE_TESTS.items()
    if row.now and row.now.kind is Outlook.NOT_NOW
}
"""Devices that are in use."""
AS_HARDWARE: Final = {row.now: row.empty for row in DEVICE_TESTS.values() if row.now and row.empty}
"""The reason for a shortage with nothing in use, by the reason for the same shortage caused by use."""

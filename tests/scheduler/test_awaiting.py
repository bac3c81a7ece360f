"""How long a pod waits for its devices before it is bound."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.api.times import timestamp_at
from drayman.inventory.features import Features
from drayman.placement.decision.placements import Placement
from drayman.placement.fit import PodNeeds
from drayman.placement.state import ClusterState
from drayman.scheduler.awaiting import Awaiting

NOW = 1_800_000_000.0
TIMEOUT_S = 60.0
DEVICE = {"driver": "d", "pool": "p", "device": "gpu-0"}


def make_claim(name: str, age_s: float, *, is_ready: bool) -> ResourceClaim:
    """One with a device that its driver has made ready, or has still to make ready."""
    result = {"request": "r", **DEVICE, "bindingConditions": ["Ready"]}
    said = [{"type": "Ready", "status": "True"}] if is_ready else []
    allocation: dict[str, Any] = {
        "devices": {"results": [result]},
        "allocationTimestamp": timestamp_at(NOW - age_s),
    }
    status = {"allocation": allocation, "devices": [{**DEVICE, "conditions": said}]}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    return convert(ResourceClaim, {"metadata": metadata, "status": status})


CASES: dict[str, tuple[list[ResourceClaim], float, bool]] = {
    "while it may take": ([make_claim("new", 0, is_ready=False)], 59, False),
    "no longer than it may take": ([make_claim("new", 0, is_ready=False)], 61, True),
    "counted from the allocation": ([make_claim("new", 30, is_ready=False)], 31, True),
    "however old what is ready may be": (
        [make_claim("old", 3600, is_ready=True), make_claim("new", 0, is_ready=False)],
        59,
        False,
    ),
}


@pytest.mark.parametrize(("claims", "later_s", "gives_up"), CASES.values(), ids=CASES)
def test_each_claim_has_its_own_time(
    claims: list[ResourceClaim], later_s: float, gives_up: bool
) -> None:
    """A pod waits for the devices of a claim until they should have been ready, counted from their allocation."""
    state = ClusterState(Features(), lambda _: None)
    for claim in claims:
        state.set_claim(claim)
    pod = convert(Pod, {"metadata": {"name": "p", "namespace": "default", "uid": "p"}})
    placement = Placement(pod, PodNeeds.of(pod), "n", claims=tuple(claims))
    waiting = Awaiting.of(state, placement, NOW, TIMEOUT_S)
    is_ready, failure = waiting.outcome(state, NOW + later_s)
    assert not is_ready
    assert failure.startswith("device binding timeout") if gives_up else failure == ""

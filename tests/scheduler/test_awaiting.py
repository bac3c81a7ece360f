"""What a pod waits for before it is bound, and how long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.api.times import timestamp_at
from drayman.inventory.features import Features
from drayman.placement.decision.placements import Placement
from drayman.placement.fit import PodNeeds
from drayman.placement.state import ClusterState
from drayman.scheduler.awaiting import Awaiting
from drayman.scheduler.binding import Binder
from patience import PATIENCE_S

NOW = 1_800_000_000.0
TIMEOUT_S = 60.0
ELSEWHERE = ObjectMeta(name="c0", namespace="elsewhere", uid="c0")
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
    version = "2" if is_ready else "1"
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": version}
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


class Counting(ClusterState):
    """Counts how often a claim is looked at."""

    looks = 0

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        self.looks += 1
        return super().find_claim(namespace, name)


class Answers:
    """A server that accepts everything, and what becomes of the pods."""

    transactional = True

    def __init__(self) -> None:
        self.bound_pods: list[str] = []

    async def write_many(self, writes: Sequence[object]) -> tuple[object, ...]:
        return tuple(None for _ in writes)

    def bound(self, placement: Placement) -> None:
        self.bound_pods.append(placement.uid)

    def waiting(self, placement: Placement) -> None:
        pass

    def settled(self, claims: Iterable[ResourceClaim]) -> None:
        pass


def make_placement(name: str, claims: Sequence[ResourceClaim]) -> Placement:
    pod = convert(Pod, {"metadata": {"name": name, "namespace": "default", "uid": name}})
    return Placement(pod, PodNeeds.of(pod), "n", held=tuple(claims), waits=True)


async def binder_with(pods: int, claims: int) -> tuple[Counting, Answers, Binder]:
    """Pods that all wait for all of the claims."""
    state, answers = Counting(Features(), lambda _: None), Answers()
    for number in range(claims):
        state.set_claim(make_claim(f"c{number}", 0, is_ready=False))
    held = [make_claim(f"c{number}", 0, is_ready=False) for number in range(claims)]
    binder = Binder(answers, state, answers, lambda: NOW, TIMEOUT_S)  # type: ignore[arg-type]
    await binder.bind([make_placement(f"p{number}", held) for number in range(pods)])
    assert all(binder.is_waiting(f"p{number}") for number in range(pods))
    state.looks = 0
    return state, answers, binder


async def test_a_pod_is_bound_when_the_last_of_its_claims_is_ready() -> None:
    state, answers, binder = await binder_with(pods=2, claims=3)
    for name in ("c2", "c0", "c1"):
        assert not answers.bound_pods
        ready = make_claim(name, 0, is_ready=True)
        state.set_claim(ready)
        binder.claim_changed(ready)
        for _ in range(5):
            await asyncio.sleep(0)
    assert answers.bound_pods == ["p0", "p1"]
    await binder.stop()


async def test_claims_that_change_together_are_looked_at_together() -> None:
    """However many claims change at once, a pod looks once at all of its own."""
    pods, claims = 5, 40
    state, _, binder = await binder_with(pods, claims)
    for number in range(claims):
        binder.claim_changed(make_claim(f"c{number}", 0, is_ready=False))
    async with asyncio.timeout(PATIENCE_S):
        while state.looks < pods * claims:
            await asyncio.sleep(0)
    await asyncio.sleep(0.1)  # in which nobody looks again
    assert state.looks == pods * claims
    await binder.stop()


async def test_claims_that_no_pod_waits_for_cost_nothing() -> None:
    state, _, binder = await binder_with(pods=50, claims=1)
    binder.claim_changed(make_claim("another", 0, is_ready=True))
    binder.claim_changed(
        msgspec.structs.replace(make_claim("c0", 0, is_ready=True), metadata=ELSEWHERE)
    )
    await asyncio.sleep(0.01)
    assert state.looks == 0
    await binder.stop()

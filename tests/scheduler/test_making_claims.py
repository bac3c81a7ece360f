"""Claims that the scheduler makes itself: the server may show them before it answers, or the write may fail."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.cluster.turns import Turns
from drayman.inventory.features import Features
from drayman.placement.decision.placements import Placement
from drayman.placement.hints import Change
from drayman.placement.state import ClusterState
from drayman.placement.wake import Wake
from drayman.scheduler.cycle import Cycle, Decisions
from drayman.scheduler.queue import Queue
from oracle.build import device, device_class, piece

SHARED = device("d0", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})


class Desk:
    """A node with devices, a template, and a scheduler that has the first turn."""

    def __init__(self, *devices: Any, **wanted: Any) -> None:
        self.queue, self.turns = Queue(), Turns()
        self.wakes: list[Wake] = []
        self.state = ClusterState(Features(), self._wake)
        self.cycle = Cycle(
            self.state,
            self.queue,
            lambda: 0.0,
            policy=Policy.BEST,
            binding_timeout_s=600.0,
            turns=self.turns,
        )
        allocatable = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        node = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
        self.state.set_node(convert(Node, node))
        self.state.set_class(convert(DeviceClass, device_class("gpu")))
        self.state.set_slice(
            convert(ResourceSlice, piece(list(devices), pool="n", name="n", nodeName="n"))
        )
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **wanted}
        template = {
            "metadata": {"name": "t", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}},
        }
        self.state.set_template(convert(ResourceClaimTemplate, template))
        self.wakes.clear()

    def _wake(self, change: Change) -> None:
        if isinstance(change, Wake):
            self.wakes.append(change)
        self.queue.wake(change)

    def pod(self, name: str) -> None:
        entry = {"name": "g", "resourceClaimTemplateName": "t"}
        metadata = {"name": name, "namespace": "default", "uid": name}
        pod = convert(Pod, {"metadata": metadata, "spec": {"resourceClaims": [entry]}})
        self.turns.take(pod)
        self.queue.add(pod)

    def decide(self) -> Decisions:
        return self.cycle.decide(100)

    def free(self) -> int:
        view = self.state.view(self.state.nodes["n"])
        return (view.hardware.everything & ~view.usage.in_use).bit_count()


def shown(placement: Placement, version: int, *, allocated: bool = True) -> ResourceClaim:
    """The claim of a placement as the server shows it."""
    claim = placement.made[0].claim
    metadata = msgspec.structs.replace(
        claim.metadata, uid=f"uid of {claim.metadata.name}", resource_version=str(version)
    )
    claim = msgspec.structs.replace(claim, metadata=metadata)
    return claim if allocated else msgspec.structs.replace(claim, status=type(claim.status)())


@pytest.mark.parametrize("early", [False, True], ids=["after the answer", "before the answer"])
def test_what_is_made_wakes_nobody(early: bool) -> None:
    """Its devices are taken when they are decided about, and never seem to become free."""
    at = Desk("d0", "d1")
    at.pod("p")
    (placement,) = at.decide().placements
    created, claim = shown(placement, 1, allocated=False), shown(placement, 2)
    made = placement.made[0]
    if early:
        at.state.set_claim(created)
        at.state.set_claim(claim)
        assert at.free() == 1
    at.state.adopt(made.holder, claim)
    at.state.confirm_claim(claim)
    if not early:
        at.state.set_claim(created)
        at.state.set_claim(claim)
    assert at.free() == 1
    assert not at.wakes
    at.state.remove_pod("p")
    at.wakes.clear()
    at.state.remove_claim(claim)
    assert at.free() == 2
    assert at.wakes == [Wake.DEVICES]


def test_shares_are_not_counted_twice_on_the_way() -> None:
    """Two of 5Gi fit into 10Gi, also if the second comes between what the server shows of the first and its answer."""
    at = Desk(SHARED, capacity={"requests": {"memory": "5Gi"}})
    at.pod("first")
    (first,) = at.decide().placements
    at.state.set_claim(shown(first, 2))
    at.pod("second")
    assert len(at.decide().placements) == 1


def test_what_is_not_made_is_given_back() -> None:
    """The write fails: the devices are free again and who waits for them is told; another claim of that name is another claim."""
    at = Desk("d0")
    at.pod("p")
    (placement,) = at.decide().placements
    made = placement.made[0]
    at.pod("next")
    assert at.decide().refused
    at.state.remove_pod("p")
    at.wakes.clear()
    at.state.forget_made(made.key, made.holder)
    assert at.wakes == [Wake.DEVICES]
    assert at.free() == 1
    at.state.set_claim(shown(placement, 3))
    assert at.free() == 0
    at.state.remove_claim(shown(placement, 3))
    assert at.free() == 1

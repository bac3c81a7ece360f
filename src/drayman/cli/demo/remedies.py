"""What would make a refused claim fit: small changes, each tried with a real search before it is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from drayman.allocator import Plan, Policy, search
from drayman.api.resource import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from drayman.cli.demo.scene import Scene
from drayman.inventory import DeviceId, Ledger

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NUMA_NODE = "resource.kubernetes.io/numaNode"


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change after which the claim gets these devices."""

    change: str
    devices: tuple[DeviceId, ...]


def remedies(scene: Scene, claim: ResourceClaim) -> list[Remedy]:
    """Every small change of the claim that helps, the nearest to what was asked first."""
    found = (_tried(scene, change, variant) for change, variant in _variants(claim))
    return [remedy for remedy in found if remedy is not None]


def freeing_helps(scene: Scene, claim: ResourceClaim) -> list[Remedy]:
    """Which holders would have to give back what they have: each alone, else all of them."""
    holders = list(scene.ledger.holders())
    found = []
    for name, _ in holders:
        ledger = Ledger()
        for other, holdings in holders:
            if other != name:
                ledger.observe(other, holdings)
        remedy = _tried(scene, f"once {name} gives back its devices", claim, ledger)
        if remedy is not None:
            found.append(remedy)
    if found or not holders:
        return found
    remedy = _tried(scene, "once every other claim has gone", claim, Ledger())
    return [] if remedy is None else [remedy]


def _tried(
    scene: Scene, change: str, claim: ResourceClaim, ledger: Ledger | None = None
) -> Remedy | None:
    outcome = search(scene.view(ledger), [claim], policy=Policy.BEST)
    if not isinstance(outcome, Plan):
        return None
    entries = (entry for item in outcome.claims for entry in item.allocation.devices.results)
    return Remedy(change, tuple(DeviceId(e.driver, e.pool, e.device) for e in entries))


def _variants(claim: ResourceClaim) -> Iterator[tuple[str, ResourceClaim]]:
    devices = claim.spec.devices
    for index, constraint in enumerate(devices.constraints):
        if constraint.match_attribute == PCIE_ROOT:
            near = replace(constraint, match_attribute=NUMA_NODE)
            yield "match numaNode instead of pcieRoot", _with_constraint(claim, index, near)
    if any(_count(request) > 1 for request in devices.requests):
        single = tuple(_asking_for_one(request) for request in devices.requests)
        yield "ask for one device of each instead", _with(claim, replace(devices, requests=single))
    for index, constraint in enumerate(devices.constraints):
        attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        short = attribute.rpartition("/")[2]
        yield f"drop the constraint on {short}", _with_constraint(claim, index, None)


def _with(claim: ResourceClaim, devices: DeviceClaim) -> ResourceClaim:
    return replace(claim, spec=replace(claim.spec, devices=devices))


def _with_constraint(
    claim: ResourceClaim, index: int, constraint: DeviceConstraint | None
) -> ResourceClaim:
    """The claim with the constraint replaced, or without it."""
    old = claim.spec.devices.constraints
    new = () if constraint is None else (constraint,)
    devices = replace(claim.spec.devices, constraints=(*old[:index], *new, *old[index + 1 :]))
    return _with(claim, devices)


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count


def _asking_for_one(request: DeviceRequest) -> DeviceRequest:
    if request.exactly is None:
        return request
    exactly: ExactDeviceRequest = replace(request.exactly, count=1)
    return replace(request, exactly=exactly)

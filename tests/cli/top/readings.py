"""Clusters as `top` and `map` read them, made of simulated hardware and claims."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drayman.drivers.profiles import parse_profiles
from drayman.questions.devices.reading import Reading, reading_of


def reading(
    profiles: str, claims: Iterable[ResourceClaim] = (), *, cordoned: Iterable[str] = ()
) -> Reading:
    """The cluster that `drayman up --profile` would simulate, with these claims, and these nodes cordoned."""
    nodes, slices = [], []
    for wanted in parse_profiles(profiles):
        for number in range(wanted.count):
            for made in wanted.profile.unit(number):
                node, name = made.node, made.node.metadata.name
                spec = replace(node.spec, unschedulable=name in cordoned)
                nodes.append(replace(node, spec=spec))
                slices += made.slices
    return reading_of(nodes, slices, claims)


def claim(name: str, *devices: str, share: str | None = None, **consumed: str) -> ResourceClaim:
    """A claim of a pod of the same name that has devices, each named DRIVER/POOL/NAME."""
    results = []
    for device in devices:
        driver, pool, last = device.split("/")
        amounts = {key: Quantity.parse(value) for key, value in consumed.items()}
        results.append(
            DeviceRequestAllocationResult(
                request="r",
                driver=driver,
                pool=pool,
                device=last,
                share_id=share,
                consumed_capacity=amounts,
            )
        )
    consumer = ResourceClaimConsumerReference(resource="pods", name=name, uid=f"pod-{name}")
    return ResourceClaim(
        metadata=ObjectMeta(name=f"{name}-claim", namespace="team", uid=name),
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocationResult(results=tuple(results))),
            reserved_for=(consumer,),
        ),
    )

"""Pools as they are published: the newest generation of each, whether it is whole, and which nodes it is for.

The allocator looks at a pool from one node. Questions about a cluster concern the pool itself, even if no node can use it because its
driver is still publishing, its slices contradict each other, or its node is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drayman.api.resource import Device, ResourceSlice
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.pool import PoolState, ResolvedPool, newest_slices


@dataclass(frozen=True, slots=True)
class PublishedPool:
    """The newest generation of a pool."""

    id: PoolId
    generation: int
    slices: int
    wanted: int
    """How many slices the driver says there will be."""
    state: PoolState
    reason: str
    """What is wrong; empty if it is usable."""
    nodes: frozenset[str]
    """The nodes that it names."""
    reaches_others: bool
    """Whether it also selects nodes without naming them."""
    devices: Mapping[DeviceId, tuple[ResourceSlice, Device]]
    """Each with the slice that publishes it, in the order of the slices."""


def published(
    slices: Iterable[ResourceSlice], problems: Mapping[tuple[str, str], ResolvedPool]
) -> tuple[PublishedPool, ...]:
    """The pools of these slices by driver and name. `problems` is what nodes find wrong with some of them."""
    return tuple(
        _pool(pool_id, current, problems.get(pool_id))
        for pool_id, current in sorted(newest_slices(slices).items())
    )


def _pool(
    pool_id: PoolId, current: list[ResourceSlice], problem: ResolvedPool | None
) -> PublishedPool:
    current.sort(key=lambda slice_: slice_.metadata.name)
    pool = current[0].spec.pool
    state, reason = PoolState.USABLE, ""
    if problem is not None:
        state, reason = problem.state, problem.reason
    elif len(current) != pool.resource_slice_count:
        state = PoolState.INCOMPLETE
        reason = (
            f"{len(current)} of {pool.resource_slice_count} slices"
            f" of generation {pool.generation} are there"
        )
    devices = {
        DeviceId(*pool_id, device.name): (slice_, device)
        for slice_ in current
        for device in slice_.spec.devices or ()
    }
    return PublishedPool(
        id=pool_id,
        generation=pool.generation,
        slices=len(current),
        wanted=pool.resource_slice_count,
        state=state,
        reason=f"its pool is {state.value}: {reason}" if reason else "",
        nodes=_named(current),
        reaches_others=any(_reaches_others(slice_) for slice_ in current),
        devices=devices,
    )


def _named(current: Iterable[ResourceSlice]) -> frozenset[str]:
    names: set[str | None] = set()
    for slice_ in current:
        names.add(slice_.spec.node_name)
        if slice_.spec.per_device_node_selection:
            names.update(device.node_name for device in slice_.spec.devices or ())
    return frozenset(name for name in names if name)


def _reaches_others(slice_: ResourceSlice) -> bool:
    spec = slice_.spec
    places = spec.devices or () if spec.per_device_node_selection else (spec,)
    return any(place.all_nodes or place.node_selector is not None for place in places)

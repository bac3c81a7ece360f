"""Devices and pools one by one: what each is counted as, what holds it, and what is left of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import field

from drayman.api.struct import ApiStruct
from drayman.inventory.published import PublishedPool
from drayman.placement.occupancy import DeviceStanding, State, tally
from drayman.questions.devices.reading import Reading
from drayman.reasons.naming import taint_title
from drayman.simulate.capacity_left import capacity_use
from drayman.topology import Locality, kind


class CapacityLeft(ApiStruct):
    """One capacity of a device that can be shared, in the units in which its driver publishes it."""

    total: str
    left: str


class DevicePlace(ApiStruct):
    """Where a device sits in its node, as far as its driver says so."""

    numa_node: int | None
    pcie_root: str | None
    pci_bus_id: str | None = field(name="pciBusID")


class DeviceRow(ApiStruct):
    """A device."""

    driver: str
    pool: str
    device: str
    node: str | None
    """Where it is; None for one that several nodes may reach."""
    kind: str
    state: State
    taints: tuple[str, ...]
    """Taints that keep requests away, whatever the state."""
    holders: tuple[str, ...]
    unit: str
    """The piece of hardware that it is, or is a part of."""
    capacity: Mapping[str, CapacityLeft]
    node_closed: tuple[str, ...] = ()
    """Why no node that can use it takes pods, whatever the state."""
    reason: str = ""
    """Why it is unavailable."""
    locality: DevicePlace | None = None
    """On the map of one node."""


class PoolRow(ApiStruct, kw_only=True):
    """A pool: whether all of its slices exist, and how many of its devices are in each state."""

    driver: str
    pool: str
    nodes: tuple[str, ...]
    selects_nodes: bool
    """Whether it reaches nodes without naming them."""
    generation: int
    slices: int
    wanted_slices: int
    state: str
    reason: str = ""
    devices: Mapping[str, int]
    """By state, and in `total`."""


def device_rows(
    reading: Reading,
    *,
    node: str | None = None,
    driver: str | None = None,
    states: Collection[str] = (),
) -> list[DeviceRow]:
    """The devices as they are published, or only those of a node or a driver, or in some states."""
    return [
        device_row(reading, standing)
        for standing in reading.occupancy.devices.values()
        if node in (None, standing.node)
        and driver in (None, standing.id.driver)
        and (not states or standing.state in states)
    ]


def device_row(
    reading: Reading, standing: DeviceStanding, locality: Locality | None = None
) -> DeviceRow:
    """A device, with its place if that is asked for."""
    record = standing.record
    return DeviceRow(
        driver=standing.id.driver,
        pool=standing.id.pool,
        device=standing.id.device,
        node=standing.node or None,
        kind=kind(record.id.driver, record.device).value,
        state=standing.state,
        taints=tuple(taint_title(*taint) for taint in standing.taints),
        holders=reading.holders(standing.id),
        unit=standing.unit.name,
        capacity=_left_of(standing),
        node_closed=tuple(why.value for why in standing.closed),
        reason=standing.why,
        locality=None if locality is None else _place(locality),
    )


def _left_of(standing: DeviceStanding) -> dict[str, CapacityLeft]:
    """Where it is not known whether a device is held, what is left of it is not known either."""
    if standing.state is State.UNKNOWN:
        return {}
    return {
        each.name: CapacityLeft(total=str(each.total), left=str(each.left))
        for each in capacity_use(standing)
    }


def _place(locality: Locality) -> DevicePlace:
    return DevicePlace(
        numa_node=locality.numa, pcie_root=locality.pcie_root, pci_bus_id=locality.bus_id
    )


def pool_rows(
    reading: Reading, *, node: str | None = None, driver: str | None = None
) -> list[PoolRow]:
    """The pools, or only those of a node or a driver."""
    return [
        _pool_row(reading, pool)
        for pool in reading.occupancy.pools
        if driver in (None, pool.id.driver) and (node is None or node in pool.nodes)
    ]


def _pool_row(reading: Reading, pool: PublishedPool) -> PoolRow:
    counts = tally(reading.occupancy.devices[device] for device in pool.devices)
    return PoolRow(
        driver=pool.id.driver,
        pool=pool.id.pool,
        nodes=tuple(sorted(pool.nodes)),
        selects_nodes=pool.reaches_others,
        generation=pool.generation,
        slices=pool.slices,
        wanted_slices=pool.wanted,
        state=pool.state.value,
        reason=pool.reason,
        devices={
            "total": sum(counts.values()),
            **{state.value: counts[state] for state in State},
        },
    )

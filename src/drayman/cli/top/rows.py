"""Devices and pools as lines: what each is, and how it reads in a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from drayman.cli.top.reading import UNSEEN_HOLDER, Reading
from drayman.cli.top.table import STYLES, Cell, Column
from drayman.inventory.pool import PoolState
from drayman.inventory.published import PublishedPool
from drayman.placement.occupancy import Standing, State, tally
from drayman.simulate.capacity_left import CapacityUse, capacity_use
from drayman.topology import kind

NOTHING: Final = "-"
MANY_NODES: Final = "(several)"


# --- Devices --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device of `top devices`."""

    standing: Standing
    holders: tuple[str, ...]
    capacity: tuple[CapacityUse, ...]

    @property
    def node(self) -> str:
        return self.standing.node or MANY_NODES

    @property
    def kind(self) -> str:
        record = self.standing.record
        return kind(record.id.driver, record.device).value

    @property
    def state(self) -> str:
        """The state, and what does not follow from it: that it is tainted, or its node closed."""
        standing = self.standing
        words = [standing.state.value, *standing.closed]
        if standing.taints and standing.state is not State.TAINTED:
            words.append(State.TAINTED)
        return ",".join(words)

    @property
    def holder(self) -> str:
        if self.standing.state is State.UNKNOWN:
            return UNSEEN_HOLDER
        return ",".join(self.holders) or NOTHING

    def cells(self) -> tuple[Cell, ...]:
        device = self.standing.id
        left = ",".join(f"{each.name} {each.left}/{each.total}" for each in self.capacity)
        pool = NOTHING if device.pool == self.standing.node else device.pool
        return (
            self.node,
            device.driver,
            pool,
            device.device,
            self.kind,
            (self.state, STYLES[self.standing.state]),
            self.holder,
            left or NOTHING,
        )

    def data(self) -> dict[str, Any]:
        standing = self.standing
        return {
            **standing.id._asdict(),
            "node": standing.node or None,
            "kind": self.kind,
            "state": standing.state.value,
            "taints": [_taint(*taint) for taint in standing.taints],
            "holders": list(self.holders),
            "unit": standing.unit.name,
            "capacity": {each.name: each.data() for each in self.capacity},
            **({"nodeClosed": list(standing.closed)} if standing.closed else {}),
            **({"reason": standing.why} if standing.why else {}),
        }


DEVICE_COLUMNS: Final = (
    Column("NODE", may_be_cut=True),
    Column("DRIVER", may_be_cut=True),
    Column("POOL", may_be_cut=True, empty=NOTHING),
    Column("DEVICE", may_be_cut=True, matters=True),
    Column("KIND", if_room=True),
    Column("STATE"),
    Column("HOLDER", may_be_cut=True),
    Column("LEFT", may_be_cut=True, empty=NOTHING),
)


def device_rows(reading: Reading, standings: Iterable[Standing] | None = None) -> list[DeviceRow]:
    """A row for each device, or for each of some."""
    chosen = reading.occupancy.devices.values() if standings is None else standings
    return [
        DeviceRow(standing, reading.holders(standing.id), _left_of(standing)) for standing in chosen
    ]


def _left_of(standing: Standing) -> tuple[CapacityUse, ...]:
    """What is left of a device of which it cannot be told whether somebody has it is not known either."""
    return () if standing.state is State.UNKNOWN else capacity_use(standing)


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}{'=' if value else ''}{value}:{effect}"


# --- Pools ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool of `top pools`."""

    pool: PublishedPool
    counts: Mapping[State, int]

    @property
    def nodes(self) -> str:
        if self.pool.reaches_others or len(self.pool.nodes) > 1:
            return MANY_NODES
        return next(iter(self.pool.nodes), NOTHING)

    def cells(self) -> tuple[Cell, ...]:
        pool = self.pool
        node = NOTHING if self.nodes == pool.id.pool else self.nodes
        style = "" if pool.state is PoolState.USABLE else "red"
        numbers = [
            (str(self.counts[state]), STYLES[state] if self.counts[state] else "dim")
            for state in _POOL_STATES
        ]
        return (
            pool.id.driver,
            pool.id.pool,
            node,
            str(pool.generation),
            (f"{pool.slices}/{pool.wanted}", style),
            (NOTHING if pool.state is PoolState.USABLE else pool.state.value, style),
            str(sum(self.counts.values())),
            *numbers,
        )

    def data(self) -> dict[str, Any]:
        pool = self.pool
        return {
            **pool.id._asdict(),
            "nodes": sorted(pool.nodes),
            "selectsNodes": pool.reaches_others,
            "generation": pool.generation,
            "slices": pool.slices,
            "wantedSlices": pool.wanted,
            "state": pool.state.value,
            **({"reason": pool.reason} if pool.reason else {}),
            "devices": {
                "total": sum(self.counts.values()),
                **{state.value: self.counts[state] for state in State},
            },
        }


_POOL_STATES: Final = (
    State.USED,
    State.SHARED,
    State.PARTITIONED,
    State.TAINTED,
    State.UNAVAILABLE,
    State.UNKNOWN,
    State.FREE,
)

POOL_COLUMNS: Final = (
    Column("DRIVER", may_be_cut=True),
    Column("POOL", may_be_cut=True),
    Column("NODE", may_be_cut=True, empty=NOTHING),
    Column("GEN", is_number=True),
    Column("SLICES", is_number=True, if_room=True),
    Column("PROBLEM", empty=NOTHING),
    Column("ALL", is_number=True),
    Column("USED", is_number=True),
    Column("SHARED", is_number=True, empty="0"),
    Column("PART", is_number=True, empty="0"),
    Column("TAINT", is_number=True, empty="0"),
    Column("UNAV", is_number=True, empty="0"),
    Column("UNKNOWN", is_number=True, empty="0"),
    Column("FREE", is_number=True),
)


def pool_rows(reading: Reading) -> list[PoolRow]:
    """A row for each pool."""
    devices = reading.occupancy.devices
    return [
        PoolRow(pool, tally(devices[device] for device in pool.devices))
        for pool in reading.occupancy.pools
    ]

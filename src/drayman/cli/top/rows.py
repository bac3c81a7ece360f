"""Devices, claims and pools as lines: what each is, and how it reads in a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from drayman.api.resource import ResourceClaim
from drayman.cli.top.reading import UNSEEN_HOLDER, Reading, consumers
from drayman.cli.top.table import STYLES, Cell, Column
from drayman.inventory import DeviceId
from drayman.inventory.pool import PoolState
from drayman.placement.claims import only_node_of
from drayman.placement.fit.readiness import Closed
from drayman.simulate.capacity_left import CapacityUse, capacity_use
from drayman.simulate.occupancy import Standing, State, tally
from drayman.simulate.pools import PublishedPool
from drayman.topology import kind

NOTHING: Final = "-"
MANY_NODES: Final = "(several)"
_NAMES_SHOWN: Final = 3


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
    Column("DEVICE", may_be_cut=True),
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


# --- Claims ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim of `top claims`."""

    claim: ResourceClaim
    devices: tuple[str, ...]
    node: str
    age: str
    gone: tuple[str, ...] = ()
    """Those of its devices that are not published any more."""
    closed: tuple[Closed, ...] = ()
    """Why the node with some of its devices takes no pods."""

    @property
    def state(self) -> str:
        """As kubectl has it."""
        metadata, status = self.claim.metadata, self.claim.status
        words = ["deleted"] if metadata.deletion_timestamp is not None else []
        words += ["allocated"] if status.allocation is not None else []
        words += ["reserved"] if status.reserved_for else []
        return ",".join(words) or "pending"

    @property
    def marks(self) -> tuple[str, ...]:
        """What is wrong with where its devices are."""
        return (*self.closed, *(("devices-gone",) if self.gone else ()))

    def cells(self) -> tuple[Cell, ...]:
        state = self.state
        # What is reserved is allocated, so one word says it.
        word = "deleted" if state.startswith("deleted") else state.rpartition(",")[2]
        style = "yellow" if state == "pending" else "red" if self.gone else ""
        return (
            self.claim.metadata.namespace,
            self.claim.metadata.name,
            (",".join((word, *self.marks)), style),
            self.node or NOTHING,
            str(len(self.devices)),
            _listed(consumers(self.claim)),
            self.age,
            ",".join(self.devices) or NOTHING,
        )

    def data(self) -> dict[str, Any]:
        return {
            "namespace": self.claim.metadata.namespace,
            "name": self.claim.metadata.name,
            "state": self.state,
            "node": self.node or None,
            "devices": list(self.devices),
            **({"devicesGone": list(self.gone)} if self.gone else {}),
            **({"nodeClosed": list(self.closed)} if self.closed else {}),
            "reservedFor": list(consumers(self.claim)),
            "created": self.claim.metadata.creation_timestamp,
        }


CLAIM_COLUMNS: Final = (
    Column("NAMESPACE", may_be_cut=True),
    Column("NAME", may_be_cut=True),
    Column("STATE"),
    Column("NODE", may_be_cut=True),
    Column("DEVICES", is_number=True),
    Column("PODS", may_be_cut=True),
    Column("AGE"),
    Column("DEVICE NAMES", may_be_cut=True, if_room=True),
)


def claim_row(claim: ResourceClaim, reading: Reading, age: str) -> ClaimRow:
    """A row for a claim: the node is the one that its allocation, or all its devices, are on."""
    allocation = claim.status.allocation
    if allocation is None:
        return ClaimRow(claim, (), "", age)
    results = allocation.devices.results
    devices = reading.occupancy.devices
    keys = [DeviceId(result.driver, result.pool, result.device) for result in results]
    on = {devices[key].node for key in keys if key in devices}
    node = only_node_of(allocation.node_selector) or _only(on)
    gone = tuple(key.device for key in keys if key not in devices)
    closed = {each: None for key in keys if key in devices for each in devices[key].closed}
    return ClaimRow(claim, tuple(r.device for r in results), node, age, gone, tuple(closed))


def _only(nodes: set[str]) -> str:
    """The node that all devices are on; devices that are no longer published are on none."""
    if not nodes:
        return ""
    return next(iter(nodes)) or MANY_NODES if len(nodes) == 1 else MANY_NODES


def _listed(names: tuple[str, ...]) -> str:
    shown = ",".join(names[:_NAMES_SHOWN]) or NOTHING
    rest = len(names) - _NAMES_SHOWN
    return f"{shown},+{rest}" if rest > 0 else shown


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

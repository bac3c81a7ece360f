"""Devices, pools, claims and owners as lines of a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from drayman.apiserver.kinds.tables import age_of
from drayman.cli.prices import money
from drayman.cli.table import EXTRA, STYLES, Cell, Column
from drayman.placement.occupancy import State
from drayman.questions.devices.claim_rows import MANY_NODES, ClaimRow
from drayman.questions.devices.owners import OwnerRow, OwnerTotal
from drayman.questions.devices.reading import UNSEEN_HOLDER
from drayman.questions.devices.rows import DeviceRow, PoolRow

NOTHING: Final = "-"
_USABLE: Final = "usable"
_NAMES_SHOWN: Final = 3


# --- Devices --------------------------------------------------------------------------------------

DEVICE_COLUMNS: Final = (
    Column("NODE", is_name=True),
    Column("DRIVER", may_be_cut=True),
    Column("POOL", is_name=True, empty=NOTHING),
    Column("DEVICE", is_name=True, stays=True),
    Column("KIND", spare=EXTRA),
    Column("STATE"),
    Column("HOLDER", is_name=True),
    Column("LEFT", empty=NOTHING, spare=2),
)


def device_cells(row: DeviceRow) -> tuple[Cell, ...]:
    """A device of `top devices`."""
    left = ",".join(f"{name} {each.left}/{each.total}" for name, each in row.capacity.items())
    return (
        row.node or MANY_NODES,
        row.driver,
        NOTHING if row.pool == row.node else row.pool,
        row.device,
        row.kind,
        (device_state(row), STYLES[row.state]),
        device_holder(row),
        left or NOTHING,
    )


def device_state(row: DeviceRow) -> str:
    """The state, and what does not follow from it: that the device is tainted, or its node takes no pods."""
    words = [row.state.value, *row.node_closed]
    if row.taints and row.state is not State.TAINTED:
        words.append(State.TAINTED)
    return ",".join(words)


def device_holder(row: DeviceRow) -> str:
    """The holder, as far as can be seen."""
    if row.state is State.UNKNOWN:
        return UNSEEN_HOLDER
    return ",".join(row.holders) or NOTHING


# --- Pools ----------------------------------------------------------------------------------------

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
    Column("POOL", is_name=True, stays=True),
    Column("NODE", is_name=True, empty=NOTHING),
    Column("GEN", is_number=True),
    Column("SLICES", is_number=True, spare=EXTRA),
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


def pool_cells(row: PoolRow) -> tuple[Cell, ...]:
    """A pool of `top pools`."""
    node = _node_of(row)
    style = "" if row.state == _USABLE else "red"
    numbers = [
        (str(row.devices[state]), STYLES[state] if row.devices[state] else "dim")
        for state in _POOL_STATES
    ]
    return (
        row.driver,
        row.pool,
        NOTHING if node == row.pool else node,
        str(row.generation),
        (f"{row.slices}/{row.wanted_slices}", style),
        (NOTHING if row.state == _USABLE else row.state, style),
        str(row.devices["total"]),
        *numbers,
    )


def _node_of(row: PoolRow) -> str:
    if row.selects_nodes or len(row.nodes) > 1:
        return MANY_NODES
    return next(iter(row.nodes), NOTHING)


# --- Claims ---------------------------------------------------------------------------------------

CLAIM_COLUMNS: Final = (
    Column("NAMESPACE", is_name=True),
    Column("NAME", is_name=True, stays=True),
    Column("STATE"),
    Column("NODE", is_name=True),
    Column("DEVICES", is_number=True, spare=2),
    Column("PODS", is_name=True),
    Column("AGE", spare=3),
    Column("DEVICE NAMES", is_name=True, spare=EXTRA),
)


def claim_cells(row: ClaimRow, now: datetime) -> tuple[Cell, ...]:
    """A claim of `top claims`."""
    # What is reserved is allocated, so one word says it.
    word = "deleted" if row.state.startswith("deleted") else row.state.rpartition(",")[2]
    marks = (*row.node_closed, *(("devices-gone",) if row.devices_gone else ()))
    style = "yellow" if row.state == "pending" else "red" if row.devices_gone else ""
    return (
        row.namespace,
        row.name,
        (",".join((word, *marks)), style),
        row.node or NOTHING,
        str(len(row.devices)),
        _listed(row.reserved_for),
        age_of(row.created, now),
        ",".join(device.rpartition("/")[2] for device in row.devices) or NOTHING,
    )


def _listed(names: tuple[str, ...]) -> str:
    shown = ",".join(names[:_NAMES_SHOWN]) or NOTHING
    rest = len(names) - _NAMES_SHOWN
    return f"{shown},+{rest}" if rest > 0 else shown


# --- Owners ---------------------------------------------------------------------------------------


def owner_columns(currency: str) -> tuple[Column, ...]:
    """The columns of `top owners`, for costs in this currency."""
    return (
        Column("NAMESPACE", is_name=True, empty=NOTHING),
        Column("OWNER", is_name=True, stays=True, empty=NOTHING),
        Column("PODS", is_number=True, spare=2),
        Column("DEVICES"),
        Column("SINCE", empty=NOTHING, spare=1),
        Column(f"{currency or 'COST'}/H", is_number=True, empty=NOTHING),
        Column("SO FAR", is_number=True, empty=NOTHING),
    )


def owner_cells(row: OwnerRow, now: datetime) -> tuple[Cell, ...]:
    """An owner of `top owners`."""
    return (
        row.namespace or NOTHING,
        row.owner or NOTHING,
        str(row.pods),
        _device_counts(row.devices),
        NOTHING if row.since is None else age_of(row.since, now),
        *_costs(row),
    )


def total_cells(total: OwnerTotal, *, of_queues: bool = False) -> tuple[Cell, ...]:
    """The last line of `top owners`."""
    first = (NOTHING, "total") if of_queues else ("total", NOTHING)
    cells = (*first, "", _device_counts(total.devices), NOTHING, *_costs(total))
    return tuple((cell, "bold") for cell in cells)


def _costs(found: OwnerRow | OwnerTotal) -> tuple[str, str]:
    """With `+` where something has no price."""
    more = "+" if found.unpriced_devices else ""
    rate, cost = found.cost_per_hour, found.cost
    return (
        NOTHING if rate is None else f"{money(rate)}{more}",
        NOTHING if cost is None else f"{money(cost)}{more}",
    )


def _device_counts(devices: Mapping[str, int]) -> str:
    return ",".join(f"{number} {sort}" for sort, number in devices.items())

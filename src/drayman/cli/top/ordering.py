"""In which order rows stand. Names sort as people do it, and after what is asked for the order is always the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from drayman.cli.top.claim_rows import ClaimRow
from drayman.cli.top.rows import DeviceRow, PoolRow
from drayman.cli.top.table import natural
from drayman.placement.occupancy import State


def sorted_devices(rows: Iterable[DeviceRow], order: str) -> list[DeviceRow]:
    """By node first unless asked otherwise. Within a pool devices stay in the order in which they are published."""
    keys: dict[str, Callable[[DeviceRow], Any]] = {
        "node": lambda row: (),
        "driver": lambda row: row.standing.id.driver,
        "device": lambda row: natural(row.standing.id.device),
        "state": lambda row: _STATES.index(row.standing.state),
        "holder": lambda row: (not row.holders, row.holders),
    }
    chosen = keys[order]
    return sorted(rows, key=lambda row: (chosen(row), *_place(row)))


def sorted_claims(rows: Iterable[ClaimRow], order: str) -> list[ClaimRow]:
    """By namespace and name; the oldest first, or those with most devices, if that is asked for."""
    keys: dict[str, Callable[[ClaimRow], Any]] = {
        "name": lambda row: (),
        "node": lambda row: natural(row.node),
        "state": lambda row: row.state,
        "devices": lambda row: -len(row.devices),
        "age": lambda row: row.claim.metadata.creation_timestamp or "",
    }
    chosen = keys[order]
    return sorted(
        rows,
        key=lambda row: (
            chosen(row),
            natural(row.claim.metadata.namespace),
            natural(row.claim.metadata.name),
        ),
    )


def sorted_pools(rows: Iterable[PoolRow], order: str) -> list[PoolRow]:
    """By driver and name, or those first that have most of something."""

    def most(row: PoolRow) -> int:
        if order == "name":
            return 0
        return -(sum(row.counts.values()) if order == "total" else row.counts[State(order)])

    return sorted(rows, key=lambda row: (most(row), row.pool.id.driver, natural(row.pool.id.pool)))


_STATES = tuple(State)


def _place(row: DeviceRow) -> tuple[object, ...]:
    standing = row.standing
    return not standing.node, natural(standing.node), standing.id.pool_id

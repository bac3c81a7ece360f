"""The order of rows. Names sort naturally, and ties under the requested order are always broken the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from drayman.api.times import seconds_of
from drayman.placement.occupancy import State
from drayman.questions.devices.claim_rows import ClaimRow
from drayman.questions.devices.owners import OwnerRow
from drayman.questions.devices.rows import DeviceRow, PoolRow

_DIGITS: Final = re.compile(r"(\d+)")
_STATES: Final = tuple(State)


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts names with numbers naturally: node-2 before node-10."""
    return tuple(
        (0, int(part)) if part.isdecimal() else (1, part) for part in _DIGITS.split(name) if part
    )


def sorted_devices(rows: Iterable[DeviceRow], order: str) -> list[DeviceRow]:
    """By node first unless asked otherwise. Within a pool devices stay in the order in which they are published."""
    keys: dict[str, Callable[[DeviceRow], Any]] = {
        "node": lambda row: (),
        "driver": lambda row: row.driver,
        "device": lambda row: natural(row.device),
        "state": lambda row: _STATES.index(row.state),
        "holder": lambda row: (not row.holders, row.holders),
    }
    chosen = keys[order]
    return sorted(rows, key=lambda row: (chosen(row), *_place(row)))


def sorted_claims(rows: Iterable[ClaimRow], order: str) -> list[ClaimRow]:
    """By namespace and name; the oldest first, or those with the most devices first, if requested."""
    keys: dict[str, Callable[[ClaimRow], Any]] = {
        "name": lambda row: (),
        "node": lambda row: natural(row.node or ""),
        "state": lambda row: row.state,
        "devices": lambda row: -len(row.devices),
        "age": lambda row: row.created or "",
    }
    chosen = keys[order]
    return sorted(
        rows,
        key=lambda row: (
            chosen(row),
            natural(row.namespace),
            natural(row.name),
        ),
    )


def sorted_pools(rows: Iterable[PoolRow], order: str) -> list[PoolRow]:
    """By driver and name, or those with the most of something first."""

    def most(row: PoolRow) -> int:
        if order == "name":
            return 0
        return -row.devices[order]

    return sorted(rows, key=lambda row: (most(row), row.driver, natural(row.pool)))


def sorted_owners(rows: Iterable[OwnerRow], order: str) -> list[OwnerRow]:
    """Those with the highest cost, the most devices or the oldest allocation first; ties by name."""

    def most(row: OwnerRow) -> tuple[object, ...]:
        match order:
            case "rate":
                return -(row.cost_per_hour or 0), -sum(row.devices.values())
            case "cost":
                return -(row.cost or 0), -(row.cost_per_hour or 0)
            case "devices":
                return (-sum(row.devices.values()),)
            case "since":
                return row.since is None, seconds_of(row.since) or 0
            case _:
                return ()

    return sorted(rows, key=lambda row: (*most(row), natural(row.namespace), natural(row.owner)))


def _place(row: DeviceRow) -> tuple[object, ...]:
    return not row.node, natural(row.node or ""), row.driver, row.pool

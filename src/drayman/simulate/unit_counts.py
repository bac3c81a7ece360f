"""Pieces of hardware and what they are counted as: what a person means by "eight GPUs, three of them in use"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from drayman.inventory.units import UnitId
from drayman.placement.occupancy import DeviceStanding, State
from drayman.topology import DeviceKind, kind

HELD: Final = frozenset({State.USED, State.SHARED, State.PARTITIONED})
"""The states of devices that are held, at least in part."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of hardware and the devices it is offered as."""

    id: UnitId
    members: tuple[DeviceStanding, ...]

    @property
    def whole(self) -> DeviceStanding | None:
        """The device that is all of it; None where it is offered in parts only."""
        if self.id.is_counter_set:
            return None
        return next(member for member in self.members if member.id.device == self.id.name)

    @property
    def node(self) -> str:
        return self.members[0].node

    @property
    def kind(self) -> DeviceKind:
        record = self.members[0].record
        return kind(record.id.driver, record.device)

    @property
    def state(self) -> State:
        """The state of the whole. What is offered only in parts is partitioned as soon as one part is held."""
        whole = self.whole
        if whole is not None:
            return whole.state
        states = {member.state for member in self.members}
        if states & HELD:
            return State.PARTITIONED
        best_first = (State.FREE, State.UNKNOWN, State.TAINTED)
        return next((state for state in best_first if state in states), State.UNAVAILABLE)


def gather(standings: Iterable[DeviceStanding]) -> list[Unit]:
    """The units of some devices, in the order in which the first device of each comes."""
    members: dict[UnitId, list[DeviceStanding]] = {}
    for standing in standings:
        members.setdefault(standing.unit, []).append(standing)
    return [Unit(unit, tuple(found)) for unit, found in members.items()]


def count_by_kind(units: Iterable[Unit]) -> dict[DeviceKind, Counter[State]]:
    """How many units of each kind are in each state; only kinds that exist."""
    found: dict[DeviceKind, Counter[State]] = {}
    for unit in units:
        found.setdefault(unit.kind, Counter())[unit.state] += 1
    return {each: found[each] for each in DeviceKind if each in found}

"""Devices placed so far in a search, with the rules that forbid the next one.

Every rule is closed under taking devices away (what is valid stays valid with fewer entries), so refusing a placement at
once loses no solution, and enumerating placements enumerates exactly the valid allocations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Literal

from oracle.model import MAX_RESULTS, Alternative, Constraint, Model
from oracle.pools import Device
from oracle.quantities import amount

Verdict = Literal["ok", "in use", "capacity", "counters", "taints", "constraints"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One device given to one alternative of a request of a claim."""

    claim: int
    request: int
    choice: Alternative
    device: int


@dataclass(slots=True)
class Board:
    """The entries placed so far, in order."""

    model: Model
    admin_blocks: bool = False
    """Upstream's quirk: an entry with admin access keeps ordinary ones of later claims away."""
    entries: list[Entry] = field(default_factory=list)

    def judge(self, entry: Entry) -> Verdict:
        """The first rule that the entry breaks, in the order in which upstream looks.

        Devices of `All` passed their capacity test before the search; it is repeated at the very end.
        """
        device = self.model.devices[entry.device]
        if self.in_use(entry):
            return "in use"
        wants_all = entry.choice.mode == "All"
        if not wants_all and not self._capacity_suffices(entry, device):
            return "capacity"
        if not self._counters_suffice(entry, device):
            return "counters"
        if self.model.untolerated(entry.choice, device):
            return "taints"
        if not self._constraints_hold(entry):
            return "constraints"
        if wants_all and not self._capacity_suffices(entry, device):
            return "capacity"
        return "ok"

    def full(self, claim: int) -> bool:
        return sum(entry.claim == claim for entry in self.entries) >= MAX_RESULTS

    def in_use(self, entry: Entry) -> bool:
        """Taken by somebody who keeps this entry away."""
        device = self.model.devices[entry.device]
        if not entry.choice.admin and device.id in self.model.exclusive:
            return True
        placed = [other for other in self.entries if other.device == entry.device]
        if device.shareable:
            return any((o.claim, o.request) == (entry.claim, entry.request) for o in placed)
        if any(other.claim == entry.claim for other in placed):
            return True
        if entry.choice.admin:
            return False
        return any(self.admin_blocks or not other.choice.admin for other in placed)

    def _capacity_suffices(self, entry: Entry, device: Device) -> bool:
        consumed = self.model.consumption(entry.choice, device)
        if consumed is None:
            return False
        if not device.shareable:
            return True
        for other in self.entries:
            if other.device == entry.device:
                for name, value in (self.model.consumption(other.choice, device) or {}).items():
                    consumed[name] += value
        capacities = device.spec.get("capacity") or {}
        return all(
            value + self.model.aggregated_of(device, name) <= amount(capacities[name]["value"])
            for name, value in consumed.items()
        )

    def _counters_suffice(self, entry: Entry, device: Device) -> bool:
        if not device.spec.get("consumesCounters"):
            return True
        if not self.model.on("DRAPartitionableDevices"):
            return False
        if self._paid(device, entry.device):
            return True
        pool = self.model.pool_of[device.id[:2]]
        left = self.model.counters_left(pool)
        charged: set[int] = set()
        for other in [*self.entries, entry]:
            spender = self.model.devices[other.device]
            if spender.id[:2] != pool.id or other.device in charged:
                continue
            if spender.shareable:
                charged.add(other.device)
                if spender.id in self.model.in_use:
                    continue
            for key, value in spender.spends.items():
                left[key] -= value
        return all(value >= Fraction(0) for value in left.values())

    def _paid(self, device: Device, index: int) -> bool:
        """A shareable device that somebody holds a share of costs nothing more."""
        held = device.id in self.model.in_use or any(e.device == index for e in self.entries)
        return device.shareable and held

    def _constraints_hold(self, entry: Entry) -> bool:
        constraints = self.model.claims[entry.claim].constraints
        return all(
            self._holds(constraint, entry)
            for constraint in constraints
            if constraint.applies(entry.choice)
        )

    def _holds(self, constraint: Constraint, entry: Entry) -> bool:
        assert constraint.attribute is not None
        mine = self.model.values(self.model.devices[entry.device], constraint.attribute)
        others = [
            self.model.values(self.model.devices[other.device], constraint.attribute)
            for other in self.entries
            if other.claim == entry.claim and constraint.applies(other.choice)
        ]
        if not mine:
            return False
        if constraint.match:
            return bool(reduce(frozenset.intersection, others, mine))
        return all(mine.isdisjoint(other) for other in others)

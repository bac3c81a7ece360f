"""How much of a pool can be held, and whether holdings are more than that.

A whole device has one holder, a shared one as many as its capacities suffice for, and all held devices of a pool together draw from its
counters. A search never gives away more (`allocator`); this is about what is held by whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from drayman.api.resource import ResourceSlice
from drayman.inventory.device import Amount
from drayman.inventory.ledger import Holding

Counter: TypeAlias = tuple[str, str]
"""Counter set and counter."""
Amounts: TypeAlias = dict[Counter, Amount]


K = TypeVar("K")


class Excess(Struct, Generic[K], frozen=True):
    """Something of a pool of which more is held than there is."""

    device: str
    """Empty if it is a counter."""
    capacity: str
    """Of the device; empty if it is the device itself."""
    counter: Counter | None
    others: tuple[K, ...]
    """The holders of it, besides the one that was asked about: none if that one alone has too much."""


class PoolLimits(Struct, frozen=True):
    """The devices of a pool, and what of it can be shared: nothing, in most."""

    devices: frozenset[str]
    capacities: Mapping[str, Mapping[str, Amount]]
    """Of devices that several claims may hold."""
    counters: Amounts
    consumed: Mapping[str, Amounts]
    """By the devices that consume counters."""

    @classmethod
    def of(cls, slices: Sequence[ResourceSlice]) -> PoolLimits:
        """The limits of a pool, given the slices of its newest generation."""
        devices: set[str] = set()
        counters: Amounts = {}
        capacities: dict[str, dict[str, Amount]] = {}
        consumed: dict[str, Amounts] = {}
        for spec in (slice_.spec for slice_ in slices):
            for counter_set in spec.shared_counters or ():
                for name, counter in counter_set.counters.items():
                    counters[counter_set.name, name] = counter.value.amount
            for device in spec.devices or ():
                devices.add(device.name)
                if device.allow_multiple_allocations:
                    capacities[device.name] = {
                        name: capacity.value.amount for name, capacity in device.capacity.items()
                    }
                if device.consumes_counters:
                    consumed[device.name] = {
                        (one.counter_set, name): counter.value.amount
                        for one in device.consumes_counters
                        for name, counter in one.counters.items()
                    }
        return cls(frozenset(devices), capacities, counters, consumed)

    def excesses(
        self, own: K, held: Mapping[str, Mapping[K, Collection[Holding]]]
    ) -> Iterator[Excess[K]]:
        """What a holder, with others, has too much of. `held`: by device, what each holder has of it."""
        mine = [device for device, holders in held.items() if own in holders]
        for device in mine:
            holders = held[device]
            every = [holding for holdings in holders.values() for holding in holdings]
            exceeded = self._exceeded(device, every)
            if exceeded is not None:
                others = tuple(holder for holder in holders if holder != own)
                yield Excess(device, exceeded, None, others)
        short = self._short_of(mine, (device for device, holders in held.items() if holders))
        if short is not None:
            sharing = dict.fromkeys(
                holder
                for device, holders in held.items()
                if short in self.consumed.get(device, ())
                for holder in holders
                if holder != own
            )
            yield Excess("", "", short, tuple(sharing))

    def _exceeded(self, device: str, holdings: Collection[Holding]) -> str | None:
        """The capacity of a device of which these holdings are too much; empty if it is the device itself, None if all is well."""
        if len(holdings) < 2:
            return None
        shares = {holding.share_id for holding in holdings}
        if None in shares or len(shares) < len(holdings):
            return ""
        for name, limit in self.capacities.get(device, {}).items():
            if sum(holding.consumed.get(name, 0) for holding in holdings) > limit:
                return name
        return None

    def _short_of(self, own: Iterable[str], held: Iterable[str]) -> Counter | None:
        """A counter that some devices draw from and that does not suffice for all that are held; None if there is none."""
        used: Amounts = {counter: 0 for device in own for counter in self.consumed.get(device, ())}
        if not used:
            return None
        for device in held:
            for counter, amount in self.consumed.get(device, {}).items():
                if counter in used:
                    used[counter] += amount
        for counter, amount in used.items():
            if amount > self.counters.get(counter, 0):
                return counter
        return None

"""What the devices of one node are worth to the pods that a cluster usually gets (`mix`), and what a placement takes from that.

A device is worth to a kind of pod what is left of it, if such a pod could have it; nothing if too little is left of it, if too few
devices of the node are like that, or if the node has not enough CPU or memory for one more such pod. Where a pod needs devices of several
sorts, those of one sort are worth no more than there are of the others to go with them. What could be used is limited by what CPU and
memory suffice for: so many devices as pods of the mix take with that much of them, and a bit more, because the lighter ones among them use
up what the heavier ones leave over. The worth of a node is the sum over the kinds, each as often as it was seen.

What pods lose by a placement beyond what it takes itself is what fragmentation means here: half a GPU that nothing in the mix can use,
eight GPUs of a node broken into for one of them, CPU that the free GPUs of a node will need. The measure extends that of "Beware of
Fragmentation" (Weng et al., USENIX ATC '23), which knows no limit by CPU and memory.

Numbers are integers, so equal nodes are exactly equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Plan
from drayman.api.resource import DeviceClass
from drayman.bounded import Bounded
from drayman.inventory.bitsets import first, positions
from drayman.inventory.counters import exceeds
from drayman.inventory.device import Amount
from drayman.inventory.hardware import Charges, NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.inventory.usage import Usage

DEVICE: Final = 1_000_000
"""A whole device."""
# Pods with less CPU per device than the mean come too, and use what is left when it has run out for the mean.
_MORE: Final = 5
_OF: Final = 4
_MOST_KEPT: Final = 16_384

Taken: TypeAlias = tuple[tuple[int, tuple[Amount, ...] | None], ...]
"""By position, what an allocation takes of a device: amounts of its capacities, or all of it."""
FindClass: TypeAlias = Callable[[str], DeviceClass | None]


def taken_of(hardware: NodeHardware, plan: Plan) -> Taken:
    """What a plan takes of the devices of a hardware."""
    found: list[tuple[int, tuple[Amount, ...] | None]] = []
    for item in plan.claims:
        for result in item.allocation.devices.results:
            position = hardware.position.get(DeviceId.of(result))
            if position is None or result.admin_access:
                continue
            if result.share_id is None:
                found.append((position, None))
                continue
            used = result.consumed_capacity
            capacities = hardware.capacity_kinds[hardware.capacity_kind[position]]
            amounts = [used[c.name].amount if c.name in used else 0 for c in capacities]
            found.append((position, tuple(amounts)))
    return tuple(found)


class DeviceWish(Struct, frozen=True):
    """Devices that a pod asks for in one request."""

    device_class: str
    selectors: tuple[str, ...]
    number: int
    amounts: tuple[tuple[str, Amount], ...]

    def expressions(self, find_class: FindClass) -> tuple[str, ...] | None:
        """All selectors, those of the class first; None if there is no such class."""
        device_class = find_class(self.device_class)
        if device_class is None:
            return None
        of_class = [s.cel.expression for s in device_class.spec.selectors if s.cel is not None]
        return (*of_class, *self.selectors)


class PodKind(Struct, frozen=True):
    """What pods of one kind need of a node."""

    cpu: int
    memory: int
    wishes: tuple[DeviceWish, ...]


class _Wish(Struct, frozen=True, eq=False):
    """A wish on one hardware."""

    devices: int
    number: int
    charges: Charges


class _Alike(Struct, frozen=True, eq=False):
    """Kinds of pods that want the same devices."""

    wishes: tuple[int, ...]
    members: tuple[tuple[int, int, int], ...]
    """CPU, memory and how often."""
    cpu: int
    """The most that one of them needs."""
    memory: int
    count: int


_Devices: TypeAlias = dict[tuple[int, tuple[Amount, ...]], int]
"""How many devices are free, by their sort and what is left of them."""


class Loss(Struct, frozen=True, order=True):
    """What a placement does to a node. Less is better."""

    worth: int
    """By how much the node is worth less afterwards."""
    free: int
    """What is left of its devices: a node that is used already comes before one that is still whole."""


NO_LOSS: Final = Loss(0, 0)


class Outlook:
    """The worth of nodes with one hardware."""

    def __init__(
        self,
        hardware: NodeHardware,
        kinds: Sequence[tuple[PodKind, int]],
        find_class: FindClass,
    ) -> None:
        self._hardware = hardware
        self._wishes: list[_Wish] = []
        self._alike: list[_Alike] = []
        self._cpu = self._memory = self._amount = 0  # of all pods of the mix that it can serve
        self._gather(kinds, find_class)
        self._sorts = self._sorted()
        self._vectors: Bounded[tuple[int, tuple[Amount, ...]], tuple[int, ...]] = Bounded(
            _MOST_KEPT
        )
        self._worths: Bounded[Hashable, int] = Bounded(_MOST_KEPT)
        self._losses: Bounded[Hashable, Loss] = Bounded(_MOST_KEPT)

    def loss(
        self, room: tuple[int, int], asked: tuple[int, int], usage: Usage, usable: int, taken: Taken
    ) -> Loss:
        """What a pod costs the others that asks for so much CPU and memory of what is free, and takes these of the usable devices."""
        if not self._alike:
            return NO_LOSS
        key = (room, asked, usage.number, usable, taken)
        known = self._losses.get(key)
        if known is None:
            left = (room[0] - asked[0], room[1] - asked[1])
            before = (room, usage.number, usable)
            worth = self._worths.get(before)
            free = usable & ~self._gone(usage)
            if worth is None:
                worth = self._worths[before] = self._worth(room, self._devices(usage, free))
            after = self._after(usage, free, taken)
            known = Loss(worth - self._worth(left, after), self._free(after))
            self._losses[key] = known
        return known

    # What the mix wants of this hardware.

    def _gather(self, kinds: Sequence[tuple[PodKind, int]], find_class: FindClass) -> None:
        known: dict[DeviceWish, int | None] = {}
        members: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
        for kind, count in kinds:
            numbers: list[int] = []
            for wish in kind.wishes:
                if wish not in known:
                    known[wish] = self._add(wish, find_class)
                number = known[wish]
                if number is None:
                    break
                numbers.append(number)
            else:
                members.setdefault(tuple(numbers), []).append((kind.cpu, kind.memory, count))
                self._cpu += count * kind.cpu
                self._memory += count * kind.memory
                self._amount += count * sum(self._amount_of(self._wishes[n]) for n in numbers)
        for wanted, alike in members.items():
            self._alike.append(
                _Alike(
                    wanted,
                    tuple(alike),
                    max(cpu for cpu, _, _ in alike),
                    max(memory for _, memory, _ in alike),
                    sum(count for _, _, count in alike),
                )
            )

    def _add(self, wish: DeviceWish, find_class: FindClass) -> int | None:
        """The number of a wish; None if the hardware can never serve it."""
        expressions = wish.expressions(find_class)
        if expressions is None:
            return None
        hardware = self._hardware
        charges = hardware.charges(wish.amounts)
        devices, _ = hardware.select(expressions)
        for kind, of_kind in enumerate(hardware.of_capacity_kind):
            if exceeds(charges[kind], hardware.capacity_limits[kind]):
                devices &= ~of_kind
        if devices.bit_count() < wish.number:
            return None
        self._wishes.append(_Wish(devices, wish.number, charges))
        return len(self._wishes) - 1

    def _amount_of(self, wish: _Wish) -> int:
        """How much of devices a wish takes."""
        position = first(wish.devices)
        if not self._hardware.shareable >> position & 1:
            return wish.number * DEVICE
        kind = self._hardware.capacity_kind[position]
        limits, charge = self._hardware.capacity_limits[kind], wish.charges[kind] or ()
        parts = [used * DEVICE // all_ for used, all_ in zip(charge, limits, strict=True) if all_]
        return wish.number * int(max(parts, default=0))

    def _sorted(self) -> list[tuple[int, int]]:
        """Devices that all wishes treat alike, with the kind of their capacities."""
        hardware = self._hardware
        found: dict[Hashable, int] = {}
        for position in positions(hardware.everything):
            wanted = tuple([wish.devices >> position & 1 for wish in self._wishes])
            if any(wanted):
                shareable = hardware.shareable >> position & 1
                key = (hardware.capacity_kind[position], shareable, wanted)
                found[key] = found.get(key, 0) | 1 << position
        return [(devices, hardware.capacity_kind[first(devices)]) for devices in found.values()]

    # What is free.

    def _gone(self, usage: Usage) -> int:
        return usage.in_use | usage.overcommitted | usage.counter_blocked & ~usage.paid

    def _devices(self, usage: Usage, free: int) -> _Devices:
        found: _Devices = {}
        for kind, left, devices in usage.capacity_groups:
            devices &= free
            for sort, (members, kind_of_sort) in enumerate(self._sorts) if devices else ():
                if kind_of_sort == kind and members & devices:
                    found[sort, left] = (members & devices).bit_count()
        return found

    def _after(self, usage: Usage, free: int, taken: Taken) -> _Devices:
        """What is free once these devices are taken as well."""
        changed: dict[int, tuple[Amount, ...]] = {}
        for position, amounts in taken:
            if not free >> position & 1:
                continue
            free &= ~self._blocked_by(usage, position)
            if amounts is None:
                free &= ~(1 << position)
            else:
                left = changed.get(position) or usage.remaining(position)
                changed[position] = tuple([a - b for a, b in zip(left, amounts, strict=True)])
        found = self._devices(usage, free & ~sum(1 << position for position in changed))
        for position, left in changed.items():
            sort = self._sort_of(position)
            if sort is not None and free >> position & 1:
                found[sort, left] = found.get((sort, left), 0) + 1
        return found

    def _sort_of(self, position: int) -> int | None:
        return next((n for n, (each, _) in enumerate(self._sorts) if each >> position & 1), None)

    def _blocked_by(self, usage: Usage, position: int) -> int:
        """Other devices that lack counters once this one is given out."""
        blocked = 0
        if not usage.paid >> position & 1:
            for index, amounts in self._hardware.consumption[position]:
                left = zip(usage.counters[index], amounts, strict=True)
                after = tuple([have - used for have, used in left])
                blocked |= self._hardware.counter_tables.blocked_by(index, after)
        return blocked & ~(1 << position)

    # What it is worth.

    def _worth(self, room: tuple[int, int], devices: _Devices) -> int:
        cpu, memory = room
        if not devices or cpu < 0 or memory < 0:
            return 0
        vectors = [(self._vector(key), number) for key, number in devices.items()]
        most = self._limit(cpu, memory)
        usable: list[int | None] = [None] * len(self._wishes)
        worth = 0
        for alike in self._alike:
            parts = []
            for index in alike.wishes:
                part = usable[index]
                if part is None:
                    part = usable[index] = self._usable(index, vectors)
                parts.append(part)
            amount = self._together(alike.wishes, parts)
            if not amount:
                continue
            if cpu >= alike.cpu and memory >= alike.memory:
                count = alike.count
            else:
                count = sum([n for c, m, n in alike.members if c <= cpu and m <= memory])
            worth += count * min(amount, most)
        return worth

    def _together(self, wishes: Sequence[int], usable: Sequence[int]) -> int:
        """How much of the devices pods can use that have several wishes: what one of them lacks, the others cannot use."""
        if len(usable) == 1 or not all(usable):
            return usable[0] if all(usable) else 0
        each = [self._amount_of(self._wishes[index]) for index in wishes]
        total = sum(each)
        limits = [part * total // one for part, one in zip(usable, each, strict=True) if one]
        return min(limits, default=0)

    def _usable(self, index: int, vectors: Sequence[tuple[tuple[int, ...], int]]) -> int:
        """How much of the devices a wish can use; nothing if there are not enough of them."""
        total = devices = 0
        for vector, number in vectors:
            part = vector[index]
            if part:
                total += part * number
                devices += number
        return total if devices >= self._wishes[index].number else 0

    def _limit(self, cpu: int, memory: int) -> int:
        """How much of the devices of a node pods of the mix take with so much CPU and memory."""
        limits = [
            there * self._amount * _MORE // (asked * _OF)
            for there, asked in ((cpu, self._cpu), (memory, self._memory))
            if asked
        ]
        return min(limits, default=DEVICE * len(self._hardware.records))

    def _vector(self, key: tuple[int, tuple[Amount, ...]]) -> tuple[int, ...]:
        """By wish, what a device is worth of which so much is left."""
        known = self._vectors.get(key)
        if known is None:
            sort, left = key
            devices, kind = self._sorts[sort]
            known = self._vectors[key] = tuple(
                [
                    self._part(wish.charges[kind], left, kind, devices)
                    if wish.devices & devices
                    else 0
                    for wish in self._wishes
                ]
            )
        return known

    def _part(
        self,
        charge: tuple[Amount, ...] | None,
        left: tuple[Amount, ...],
        kind: int,
        devices: int,
    ) -> int:
        if not devices & self._hardware.shareable:
            return DEVICE
        if charge is None or exceeds(charge, left):
            return 0
        parts = [
            have * DEVICE // all_
            for used, have, all_ in zip(
                charge, left, self._hardware.capacity_limits[kind], strict=True
            )
            if used and all_
        ]
        return int(min(parts, default=DEVICE))

    def _free(self, devices: _Devices) -> int:
        total = 0
        for (sort, left), number in devices.items():
            members, kind = self._sorts[sort]
            limits = self._hardware.capacity_limits[kind]
            part = DEVICE
            if members & self._hardware.shareable:
                parts = zip(left, limits, strict=True)
                part = int(
                    min([have * DEVICE // all_ for have, all_ in parts if all_], default=part)
                )
            total += number * part
        return total

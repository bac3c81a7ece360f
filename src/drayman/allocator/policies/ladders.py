"""Which level of a stated alignment an allocation reaches, and which it can still reach while only a part is placed.

A group of devices reaches a rung that is `one` if all of them are known to be in one place at its level. It reaches any other if each two
kinds of devices in the group are paired: with a devices of one kind and b <= a of the other, every place has at least as many of the
first as of the second, and at most ceil(a / b) times as many. Devices of a single kind have to be in one place. Where NVLink is the level
only GPUs count. A group of fewer than two devices reaches the first rung: there is nothing to align. Devices that a claim of the pod has
already are part of the groups that name them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from drayman.allocator.problem.alignment import Layout, Level
from drayman.allocator.problem.stated import AlignedRequests
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.tree.state import State
from drayman.api.alignment import AlignmentLevel
from drayman.inventory.identity import DeviceId
from drayman.topology.locality import DeviceKind


class _Rung(Struct, frozen=True, eq=False):
    level: Level | None
    """None: any."""
    is_one: bool
    gpus_only: bool


class _Missing(Struct, frozen=True, eq=False):
    """Devices of one request that are still to be placed."""

    number: int
    devices: int
    """Those that it may get."""
    kind: DeviceKind | None
    """None if it may get several kinds."""


class _Group(Struct, frozen=True, eq=False):
    stated: AlignedRequests
    rungs: tuple[_Rung, ...]
    held: tuple[int, ...]
    """Devices that belong to it already."""


class Ladders:
    """The stated alignments of one problem."""

    def __init__(self, tables: Tables, layout: Layout) -> None:
        self._tables = tables
        self._layout = layout
        self._exclusive = tables.view.hardware.everything & ~tables.view.hardware.shareable
        self._groups = [
            _Group(
                stated,
                tuple(self._rung(r.level, r.is_one) for r in stated.ladder.rungs),
                self._positions(stated.held),
            )
            for stated in tables.alignment
        ]
        self._members: dict[tuple[int, str], tuple[int, ...]] = {}
        self._kinds: dict[int, DeviceKind | None] = {}
        # Worse than whatever reaches all that is required, for the first group already.
        self._out_of_reach = tuple(len(group.rungs) for group in self._groups)

    def _rung(self, level: AlignmentLevel, is_one: bool) -> _Rung:
        if level is AlignmentLevel.ANY:
            return _Rung(None, is_one, False)
        return _Rung(self._layout.level(level), is_one, level is AlignmentLevel.NVLINK)

    def _positions(self, devices: Sequence[DeviceId]) -> tuple[int, ...]:
        """Where devices are in search order. Those of other nodes are not there: they cannot be used from here anyway."""
        if not devices:
            return ()
        records = self._tables.view.hardware.records
        return tuple(i for i, record in enumerate(records) if record.id in devices)

    @property
    def colours(self) -> tuple[int, ...]:
        """The devices that are in one place with something that is held: no others are like them."""
        return tuple(
            rung.level.groups[rung.level.of_device[position]]
            for group in self._groups
            for position in group.held
            for rung in group.rungs
            if rung.level is not None and rung.level.of_device[position] >= 0
        )

    @property
    def labels(self) -> tuple[tuple[int, ...], ...]:
        """The devices of each place, level by level: devices in different places are not alike."""
        rungs = [rung for group in self._groups for rung in group.rungs]
        levels = {id(rung.level): rung.level for rung in rungs if rung.level is not None}
        return tuple(level.groups for level in levels.values() if len(level.groups) > 1)

    @property
    def tells_requests_apart(self) -> bool:
        """Whether it matters which of two requests has a device that both could have."""
        alternatives = [request.alternatives[0] for request in self._tables.requests]
        return any(
            one.candidates & other.candidates and self._of(one) != self._of(other)
            for one, other in combinations(alternatives, 2)
        )

    def is_violated(self, rungs: tuple[int, ...]) -> bool:
        """Whether a required level is not reached."""
        return rungs == self._out_of_reach

    def reached(self, placements: Iterable[tuple[Alternative, int]]) -> tuple[int, ...]:
        """By group, the index of the first rung that a whole allocation reaches.

        One beyond the last for all groups if a required level is not reached: the others are not worth comparing then.
        """
        return self._first(self._sorted_out(placements), [[] for _ in self._groups])

    def at_least(
        self,
        placements: Iterable[tuple[Alternative, int]],
        state: State,
        request: int,
        missing: int,
    ) -> tuple[int, ...]:
        """Likewise for the best that an allocation which begins like this can reach, as far as is known."""
        ahead: list[list[_Missing]] = [[] for _ in self._groups]
        for index, each in enumerate(self._tables.requests[request:]):
            alternative = each.alternatives[0]
            number = alternative.number if index else missing
            if number and not alternative.admin:
                lack = self._missing(alternative, number, state)
                for group in self._of(alternative):
                    ahead[group].append(lack)
        return self._first(self._sorted_out(placements), ahead)

    def _missing(self, alternative: Alternative, number: int, state: State) -> _Missing:
        devices = alternative.candidates
        for position in alternative.sequence or ():
            devices |= 1 << position
        return _Missing(number, devices & ~state.taken, self._kind_of(alternative, devices))

    def _kind_of(self, alternative: Alternative, devices: int) -> DeviceKind | None:
        if alternative.request not in self._kinds:
            kinds = [sort for sort, having in self._layout.of_kind.items() if having & devices]
            self._kinds[alternative.request] = kinds[0] if len(kinds) == 1 else None
        return self._kinds[alternative.request]

    def _of(self, alternative: Alternative) -> tuple[int, ...]:
        """The groups that a request belongs to."""
        key = (alternative.claim, alternative.name)
        found = self._members.get(key)
        if found is None:
            found = self._members[key] = tuple(
                index for index, group in enumerate(self._groups) if group.stated.includes(*key)
            )
        return found

    def _sorted_out(self, placements: Iterable[tuple[Alternative, int]]) -> list[list[int]]:
        """By group, the devices that count for it."""
        placed: list[list[int]] = [list(group.held) for group in self._groups]
        for alternative, position in placements:
            if not alternative.admin:
                for group in self._of(alternative):
                    placed[group].append(position)
        return placed

    def _first(
        self, placed: Sequence[Sequence[int]], ahead: Sequence[Sequence[_Missing]]
    ) -> tuple[int, ...]:
        rungs = []
        for group, mine, to_come in zip(self._groups, placed, ahead, strict=True):
            reached = (i for i, r in enumerate(group.rungs) if self._reaches(r, mine, to_come))
            first = next(reached, None)
            if first is None:
                return self._out_of_reach
            rungs.append(first)
        return tuple(rungs)

    def _reaches(self, rung: _Rung, placed: Sequence[int], ahead: Sequence[_Missing]) -> bool:
        """Whether these devices, with those that are to come, may reach a rung. Exact if none are to come."""
        if len(placed) + sum(each.number for each in ahead) < 2 or rung.level is None:
            return True
        places = self._layout.places
        if rung.gpus_only:
            placed = [p for p in placed if places[p].kind is DeviceKind.GPU]
            ahead = [each for each in ahead if each.kind is DeviceKind.GPU]
            if len(placed) + sum(each.number for each in ahead) < 2:
                return True
        of_device = rung.level.of_device
        if any(of_device[position] < 0 for position in placed):
            return False
        kinds = {places[position].kind for position in placed}
        kinds_ahead = {each.kind for each in ahead}
        if not rung.is_one and None in kinds_ahead:
            return True  # what will have to be paired is open
        if rung.is_one or len(kinds | kinds_ahead) == 1:
            return self._can_be_in_one(rung.level, placed, ahead)
        return self._can_be_paired(rung.level, placed, ahead)

    def _can_be_in_one(
        self, level: Level, placed: Sequence[int], ahead: Sequence[_Missing]
    ) -> bool:
        used = {level.of_device[position] for position in placed}
        if len(used) > 1:
            return False
        groups = [level.groups[number] for number in used] or level.groups
        return any(self._have_room(devices, ahead) for devices in groups)

    def _have_room(self, within: int, ahead: Sequence[_Missing]) -> bool:
        """Whether each request, and all of them together if they do not share devices, find enough among these devices."""
        together = total = 0
        for each in ahead:
            found = each.devices & within
            if found.bit_count() < each.number:
                return False
            together |= found
            total += each.number
        return bool(together & ~self._exclusive) or together.bit_count() >= total

    def _can_be_paired(
        self, level: Level, placed: Sequence[int], ahead: Sequence[_Missing]
    ) -> bool:
        counts: dict[DeviceKind, dict[int, int]] = {}
        for position in placed:
            of_kind = counts.setdefault(self._layout.places[position].kind, {})
            number = level.of_device[position]
            of_kind[number] = of_kind.get(number, 0) + 1
        to_come: dict[DeviceKind, list[_Missing]] = {}
        for each in ahead:
            if each.kind is not None:
                to_come.setdefault(each.kind, []).append(each)
        tallies = {
            kind: self._tally(level, counts.get(kind, {}), to_come.get(kind, ()))
            for kind in sorted(counts.keys() | to_come.keys())
        }
        return all(_pair_up(one, other) for one, other in combinations(tallies.values(), 2))

    def _tally(self, level: Level, placed: Mapping[int, int], ahead: Sequence[_Missing]) -> _Tally:
        missing = sum(each.number for each in ahead)
        room: dict[int, int] = {}
        if missing:
            for number, devices in enumerate(level.groups):
                found = sum(
                    min(each.number, (each.devices & devices).bit_count()) for each in ahead
                )
                if found:
                    room[number] = found
        return _Tally(placed, room, sum(placed.values()), missing)


class _Tally(Struct, frozen=True, eq=False):
    """The devices of one kind in a group."""

    placed: Mapping[int, int]
    """By place, how many there are."""
    room: Mapping[int, int]
    """By place, how many more there could be."""
    number: int
    missing: int

    @property
    def total(self) -> int:
        return self.number + self.missing

    def most(self, place: int) -> int:
        """How many there could be at a place."""
        return self.placed.get(place, 0) + self.room.get(place, 0)


def _pair_up(one: _Tally, other: _Tally) -> bool:
    """Whether two kinds may still be paired. Exact if nothing is missing."""
    more, fewer = (one, other) if one.total >= other.total else (other, one)
    each = -(-more.total // fewer.total)
    places = more.placed.keys() | more.room.keys() | fewer.placed.keys() | fewer.room.keys()
    more_needed = fewer_needed = more_possible = fewer_possible = 0
    for place in places:
        here, partners = more.placed.get(place, 0), fewer.placed.get(place, 0)
        partners_needed = max(0, -(-here // each) - partners)
        needed = max(0, partners - here)
        if partners_needed > fewer.room.get(place, 0) or needed > more.room.get(place, 0):
            return False
        fewer_needed += partners_needed
        more_needed += needed
        most = min(more.most(place), each * fewer.most(place))
        more_possible += most
        fewer_possible += min(fewer.most(place), most)
    return (
        fewer_needed <= fewer.missing
        and more_needed <= more.missing
        and more_possible >= more.total
        and fewer_possible >= fewer.total
    )

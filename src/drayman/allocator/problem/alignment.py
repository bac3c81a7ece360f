"""Places of devices, and how well a set of devices is aligned: rules 3 to 5 of `objective`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from drayman.api.alignment import AlignmentLevel
from drayman.inventory.bitsets import bitset
from drayman.inventory.hardware import NodeHardware
from drayman.topology.locality import DeviceKind, kind, place_of

T = TypeVar("T", bound=Hashable)

_MOST_LAYOUTS: Final = 1_024  # kinds of nodes; clusters have tens


class DevicePlace(Struct, frozen=True):
    """Where a device is; -1 stands for unknown."""

    kind: DeviceKind
    root: int
    numa: int
    socket: int = -1
    fabric: int = -1
    """The NVLink group of a GPU, or the equivalent of another vendor."""


class Level(Struct, frozen=True, eq=False):
    """Which devices are together at one level."""

    of_device: tuple[int, ...]
    """By device, the number of the group that it is in; -1 if that is unknown."""
    groups: tuple[int, ...]
    """By number, the devices of the group."""


class Layout:
    """Kinds and places of a node's devices. One for all nodes that have the same devices in the same places."""

    def __init__(self, places: tuple[DevicePlace, ...], exclusive: int) -> None:
        self.places = places
        self.of_kind = self._grouped((place.kind, i) for i, place in enumerate(places))
        # The devices of each root and NUMA node, whatever they are.
        self.roots = self._grouped((p.root, i) for i, p in enumerate(places) if p.root >= 0)
        self.numa = self._grouped((p.numa, i) for i, p in enumerate(places) if p.numa >= 0)
        self.at_root = _union(self.roots.values())
        self.at_numa = _union(self.numa.values())
        # On most boards one fabric joins all GPUs: there is nothing to choose, and nothing to count.
        fabrics = self._grouped((p.fabric, i) for i, p in enumerate(places) if p.fabric >= 0)
        self.fabrics = fabrics if len(fabrics) > 1 else {}
        self.has_places = bool(self.at_root or self.at_numa or fabrics)
        # Per kind and group, the exclusive devices in it.
        self.by_numa = _crossed(self.of_kind.values(), self.numa.values(), exclusive)
        self.by_root = _crossed(self.of_kind.values(), self.roots.values(), exclusive)
        self.by_fabric = _crossed(self.of_kind.values(), self.fabrics.values(), exclusive)
        self._levels: dict[AlignmentLevel, Level] = {}

    def level(self, level: AlignmentLevel) -> Level:
        """Which devices are together at a level that a user can state."""
        found = self._levels.get(level)
        if found is None:
            found = self._levels[level] = self._level(level)
        return found

    def _level(self, level: AlignmentLevel) -> Level:
        numbers: dict[Hashable, int] = {None: -1}
        of_device = []
        for each in self.places:
            label = _label(each, level)
            of_device.append(numbers.setdefault(label, len(numbers) - 1))
        groups = self._grouped((number, i) for i, number in enumerate(of_device) if number >= 0)
        return Level(tuple(of_device), tuple(groups[number] for number in range(len(numbers) - 1)))

    def _grouped(self, labelled: Iterable[tuple[T, int]]) -> dict[T, int]:
        members: dict[T, list[int]] = {}
        for label, position in labelled:
            members.setdefault(label, []).append(position)
        return {label: bitset(each, len(self.places)) for label, each in members.items()}


def layout_of(hardware: NodeHardware) -> Layout:
    """Where the devices of a hardware are. For `NodeHardware.derived`."""
    found = _found(hardware)
    exclusive = hardware.everything & ~hardware.shareable
    return _make(found, exclusive) if hardware.is_vast else _shared(found, exclusive)


_Found: TypeAlias = tuple[tuple[DeviceKind, int, int, int, int], ...]
"""For each device its kind, the number of its root, its NUMA node, its socket and the number of its fabric."""


def _found(hardware: NodeHardware) -> _Found:
    roots: dict[str | None, int] = {None: -1}
    fabrics: dict[str | None, int] = {None: -1}
    found: list[tuple[DeviceKind, int, int, int, int]] = []
    for record in hardware.records:
        driver, device = record.id.driver, record.device
        root, numa, socket, fabric = place_of(driver, device)
        found.append(
            (
                kind(driver, device),
                roots.setdefault(root, len(roots) - 1),
                -1 if numa is None else numa,
                -1 if socket is None else socket,
                fabrics.setdefault(fabric, len(fabrics) - 1),
            )
        )
    return tuple(found)


def _make(found: _Found, exclusive: int) -> Layout:
    numa_of_root: dict[int, int] = {}
    socket_of_numa: dict[int, int] = {}
    for _, root, numa, socket, _ in found:
        if root >= 0 and numa >= 0:
            numa_of_root.setdefault(root, numa)
        if numa >= 0 and socket >= 0:
            socket_of_numa.setdefault(numa, socket)
    places = []
    for sort, root, given, socket, fabric in found:
        numa = numa_of_root.get(root, given)
        if root >= 0 and numa < 0:
            socket = -1  # devices of one root are on one socket, whichever of them name it
        places.append(DevicePlace(sort, root, numa, socket_of_numa.get(numa, socket), fabric))
    return Layout(tuple(places), exclusive)


_shared: Final = lru_cache(maxsize=_MOST_LAYOUTS)(_make)


def _union(sets: Iterable[int]) -> int:
    union = 0
    for devices in sets:
        union |= devices
    return union


def _crossed(ones: Iterable[int], others: Iterable[int], within: int) -> list[int]:
    """The non-empty intersections of `ones` and `others`, within a set."""
    return [common for one in ones for other in others if (common := one & other & within)]


def misalignment(places: Iterable[DevicePlace]) -> tuple[int, int]:
    """`far` and `near` of rule 4, for entries at these places."""
    by_kind: dict[DeviceKind, list[DevicePlace]] = {}
    for place in places:
        by_kind.setdefault(place.kind, []).append(place)
    far = near = 0
    for one, other in combinations(sorted(by_kind), 2):
        more, fewer = sorted((by_kind[one], by_kind[other]), key=len, reverse=True)
        each = -(-len(more) // len(fewer))
        at_root = _served(more, fewer, each, by_root=True)
        at_numa = _served(more, fewer, each, by_root=False)
        near += at_numa - at_root
        far += len(more) - at_numa
    return far, near


def least_misalignment(
    places: Iterable[DevicePlace], remaining: Mapping[DeviceKind, int]
) -> tuple[int, int]:
    """A lower bound of `far` and `near` when so many more of each kind are to come."""
    by_kind: dict[DeviceKind, list[DevicePlace]] = {sort: [] for sort in remaining}
    for place in places:
        by_kind.setdefault(place.kind, []).append(place)
    far = near = 0
    for one, other in combinations(sorted(by_kind), 2):
        total = {s: len(by_kind[s]) + remaining.get(s, 0) for s in (one, other)}
        more, fewer = (one, other) if total[one] >= total[other] else (other, one)
        if not total[fewer]:
            continue
        each = -(-total[more] // total[fewer])
        to_come = (remaining.get(more, 0), remaining.get(fewer, 0))
        at_root, at_numa = (
            min(total[more], _most_served(by_kind[more], by_kind[fewer], each, to_come, by_root))
            for by_root in (True, False)
        )
        far += total[more] - at_numa
        near += max(0, at_numa - at_root)
    return far, near


def _most_served(
    more: Sequence[DevicePlace],
    fewer: Sequence[DevicePlace],
    each: int,
    to_come: tuple[int, int],
    by_root: bool,
) -> int:
    """At most how many are served in the end: those served now, by partners to come, and those to come by present partners."""
    wanting, serving = _counted(more, by_root=by_root), _counted(fewer, by_root=by_root)
    served = spare = 0
    for group, partners in serving.items():
        if group != -1:
            now = min(wanting.get(group, 0), each * partners)
            served += now
            spare += each * partners - now
    more_to_come, fewer_to_come = to_come
    return served + each * fewer_to_come + min(more_to_come, spare)


def _counted(places: Iterable[DevicePlace], *, by_root: bool) -> dict[int, int]:
    count: dict[int, int] = {}
    for place in places:
        group = _group(place, by_root=by_root)
        count[group] = count.get(group, 0) + 1
    return count


def _served(
    more: Sequence[DevicePlace], fewer: Sequence[DevicePlace], each: int, *, by_root: bool
) -> int:
    """How many of one kind have a partner of the other in the same group."""
    wanting, serving = _counted(more, by_root=by_root), _counted(fewer, by_root=by_root)
    return sum(
        min(number, each * serving.get(group, 0))
        for group, number in wanting.items()
        if group != -1
    )


def _label(place: DevicePlace, level: AlignmentLevel) -> Hashable:
    """What devices that are together at a level have in common; None if that is unknown."""
    if level is AlignmentLevel.NVLINK:
        return None if place.fabric < 0 else place.fabric
    if level is AlignmentLevel.SOCKET and place.socket >= 0:
        return place.socket
    # A NUMA node whose socket is not known is still one place, as is a root whose NUMA node is not.
    group = _group(place, by_root=level is AlignmentLevel.PCIE_ROOT)
    return None if group == -1 else (group, "numa")


def _group(place: DevicePlace, *, by_root: bool) -> int:
    if by_root:
        return place.root
    # A root without a known NUMA node is still one place: what meets there need not be counted as far.
    return place.numa if place.numa >= 0 or place.root < 0 else -2 - place.root


def spread_over_fabrics(places: Iterable[DevicePlace]) -> int:
    """`fabrics` of rule 3, on a node with several."""
    of_gpus = [each.fabric for each in places if each.kind is DeviceKind.GPU]
    return len({fabric for fabric in of_gpus if fabric >= 0}) + of_gpus.count(-1)


def spread(places: Iterable[DevicePlace]) -> tuple[int, int]:
    """`numa_nodes` and `roots` of rule 5."""
    numa: set[tuple[DeviceKind, int]] = set()
    roots: set[tuple[DeviceKind, int]] = set()
    unknown_numa = unknown_roots = 0
    for place in places:
        if place.numa < 0:
            unknown_numa += 1
        else:
            numa.add((place.kind, place.numa))
        if place.root < 0:
            unknown_roots += 1
        else:
            roots.add((place.kind, place.root))
    return len(numa) + unknown_numa, len(roots) + unknown_roots

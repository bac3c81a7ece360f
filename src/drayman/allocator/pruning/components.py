"""Partition of the devices of a problem into classes and components. See `symmetry` for their use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from drayman.allocator.problem.tables import Tables
from drayman.inventory.attributes import AttributeIndex
from drayman.inventory.bitsets import positions


class Component(Struct, frozen=True, eq=False):
    """Devices tied together by labels."""

    devices: int
    first: int
    sets: tuple[int, ...]  # counter sets, in order of appearance
    classes: tuple[int, ...]  # devices that are alike within the component
    shape: int  # equal for copies
    shareable: tuple[int, ...]


@dataclass(slots=True)
class Partition:
    components: list[Component] = field(default_factory=list)
    loose: list[int] = field(default_factory=list)  # classes of devices in no component
    class_of: dict[int, int] = field(default_factory=dict)  # by device: the devices like it
    # By device: which class of its component.
    class_index: dict[int, int] = field(default_factory=dict)
    component_of: dict[int, int] = field(default_factory=dict)
    # Ids of attributes that tie devices together.
    tied_attributes: set[int] = field(default_factory=set)


class _LabelKind(Struct, frozen=True, eq=False):
    """A kind of label: the counter sets, the values of one attribute, or places."""

    holders: list[int]  # the devices with each label
    attribute: AttributeIndex | None = None
    is_place: bool = False


class Distinctions(Struct, frozen=True):
    """How an objective distinguishes devices, beyond what decides whether they are available."""

    # Kinds of labels; for each label the devices that have it.
    labels: tuple[tuple[int, ...], ...] = ()
    colours: tuple[int, ...] = ()


def partition_devices(tables: Tables, universe: int, also: Distinctions | None = None) -> Partition:
    """The classes and components of all devices that some request looks at."""
    result = Partition()
    ties = _Ties()
    tied: list[_LabelKind] = []
    colouring = list(_plain_colours(tables, universe))
    kinds = list(_kinds(tables, universe))
    if also is not None:
        colouring += also.colours
        kinds += [_LabelKind(_within(holders, universe), is_place=True) for holders in also.labels]
    for kind in sorted(kinds, key=lambda kind: -len(kind.holders)):
        if _can_tie(kind) and ties.add(kind.holders):
            tied.append(kind)
            if kind.attribute is not None:
                result.tied_attributes.add(id(kind.attribute))
        elif kind.attribute is not None or kind.is_place:
            colouring += kind.holders
        else:
            colouring += _consumption_colours(tables, universe)
    colours = _refine(universe, colouring)
    _Assembler(tables, result, colours, tied).run(universe, ties)
    return result


def _plain_colours(tables: Tables, universe: int) -> Iterator[int]:
    for request in tables.requests:
        for alternative in request.alternatives:
            yield alternative.candidates
            yield alternative.failing
            yield sum(1 << position for position in alternative.sequence or ())
            if alternative.sequence is not None and alternative.error_capable:
                # Which of them is met first decides between failure and error: no two are alike.
                yield from (1 << position for position in alternative.sequence)
    shareable = tables.view.hardware.shareable
    yield shareable
    if shareable & universe:
        for _, _, devices in tables.view.usage.capacity_groups:
            yield devices & shareable


def _kinds(tables: Tables, universe: int) -> Iterator[_LabelKind]:
    hardware = tables.view.hardware
    sets: dict[int, int] = {}
    for position in positions(universe & hardware.consumers):
        for index, _ in hardware.consumption[position]:
            sets[index] = sets.get(index, 0) | 1 << position
    if sets:
        yield _LabelKind([sets[index] for index in sorted(sets)])
    attributes = {
        id(constraint.attribute): constraint.attribute
        for constraint in (*tables.matches, *tables.distincts)
    }
    for attribute in attributes.values():
        yield _LabelKind(_within(attribute.holders, universe), attribute)


def _within(holders: Iterable[int], universe: int) -> list[int]:
    return [having for devices in holders if (having := devices & universe)]


def _can_tie(kind: _LabelKind) -> bool:
    return len(kind.holders) > 1 and (kind.attribute is None or kind.attribute.scalar)


def _consumption_colours(tables: Tables, universe: int) -> Iterable[int]:
    hardware = tables.view.hardware
    alike: dict[Hashable, int] = {}
    for position in positions(universe & hardware.consumers):
        key = hardware.consumption[position]
        alike[key] = alike.get(key, 0) | 1 << position
    return alike.values()


def _refine(universe: int, sets: Iterable[int]) -> dict[int, int]:
    """The colour of each device: devices have the same one if they are in the same sets."""
    blocks = [universe] if universe else []
    for devices in dict.fromkeys(sets):
        if not devices & universe:
            continue
        split = []
        for block in blocks:
            inside = block & devices
            if inside and inside != block:
                split.append(inside)
                split.append(block ^ inside)
            else:
                split.append(block)
        blocks = split
    blocks.sort(key=lambda block: block & -block)
    return {position: i for i, block in enumerate(blocks) for position in positions(block)}


class _Ties:
    """Groups of devices that share a label, directly or through others."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._groups = 0

    def add(self, holders: list[int]) -> bool:
        """Tie devices by another kind of label, unless that would glue most of the groups together."""
        parent = dict(self._parent)
        for devices in holders:
            members = list(positions(devices))
            root = _root(parent, members[0])
            for member in members[1:]:
                parent[_root(parent, member)] = root
        groups = sum(1 for device, up in parent.items() if device == up)
        if self._groups and groups * 2 < self._groups:
            return False
        self._parent, self._groups = parent, groups
        return True

    def groups(self) -> list[int]:
        found: dict[int, int] = {}
        for device in self._parent:
            root = _root(self._parent, device)
            found[root] = found.get(root, 0) | 1 << device
        return sorted(found.values(), key=lambda devices: devices & -devices)


def _root(parent: dict[int, int], device: int) -> int:
    top = parent.setdefault(device, device)
    while parent[top] != top:
        top = parent[top]
    while parent[device] != top:
        parent[device], device = top, parent[device]
    return top


class _Assembler:
    """Puts classes and components together from colours and ties."""

    def __init__(
        self, tables: Tables, result: Partition, colours: dict[int, int], tied: list[_LabelKind]
    ) -> None:
        self._hardware = tables.view.hardware
        self._result = result
        self._colours = colours
        self._shapes: dict[Hashable, int] = {}
        self._label_of: list[dict[int, int]] = [
            {p: label for label, devices in enumerate(kind.holders) for p in positions(devices)}
            for kind in tied
            if kind.attribute is not None or kind.is_place
        ]

    def run(self, universe: int, ties: _Ties) -> None:
        loose = universe
        for devices in ties.groups():
            self._add_component(devices)
            loose &= ~devices
        classes: dict[int, int] = {}
        for position in positions(loose):
            colour = self._colours[position]
            classes[colour] = classes.get(colour, 0) | 1 << position
        for devices in classes.values():
            self._result.loose.append(devices)
            for position in positions(devices):
                self._result.class_of[position] = devices

    def _add_component(self, devices: int) -> None:
        local_labels: list[dict[int, int]] = [{} for _ in self._label_of]
        local_sets: dict[int, int] = {}
        entries: list[tuple[int, Hashable]] = []
        for position in positions(devices):
            labels = tuple(
                [
                    local.setdefault(labels[position], len(local)) if position in labels else -1
                    for labels, local in zip(self._label_of, local_labels, strict=True)
                ]
            )
            consumed = tuple(
                [
                    (local_sets.setdefault(index, len(local_sets)), amounts)
                    for index, amounts in self._hardware.consumption[position]
                ]
            )
            entries.append((position, (self._colours[position], labels, consumed)))
        classes: dict[Hashable, int] = {}
        for position, entry in entries:
            classes[entry] = classes.get(entry, 0) | 1 << position
        shape = tuple([entry for _, entry in entries])
        masks = tuple(classes.values())
        order = {entry: index for index, entry in enumerate(classes)}
        for position, entry in entries:
            self._result.class_of[position] = classes[entry]
            self._result.class_index[position] = order[entry]
            self._result.component_of[position] = len(self._result.components)
        self._result.components.append(
            Component(
                devices=devices,
                first=entries[0][0],
                sets=tuple(local_sets),
                classes=masks,
                shape=self._shapes.setdefault(shape, len(self._shapes)),
                shareable=tuple(positions(devices & self._hardware.shareable)),
            )
        )

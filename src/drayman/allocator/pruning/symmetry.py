"""Which devices are indistinguishable, and which groups of devices are copies of each other.

Two devices have the same *colour* if they are candidates of the same requests and equal in everything else the search looks at.
Devices tied together by a counter set or by the value of a compared attribute form a *component*: the partitions of a GPU, the
devices of a PCIe root. Components of the same shape are copies, device by device, and interchangeable as long as the same has been
taken from them. The search tries one of each; what failed once fails again in any copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from drayman.allocator.problem.tables import Alternative, Tables, suffix_union
from drayman.allocator.pruning.components import Distinctions, partition_devices
from drayman.allocator.tree.state import State, Transitions
from drayman.inventory.bitsets import positions


class Symmetry:
    """The symmetries of one problem."""

    def __init__(
        self, tables: Tables, transitions: Transitions, also: Distinctions | None = None
    ) -> None:
        """`also`: what an objective sees; what is done with it then matters to the end, whatever may still use it."""
        self._tables = tables
        self._transitions = transitions
        self._hardware = tables.view.hardware
        reaches = [reach(request.alternatives) for request in tables.requests]
        self._reach = suffix_union(reaches)
        if also is not None:
            self._reach = (self._reach[0],) * len(self._reach)
        self._has_admin = tables.has_admin
        self._compares = bool(tables.matches or tables.distincts)
        partition = partition_devices(tables, self._reach[0], also)
        self._class_of = partition.class_of
        self._component_of = partition.component_of
        self._class_index = partition.class_index
        self._components = partition.components
        self._copies: dict[int, list[int]] = {}  # by shape, the components that have it
        for index, component in enumerate(self._components):
            self._copies.setdefault(component.shape, []).append(index)
        self._loose = partition.loose
        self._tied = partition.tied_attributes
        self._signatures: dict[Hashable, int] = {}
        self._canonical: dict[Hashable, int] = {}

    def equivalent(
        self,
        alternative: Alternative,
        position: int,
        start: int,
        state: State,
        *,
        unmovable: int = 0,
    ) -> int:
        """The devices that fail for the request where this one failed.

        `unmovable`: devices that stay what they are; components with one of them have no copies.
        """
        devices = self._class_of.get(position, 0)
        index = self._component_of.get(position)
        if index is not None:
            component = self._components[index]
            # Only components that lie wholly ahead can be swapped: the request takes devices in order.
            if component.first >= start and not component.devices & unmovable:
                signature = self._signature(index, alternative.request, state)
                which = self._class_index[position]
                for other in self._copies[component.shape]:
                    candidate = self._components[other]
                    if (
                        candidate.first >= start
                        and other != index
                        and not candidate.devices & unmovable
                        and self._signature(other, alternative.request, state) == signature
                    ):
                        devices |= candidate.classes[which]
        return self._alike_now(devices, position, state)

    def _alike_now(self, devices: int, position: int, state: State) -> int:
        """Of devices that are alike, those that have also been used alike."""
        if self._has_admin:
            for used in (state.taken, state.mine):
                devices &= used if used >> position & 1 else ~used
        if self._hardware.shareable >> position & 1:
            devices &= state.paid if state.paid >> position & 1 else ~state.paid
            left = self._transitions.left(state, position)
            for other in positions(devices):
                if self._transitions.left(state, other) != left:
                    devices ^= 1 << other
        return devices

    def key(self, request: int, state: State) -> Hashable:
        """What the requests from here on can see of a state; equal keys have equal futures, up to names."""
        ahead = self._reach[request]
        loose = tuple(
            self._usage(devices & ahead, state) for devices in self._loose if devices & ahead
        )
        components = sorted(
            self._signature(index, request, state)
            for index, component in enumerate(self._components)
            if component.devices & ahead
        )
        return (request, state.entries, loose, tuple(components), self._coloured(request, state))

    def _usage(self, devices: int, state: State) -> Hashable:
        taken = (state.taken & devices).bit_count()
        mine = (state.mine & devices).bit_count() if self._has_admin else 0
        shared = devices & self._hardware.shareable
        if not shared:
            return taken, mine
        paid = (state.paid & devices).bit_count()
        return taken, mine, paid, tuple(sorted(self._lefts(positions(shared), state)))

    def _lefts(self, devices: Iterable[int], state: State) -> Iterator[tuple[object, ...]]:
        return (self._transitions.left(state, position) for position in devices)

    def _active(self, request: int, state: State) -> tuple[list[int], list[int]]:
        """The constraints of the claim at hand that have a device already."""
        if not self._compares:
            return [], []
        current = self._tables.requests[request]
        matches = [
            index
            for index, constraint in enumerate(self._tables.matches)
            if constraint.claim == current.claim and state.anchored >> index & 1
        ]
        distincts = [
            index
            for index, constraint in enumerate(self._tables.distincts)
            if constraint.claim == current.claim and state.distinct[index]
        ]
        return matches, distincts

    def _coloured(self, request: int, state: State) -> Hashable:
        """The state of constraints on attributes that are part of a device's colour."""
        matches, distincts = self._active(request, state)
        return (
            tuple([(i, state.values[i]) for i in matches if not self._is_tied_match(i)]),
            tuple([(i, state.distinct[i]) for i in distincts if not self._is_tied_distinct(i)]),
        )

    def _is_tied_match(self, index: int) -> bool:
        return id(self._tables.matches[index].attribute) in self._tied

    def _is_tied_distinct(self, index: int) -> bool:
        return id(self._tables.distincts[index].attribute) in self._tied

    def _signature(self, index: int, request: int, state: State) -> int:
        """A number for what has been done to a component; copies with equal numbers can be swapped."""
        component = self._components[index]
        devices = component.devices & self._reach[request]
        matches, distincts = self._active(request, state)
        allowed = [
            self._tables.matches[i].attribute.allowed(state.values[i]) & devices
            for i in matches
            if self._is_tied_match(i)
        ]
        blocked = [state.distinct[i] & devices for i in distincts if self._is_tied_distinct(i)]
        counters = tuple([self._transitions.counters_left(state, i) for i in component.sets])
        lefts = tuple(self._lefts(component.shareable, state)) if component.shareable else ()
        key = (
            index,
            devices,
            state.taken & devices,
            state.mine & devices if self._has_admin else 0,
            state.paid & devices,
            counters,
            lefts,
            tuple(allowed),
            tuple(blocked),
        )
        found = self._signatures.get(key)
        if found is None:
            canonical = (
                component.shape,
                counters,
                tuple(
                    (
                        self._usage(alike & devices, state),
                        (alike & devices).bit_count(),
                        tuple([bool(alike & a) for a in allowed]),
                        tuple([bool(alike & b) for b in blocked]),
                    )
                    for alike in component.classes
                ),
            )
            found = self._canonical.setdefault(canonical, len(self._canonical))
            self._signatures[key] = found
        return found


def reach(alternatives: Iterable[Alternative]) -> int:
    """Every device that some alternative looks at."""
    devices = 0
    for alternative in alternatives:
        devices |= alternative.candidates | alternative.failing
        for position in alternative.sequence or ():
            devices |= 1 << position
    return devices

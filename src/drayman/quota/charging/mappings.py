"""`deviceClassMappings`: under which names devices are charged, by their class, and what measures them.

A mapping without sources counts devices. One with sources measures them, by a counter that they consume or a capacity that they have.
Mappings are a value that can be swapped while workloads wait; `difference` says what such a change concerns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from drayman.api.resource import DeviceSelector
from drayman.api.struct import ApiStruct


class Measure(ApiStruct):
    """Something that devices of a driver have an amount of, and which of them are measured by it."""

    name: str = ""
    driver: str = ""
    device_selector: DeviceSelector | None = None

    @property
    def expressions(self) -> tuple[str, ...]:
        """The selector, as a sequence that other selectors can be added to."""
        selector = self.device_selector
        return () if selector is None or selector.cel is None else (selector.cel.expression,)


class CounterSource(Measure):
    """Devices are measured by what they consume of a counter, such as the memory of the GPU that they are a part of."""


class CapacitySource(Measure):
    """Devices are measured by what a request takes of a capacity."""


Source: TypeAlias = CounterSource | CapacitySource


class MappingSource(ApiStruct):
    """One of the two."""

    counter: CounterSource | None = None
    capacity: CapacitySource | None = None


class DeviceClassMapping(ApiStruct, merge_key=("name",)):
    """Devices of some classes are charged under one name."""

    name: str = ""
    device_class_names: tuple[str, ...] = ()
    sources: tuple[MappingSource, ...] = ()

    @property
    def measures(self) -> tuple[Source, ...]:
        """What measures the devices, in order; empty if they are counted."""
        given = (source.counter or source.capacity for source in self.sources)
        return tuple(measure for measure in given if measure is not None)


class Difference(Struct, frozen=True):
    """What a change of mappings concerns."""

    classes: frozenset[str]
    """Classes whose devices are charged in another way, or no longer."""
    drivers: frozenset[str]
    """Drivers whose devices are measured now and were not, or the other way round."""

    def __bool__(self) -> bool:
        return bool(self.classes or self.drivers)


class DeviceClassMappings:
    """Mappings that have been checked, by class. A class has several only if different counters measure its devices."""

    __slots__ = ("_by_class", "drivers", "entries")

    def __init__(self, entries: Iterable[DeviceClassMapping] = ()) -> None:
        self.entries = tuple(entries)
        self._by_class: dict[str, tuple[DeviceClassMapping, ...]] = {}
        for entry in self.entries:
            for name in entry.device_class_names:
                self._by_class[name] = (*self._by_class.get(name, ()), entry)
        self.drivers = frozenset(m.driver for entry in self.entries for m in entry.measures)
        """The drivers whose devices are measured."""

    def of_class(self, name: str) -> tuple[DeviceClassMapping, ...]:
        """What devices of a class are charged under; empty for a class that has no mapping."""
        return self._by_class.get(name, ())

    def difference(self, after: DeviceClassMappings) -> Difference:
        """What is concerned when these mappings are replaced by others."""
        names = self._by_class.keys() | after._by_class.keys()
        return Difference(
            frozenset(name for name in names if self._charging(name) != after._charging(name)),
            self.drivers ^ after.drivers,
        )

    def _charging(self, name: str) -> set[tuple[str, tuple[MappingSource, ...]]]:
        """How devices of a class are charged, whatever other classes are charged in the same way."""
        return {(entry.name, entry.sources) for entry in self.of_class(name)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceClassMappings) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(tuple(entry.name for entry in self.entries))

    def __repr__(self) -> str:
        return f"DeviceClassMappings({self.entries!r})"

"""Which mappings make sense: the rules of `resources.deviceClassMappings` in Kueue's Configuration, with the field that breaks one.

Classes, drivers, counters and capacities need not exist. They come and go; what is missing is said when something is to be priced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.errors import ApiError, DecodeError
from drayman.api.formats import SUBDOMAIN_LENGTH, byte_length
from drayman.api.struct import ApiStruct, Json
from drayman.api.validation import FieldError
from drayman.api.validation.containers import Errors, check_list, check_set
from drayman.api.validation.field_errors import ErrorKind, invalid, required, too_long
from drayman.api.validation.names import (
    device_class_name,
    driver_name,
    label_key,
    qualified_name,
    required_dns_label,
)
from drayman.cel.device import check_selector
from drayman.quota.charging.mappings import (
    CapacitySource,
    CounterSource,
    DeviceClassMapping,
    DeviceClassMappings,
    MappingSource,
    Measure,
)
from drayman.quota.charging.rules import Gates

MOST_MAPPINGS: Final = 16
MOST_CLASSES: Final = 8
FIELD: Final = "resources.deviceClassMappings"


class MappingsError(ApiError):
    """Mappings that cannot be used. `errors` has every field that is wrong."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


class _Resources(ApiStruct):
    device_class_mappings: tuple[DeviceClassMapping, ...] = ()


class _Configuration(ApiStruct):
    resources: _Resources = _Resources()


def read_mappings(
    configuration: Json, gates: Gates | None = None, *, strict: bool = False
) -> DeviceClassMappings:
    """The mappings in Kueue's Configuration, given as decoded JSON. Raises MappingsError, also for values of the wrong type.

    Sources whose feature gate is off do not count, so that their devices are counted. With `strict` they are an error, as they are
    when Kueue starts.
    """
    gates = gates or Gates()
    try:
        found = codec.convert(_Configuration, configuration or {})
    except DecodeError as error:
        raise MappingsError([invalid(error.path, None, error.message)]) from error
    entries = found.resources.device_class_mappings
    errors = list(validate_mappings(entries, gates if strict else Gates()))
    if errors:
        raise MappingsError(errors)
    return DeviceClassMappings(_with_gates(entry, gates) for entry in entries)


def _with_gates(entry: DeviceClassMapping, gates: Gates) -> DeviceClassMapping:
    if not entry.sources or (gates.counters and gates.capacity):
        return entry
    kept = tuple(
        source
        for source in entry.sources
        if (source.counter is not None and gates.counters)
        or (source.capacity is not None and gates.capacity)
    )
    return replace(entry, sources=kept)


def validate_mappings(entries: Sequence[DeviceClassMapping], gates: Gates) -> Errors:
    """What is wrong with mappings."""

    def check(entry: DeviceClassMapping, path: str) -> Errors:
        return _mapping(entry, path, gates)

    yield from check_set(entries, MOST_MAPPINGS, check, lambda entry: entry.name, FIELD)
    if len(entries) <= MOST_MAPPINGS:
        yield from _repeated_classes(entries)


def _mapping(entry: DeviceClassMapping, path: str, gates: Gates) -> Errors:
    yield from _resource_name(entry.name, f"{path}.name")
    classes = f"{path}.deviceClassNames"
    if not entry.device_class_names:
        yield required(classes, "at least one class is needed")
    yield from check_set(entry.device_class_names, MOST_CLASSES, device_class_name, str, classes)

    def check(source: MappingSource, place: str) -> Errors:
        return _source(source, place, gates)

    sources = f"{path}.sources"
    yield from check_list(entry.sources, float("inf"), check, sources)
    kinds = {source.counter is None for source in entry.sources}
    if len(kinds) > 1 and all((s.counter is None) != (s.capacity is None) for s in entry.sources):
        yield invalid(sources, None, "counters and capacities cannot be mixed in one mapping")


def _resource_name(name: str, path: str) -> Errors:
    if not name:
        yield required(path, "the name of the resource that devices are charged under")
    elif byte_length(name) > SUBDOMAIN_LENGTH:
        yield too_long(path, SUBDOMAIN_LENGTH)
    else:
        yield from label_key(name, path)


def _source(source: MappingSource, path: str, gates: Gates) -> Errors:
    if (source.counter is None) == (source.capacity is None):
        yield invalid(path, None, "exactly one of `counter`, `capacity` is required")
        return
    if isinstance(source.counter, CounterSource):
        place = f"{path}.counter"
        yield from _gate(gates.counters, place, "KueueDRAIntegrationPartitionableDevices")
        yield from required_dns_label(source.counter.name, f"{place}.name")
        yield from _measure(source.counter, place)
    if isinstance(source.capacity, CapacitySource):
        place = f"{path}.capacity"
        yield from _gate(gates.capacity, place, "KueueDRAIntegrationConsumableCapacity")
        if source.capacity.name:
            yield from qualified_name(source.capacity.name, f"{place}.name")
        else:
            yield required(f"{place}.name")
        yield from _measure(source.capacity, place)


def _gate(is_on: bool, path: str, name: str) -> Errors:
    if not is_on:
        yield FieldError(ErrorKind.FORBIDDEN, path, None, f"the feature gate {name} is off")


def _measure(measure: Measure, path: str) -> Errors:
    yield from driver_name(measure.driver, f"{path}.driver")
    if measure.driver != measure.driver.lower():
        yield invalid(f"{path}.driver", measure.driver, "must be lower case")
    place = f"{path}.deviceSelector.cel.expression"
    if not measure.expressions or not measure.expressions[0]:
        yield required(place, "`true` selects all devices of the driver")
        return
    problem = check_selector(measure.expressions[0], stored=False)
    if problem is not None:
        yield invalid(place, measure.expressions[0], problem.detail)


def _repeated_classes(entries: Sequence[DeviceClassMapping]) -> Errors:
    """A class is charged once, or once for each of several counters."""
    users: dict[str, list[DeviceClassMapping]] = {}
    for index, entry in enumerate(entries):
        for position, name in enumerate(dict.fromkeys(entry.device_class_names)):
            before = users.setdefault(name, [])
            clash = next((each for each in before if not _are_apart(each, entry)), None)
            if clash is not None:
                path = f"{FIELD}[{index}].deviceClassNames[{position}]"
                detail = (
                    f"the class is charged under {clash.name} already;"
                    " only mappings with different counters may share a class"
                )
                yield invalid(path, name, detail)
            before.append(entry)


def _are_apart(one: DeviceClassMapping, other: DeviceClassMapping) -> bool:
    """Whether both measure devices, by different counters. The first source of each stands for its mapping."""
    if not (one.sources and other.sources):
        return False
    first, second = one.sources[0].counter, other.sources[0].counter
    return first is not None and second is not None and first.name != second.name

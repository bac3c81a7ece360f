"""One device of a ResourceSlice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import structs

from drayman.api import formats, semver
from drayman.api.resource import (
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableResourceMapping,
)
from drayman.api.struct import Json
from drayman.api.validation.containers import (
    Errors,
    check_list,
    check_map,
    check_set,
    check_unique,
    nothing_to_check,
)
from drayman.api.validation.field_errors import (
    invalid,
    not_found,
    required,
    too_long,
)
from drayman.api.validation.names import (
    QUALIFIED_LENGTH,
    dns_label,
    dns_subdomain,
    label_key,
    qualified_name,
    required_dns_label,
)
from drayman.api.validation.node_selectors import check_node_selector
from drayman.api.validation.request_policy import check_exclusive_capacity, check_shared_capacity
from drayman.api.validation.taints import check_taint

MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
MAX_ATTRIBUTE_VALUES: Final = 48
MAX_TAINTS: Final = 16
MAX_COUNTER_CONSUMPTIONS: Final = 2
MAX_COUNTERS: Final = 32
MAX_BINDING_CONDITIONS: Final = 4
ATTRIBUTE_VALUE_LENGTH: Final = 64

ONE_NODE_SELECTION: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when"
    " `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
NO_NODE_SELECTION: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set"
    " to true in the ResourceSlice spec"
)


def check_device(device: Device, old: Device | None, path: str, *, selects_nodes: bool) -> Errors:
    """A device; `old` is the one of that name before an update, whose taints are not questioned again."""
    yield from dns_label(device.name, f"{path}.name")
    yield from _sizes(device, path)
    yield from check_map(
        device.attributes,
        check_attribute,
        f"{path}.attributes",
        check_key=qualified_name,
        longest_key=QUALIFIED_LENGTH,
    )
    yield from _capacities(device, f"{path}.capacity")
    if old is None or old.taints != device.taints:
        yield from check_list(device.taints, MAX_TAINTS, check_taint, f"{path}.taints")
    yield from check_set(
        device.consumes_counters,
        MAX_COUNTER_CONSUMPTIONS,
        _consumption,
        lambda consumption: consumption.counter_set,
        f"{path}.consumesCounters",
    )
    yield from _node_selection(device, path, allowed=selects_nodes)
    yield from check_binding_conditions(
        device.binding_conditions or (), device.binding_failure_conditions or (), path
    )
    yield from _node_allocatable(device, f"{path}.nodeAllocatableResourceMappings")


def _sizes(device: Device, path: str) -> Errors:
    entries = len(device.attributes) + len(device.capacity)
    if entries > MAX_ATTRIBUTES_AND_CAPACITIES:
        detail = (
            "the total number of attributes and capacities must not exceed"
            f" {MAX_ATTRIBUTES_AND_CAPACITIES}"
        )
        yield invalid(path, entries, detail)
    values = sum(map(_value_count, device.attributes.values()))
    if values > MAX_ATTRIBUTE_VALUES:
        detail = f"the total number of attribute values must not exceed {MAX_ATTRIBUTE_VALUES}"
        yield invalid(path, values, detail)


def _value_count(attribute: DeviceAttribute) -> int:
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    return sum(len(values) for values in lists if values) or 1


def check_attribute(attribute: DeviceAttribute, path: str) -> Errors:
    """Exactly one value, of one of the eight types."""
    set_fields = 0
    for wire, value in _by_wire_name(attribute):
        if value is None:
            continue
        set_fields += 1
        if value == ():
            yield invalid(f"{path}.{wire}", value, "must not be empty if specified")
    if attribute.string is not None:
        yield from _string(attribute.string, f"{path}.string")
    if attribute.version is not None:
        yield from _version(attribute.version, f"{path}.version")
    for index, text in enumerate(attribute.strings or ()):
        yield from _string(text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.versions or ()):
        yield from _version(text, f"{path}.versions[{index}]")
    if set_fields != 1:
        shown = _upstream_form(attribute) if set_fields else ""
        yield invalid(path, shown, "exactly one value must be specified")


def _upstream_form(attribute: DeviceAttribute) -> dict[str, object]:
    """An attribute with the names that upstream shows, which are not those on the wire."""
    return {
        f"{wire.removesuffix('s').capitalize()}Value{'s' if wire.endswith('s') else ''}": value
        for wire, value in _by_wire_name(attribute)
    }


def _by_wire_name(attribute: DeviceAttribute) -> Iterator[tuple[str, Json]]:
    names = DeviceAttribute.__struct_encode_fields__
    return zip(names, structs.astuple(attribute), strict=True)


def _string(text: str, path: str) -> Errors:
    if formats.byte_length(text) > ATTRIBUTE_VALUE_LENGTH:
        yield too_long(path, ATTRIBUTE_VALUE_LENGTH)


def _version(text: str, path: str) -> Errors:
    if not semver.is_valid(text):
        yield invalid(path, text, "must be a string compatible with semver.org spec 2.0.0")
    yield from _string(text, path)


def _capacities(device: Device, path: str) -> Errors:
    def check(capacity: DeviceCapacity, path: str) -> Errors:
        if device.allow_multiple_allocations:
            yield from check_shared_capacity(capacity, path)
        else:
            yield from check_exclusive_capacity(capacity, path)

    yield from check_map(
        device.capacity, check, path, check_key=qualified_name, longest_key=QUALIFIED_LENGTH
    )


def _consumption(consumption: DeviceCounterConsumption, path: str) -> Errors:
    yield from required_dns_label(consumption.counter_set, f"{path}.counterSet")
    yield from check_counters(consumption.counters, f"{path}.counters")


def check_counters(counters: dict[str, Counter], path: str) -> Errors:
    """Named counters. Any quantity is valid as a value."""
    if not counters:
        yield required(path)
        return
    yield from check_map(
        counters,
        nothing_to_check,
        path,
        check_key=dns_label,
        longest_key=formats.LABEL_LENGTH,
        limit=MAX_COUNTERS,
    )


def _node_selection(device: Device, path: str, *, allowed: bool) -> Errors:
    if not allowed:
        given = (device.node_name, device.node_selector, device.all_nodes)
        if any(field is not None for field in given):
            yield invalid(path, None, NO_NODE_SELECTION)
        return
    chosen = []
    if device.node_name:
        chosen.append("`nodeName`")
        yield from dns_subdomain(device.node_name, f"{path}.nodeName")
    elif device.node_name is not None:
        yield invalid(f"{path}.nodeName", device.node_name, "must not be empty")
    if device.node_selector is not None:
        chosen.append("`nodeSelector`")
        yield from check_node_selector(device.node_selector, f"{path}.nodeSelector")
    if device.all_nodes:
        chosen.append("`allNodes`")
    elif device.all_nodes is not None:
        yield invalid(f"{path}.allNodes", device.all_nodes, "must be either unset or set to true")
    if not chosen:
        yield required(path, ONE_NODE_SELECTION)
    elif len(chosen) > 1:
        yield invalid(path, f"{{{', '.join(chosen)}}}", ONE_NODE_SELECTION)


def check_binding_conditions(
    conditions: tuple[str, ...], failures: tuple[str, ...], path: str
) -> Errors:
    """The conditions that let a pod be bound to its node or stop that: both or neither, and apart from each other."""
    for name, entries in (
        ("bindingConditions", conditions),
        ("bindingFailureConditions", failures),
    ):
        yield from check_list(entries, MAX_BINDING_CONDITIONS, label_key, f"{path}.{name}")
        yield from check_unique(entries, str, f"{path}.{name}")
    binding = set(conditions)
    for index, entry in enumerate(failures):
        if entry in binding:
            field = f"{path}.bindingFailureConditions[{index}]"
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(field, entry, detail)
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(f"{path}.bindingConditions", None, detail)
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(f"{path}.bindingFailureConditions", None, detail)


def _node_allocatable(device: Device, path: str) -> Errors:
    for resource, mapping in device.node_allocatable_resource_mappings.items():
        if "/" in resource and "kubernetes.io/" not in resource:
            yield invalid(
                f"{path}[{resource}]", resource, "must be a node allocatable resource name"
            )
        yield from _mapping(mapping, device, f"{path}[{resource}]")


def _mapping(mapping: NodeAllocatableResourceMapping, device: Device, path: str) -> Errors:
    key, multiplier = mapping.capacity_key, mapping.allocation_multiplier
    if key == "":
        yield invalid(f"{path}.capacityKey", key, "capacityKey must not be an empty string")
    elif key is not None and key not in device.capacity:
        yield not_found(f"{path}.capacityKey", key)
    if multiplier is not None and multiplier.amount <= 0:
        yield invalid(f"{path}.allocationMultiplier", multiplier, "must be positive")

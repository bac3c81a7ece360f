"""ResourceSlice."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec
from drayman.api.validation.containers import Errors, check_set
from drayman.api.validation.device import check_counters, check_device
from drayman.api.validation.field_errors import FieldError, invalid, required
from drayman.api.validation.metadata import IMMUTABLE, check_metadata, check_metadata_update
from drayman.api.validation.names import dns_subdomain, driver_name, pool_name, required_dns_label
from drayman.api.validation.node_selectors import check_node_selector

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64
"""Devices with taints, counters or lists of values are larger, so fewer fit the size an object may have."""
MAX_COUNTER_SETS: Final = 8

ONE_NODE_SELECTION: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def validate(value: ResourceSlice) -> list[FieldError]:
    """The errors of a slice about to be created."""
    return [*check_metadata(value.metadata, namespaced=False), *_spec(value.spec, None)]


def validate_update(new: ResourceSlice, old: ResourceSlice) -> list[FieldError]:
    return [*check_metadata_update(new.metadata, old.metadata), *_spec(new.spec, old.spec)]


def warnings(value: ResourceSlice) -> list[tuple[str, str]]:
    """What is accepted and better avoided, as paths and messages."""
    driver = value.spec.driver
    if driver == driver.lower():
        return []
    message = f'driver names should be lowercase; "{driver}" contains uppercase characters'
    return [("spec.driver", message)]


def _spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None) -> Errors:
    yield from driver_name(spec.driver, "spec.driver")
    yield from _pool(spec)
    if old is not None:
        yield from _immutable(spec, old)
    yield from _node_selection(spec)
    if spec.shared_counters is not None and spec.devices is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    yield from _devices(spec, old)
    yield from check_set(
        spec.shared_counters or (),
        MAX_COUNTER_SETS,
        _counter_set,
        lambda counters: counters.name,
        "spec.sharedCounters",
    )


def _pool(spec: ResourceSliceSpec) -> Errors:
    pool = spec.pool
    yield from pool_name(pool.name, "spec.pool.name")
    if pool.resource_slice_count <= 0:
        field = "spec.pool.resourceSliceCount"
        yield invalid(field, pool.resource_slice_count, "must be greater than zero")
    if pool.generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid("spec.pool.generation", pool.generation, detail)


def _immutable(new: ResourceSliceSpec, old: ResourceSliceSpec) -> Errors:
    if new.pool.name != old.pool.name:
        yield invalid("spec.pool.name", new.pool.name, IMMUTABLE)
    if new.driver != old.driver:
        yield invalid("spec.driver", new.driver, IMMUTABLE)
    if new.node_name != old.node_name:
        yield invalid("spec.nodeName", new.node_name, IMMUTABLE)


def _node_selection(spec: ResourceSliceSpec) -> Errors:
    chosen = []
    if spec.node_name:
        chosen.append("`nodeName`")
        yield from dns_subdomain(spec.node_name, "spec.nodeName")
    elif spec.node_name is not None:
        yield invalid(
            "spec.nodeName", spec.node_name, "must be either unset or set to a non-empty string"
        )
    if spec.node_selector is not None:
        chosen.append("`nodeSelector`")
        yield from check_node_selector(spec.node_selector, "spec.nodeSelector")
        terms = spec.node_selector.node_selector_terms
        if len(terms) != 1:
            # Selectors of several slices are merged when devices of all of them are allocated together.
            field = "spec.nodeSelector.nodeSelectorTerms"
            yield invalid(field, terms or None, "must have exactly one node selector term")
    for name, flag in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if flag:
            chosen.append(f"`{name}`")
        elif flag is not None:
            yield invalid(f"spec.{name}", flag, "must be either unset or set to true")
    if not chosen:
        yield required("spec", ONE_NODE_SELECTION)
    elif len(chosen) > 1:
        detail = f"{ONE_NODE_SELECTION}, but multiple fields are set"
        yield invalid("spec", f"{{{', '.join(chosen)}}}", detail)


def _devices(spec: ResourceSliceSpec, old: ResourceSliceSpec | None) -> Errors:
    devices = spec.devices or ()
    before = {device.name: device for device in (old and old.devices) or ()}

    def check(device: Device, path: str) -> Errors:
        yield from check_device(
            device,
            before.get(device.name),
            path,
            selects_nodes=spec.per_device_node_selection is True,
        )

    limit = MAX_ADVANCED_DEVICES if any(map(is_advanced, devices)) else MAX_DEVICES
    yield from check_set(devices, limit, check, lambda device: device.name, "spec.devices")


def is_advanced(device: Device) -> bool:
    """Whether a slice with this device may hold only half as many: it has taints, counters or attributes that are lists."""
    return bool(device.taints or device.consumes_counters) or any(
        values is not None
        for attribute in device.attributes.values()
        for values in (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    )


def _counter_set(counters: CounterSet, path: str) -> Errors:
    yield from required_dns_label(counters.name, f"{path}.name")
    yield from check_counters(counters.counters, f"{path}.counters")

"""Profiles that users write: a YAML file that describes a node and its devices in the terms of the API.

Devices and counter sets are templates. `count: 8` makes eight of one, `each: [...]` one for every entry, and `$(name)` in any text stands
for a value of that entry, or for `index`, `node` and `uuid`, which are always there. A value that is nothing but `$(name)` keeps its type,
so that `int: $(index)` is a number. The file is checked when it is read, by the rules that the API server applies to the resulting slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import field
from msgspec.structs import replace

from drayman.api import validation
from drayman.api.carrying import unknown_fields
from drayman.api.codec import convert
from drayman.api.core import NodeSpec, Taint
from drayman.api.documents import Document, read_documents
from drayman.api.errors import DecodeError, DocumentError
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import CounterSet, Device, DeviceClass, ResourceSlice
from drayman.api.struct import ApiStruct, Int32, Json, always
from drayman.cel.device import check_selector
from drayman.drivers.describing import fingerprint
from drayman.drivers.profiles import machines
from drayman.drivers.profiles.hardware import HardwareNode, pool_slices
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile, ProfileError, stand_alone

API_VERSION: Final = "drayman.dev/v1alpha1"
KIND: Final = "HardwareProfile"
MOST_DEVICES: Final = 4096
"""Of one driver on one node."""
_ENDINGS: Final = (".yaml", ".yml", ".json")
_PLACEHOLDER: Final = re.compile(r"\$\(([A-Za-z][A-Za-z0-9]*)\)")
_T = TypeVar("_T", bound=ApiStruct)


class OwnNode(ApiStruct):
    """The machine of a profile."""

    instance_type: str = ""
    architecture: str = "amd64"
    labels: dict[str, str] = field(default_factory=dict)
    capacity: dict[str, Quantity] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


class OwnDriver(ApiStruct):
    """What one driver publishes on every node."""

    name: str = ""
    shared_counters: tuple[dict[str, Json], ...] = ()
    devices: tuple[dict[str, Json], ...] = ()


class OwnSpec(ApiStruct):
    description: str = ""
    nodes_per_unit: Int32 = 1
    node: OwnNode = OwnNode()
    drivers: tuple[OwnDriver, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    custom_resource_definitions: tuple[dict[str, Json], ...] = ()


class OwnProfile(ApiStruct):
    """The file."""

    api_version: str = always(API_VERSION)
    kind: str = always(KIND)
    metadata: ObjectMeta = ObjectMeta()
    spec: OwnSpec = OwnSpec()


@dataclass(frozen=True, slots=True)
class _Reading:
    """A file that is being read: makes errors that say where."""

    document: Document

    def error(self, path: str, message: str) -> ProfileError:
        line = self.document.line_of(path)
        return ProfileError(f"{self.document.file}:{line}: {path or KIND}: {message}")

    def convert(self, type_: type[_T], value: Json, path: str) -> _T:
        """A part of the file, converted to its type. Raises ProfileError, also for unknown fields."""
        for unknown in unknown_fields(type_, value):
            raise self.error(_below(path, unknown), "there is no such field")
        try:
            return convert(type_, value)
        except DecodeError as error:
            raise self.error(_below(path, error.path), error.message) from error


def is_path(name: str) -> bool:
    """Whether a profile is named by its file."""
    return "/" in name or name.endswith(_ENDINGS)


def read_profile(path: str) -> Profile:
    """The profile in a file. Raises ProfileError, naming file, line and field."""
    try:
        data = Path(path).read_bytes()
        documents = list(read_documents(path, data))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ProfileError(f"{path}: cannot be read: {why}") from error
    except DocumentError as error:
        raise ProfileError(str(error)) from error
    if len(documents) != 1:
        raise ProfileError(f"{path}: expected one {KIND}, found {len(documents)} objects")
    return _profile(_Reading(documents[0]))


def _profile(reading: _Reading) -> Profile:
    value = reading.document.value
    if (value.get("apiVersion"), value.get("kind")) != (API_VERSION, KIND):
        raise reading.error("", f"expected apiVersion: {API_VERSION} and kind: {KIND}")
    own = reading.convert(OwnProfile, value, "")
    if not own.metadata.name:
        raise reading.error("metadata.name", "a name is required; nodes are named after it")
    if own.spec.nodes_per_unit < 1:
        raise reading.error("spec.nodesPerUnit", "must be at least 1")
    for index, driver in enumerate(own.spec.drivers):
        if not driver.name:
            raise reading.error(f"spec.drivers[{index}].name", "a driver needs its name")
    build = partial(_build, own=own, reading=reading)
    profile = Profile(
        own.metadata.name,
        own.spec.description or f"from {reading.document.file}",
        build,
        stand_alone if own.spec.nodes_per_unit == 1 else partial(_unit, own.spec.nodes_per_unit),
    )
    _check(profile.unit(0)[0], own, reading)
    return profile


def _unit(nodes: int, profile: str, unit: int) -> tuple[Spot, ...]:
    """The nodes of a unit stand in one rack."""
    rack, block = f"{profile}-rack-{unit}", f"{profile}-block-{unit // machines.RACKS_PER_BLOCK}"
    return tuple(Spot(f"{profile}-{unit}-{at:02}", rack, block, at) for at in range(nodes))


def _build(spot: Spot, own: OwnProfile, reading: _Reading) -> HardwareNode:
    spec = own.spec
    machine = Machine(
        spec.node.instance_type or own.metadata.name,
        cpus=64,
        memory="256Gi",
        architecture=spec.node.architecture,
    )
    node = machines.node(spot, machine, spec.node.labels)
    amounts = {**node.status.capacity, **spec.node.capacity}
    node = replace(
        node,
        spec=NodeSpec(taints=spec.node.taints),
        status=replace(node.status, capacity=amounts, allocatable=amounts),
    )
    slices = [
        each
        for index, driver in enumerate(spec.drivers)
        for each in _slices(spot.name, driver, f"spec.drivers[{index}]", reading)
    ]
    return HardwareNode(node, tuple(slices), spec.device_classes, spec.custom_resource_definitions)


def _slices(
    node_name: str, driver: OwnDriver, path: str, reading: _Reading
) -> tuple[ResourceSlice, ...]:
    counters = tuple(
        made
        for index, template in enumerate(driver.shared_counters)
        for made in _made(
            CounterSet, template, node_name, f"{path}.sharedCounters[{index}]", reading
        )
    )
    devices = tuple(
        made
        for index, template in enumerate(driver.devices)
        for made in _made(Device, template, node_name, f"{path}.devices[{index}]", reading)
    )
    if len(devices) > MOST_DEVICES:
        raise reading.error(f"{path}.devices", f"{len(devices)} devices; most are {MOST_DEVICES}")
    return pool_slices(node_name, driver.name, [devices], counters)


def _made(
    type_: type[_T], template: dict[str, Json], node_name: str, path: str, reading: _Reading
) -> Iterator[_T]:
    """One object per repetition of a template."""
    for index, values in enumerate(_repetitions(template, path, reading)):
        known = {
            "index": index,
            "node": node_name,
            "uuid": fingerprint(path, node_name, index, size=16),
            **values,
        }
        body = {name: part for name, part in template.items() if name not in ("count", "each")}
        yield reading.convert(type_, _filled(body, known, path, reading), path)


def _repetitions(
    template: dict[str, Json], path: str, reading: _Reading
) -> list[Mapping[str, Json]]:
    count, each = template.get("count"), template.get("each")
    if count is not None and each is not None:
        raise reading.error(path, "count and each exclude one another")
    if each is not None:
        if not isinstance(each, list) or not all(isinstance(entry, dict) for entry in each):
            raise reading.error(f"{path}.each", "expected a list of mappings")
        return each
    if count is None:
        return [{}]
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MOST_DEVICES:
        raise reading.error(f"{path}.count", f"expected a number from 1 to {MOST_DEVICES}")
    return [{}] * count


def _filled(value: Json, known: Mapping[str, Json], path: str, reading: _Reading) -> Json:
    """A template with its placeholders filled in."""
    if isinstance(value, dict):
        return {
            _text(name, known, path, reading): _filled(part, known, f"{path}.{name}", reading)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [
            _filled(part, known, f"{path}[{index}]", reading) for index, part in enumerate(value)
        ]
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole is not None and whole[1] in known:
        return known[whole[1]]
    return _text(value, known, path, reading)


def _text(text: str, known: Mapping[str, Json], path: str, reading: _Reading) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise reading.error(path, f"{match[0]} is not known; there are {', '.join(known)}")
        return str(known[match[1]])

    return _PLACEHOLDER.sub(value, text)


def _check(node: HardwareNode, own: OwnProfile, reading: _Reading) -> None:
    """Apply the rules of the API to what a node would publish."""
    paths = {driver.name: f"spec.drivers[{at}]" for at, driver in enumerate(own.spec.drivers)}
    for each in node.slices:
        for error in validation.validate(each, check_selector):
            raise reading.error(paths[each.spec.driver], f"{each.metadata.name}: {error}")
    for index, item in enumerate(node.classes):
        for error in validation.validate(item, check_selector):
            raise reading.error(_below(f"spec.deviceClasses[{index}]", error.path), error.body)


def _below(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path and rest else path or rest

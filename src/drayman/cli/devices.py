"""Devices from a file: ResourceSlices as Kubernetes has them, or a plain array of named devices."""

from __future__ import annotations

from codecs import BOM_UTF8
from dataclasses import dataclass

from drayman.api.codec import convert
from drayman.api.errors import DecodeError, JsonError
from drayman.api.loading import LoadedObject, LoadFinding, Severity, load_files
from drayman.api.resource import Device, ResourceSlice
from drayman.api.struct import Json
from drayman.api.syntax import json_text
from drayman.cli import files
from drayman.cli.errors import UserError


@dataclass(frozen=True, slots=True)
class NamedDevice:
    """A device and what to call it in an answer."""

    name: str
    driver: str
    device: Device


def read_devices(path: str) -> list[NamedDevice]:
    """The devices of a file. Raises UserError, naming file and entry."""
    data = files.read(path)
    name = files.display_name(path)
    is_array = data.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
    devices = _from_array(name, data) if is_array else _from_slices(name, data)
    if not devices:
        raise UserError(f"{name}: has no devices; expected ResourceSlices")
    return devices


def _from_array(file: str, data: bytes) -> list[NamedDevice]:
    try:
        entries = json_text.parse(data)
    except JsonError as error:
        raise UserError(f"{file}:{error.line}: {error.reason}") from error
    assert isinstance(entries, list)  # it starts with a bracket
    return [_entry(f"{file}: device {index}", entry) for index, entry in enumerate(entries)]


def _entry(where: str, entry: Json) -> NamedDevice:
    if not isinstance(entry, dict):
        raise UserError(f"{where}: expected an object with name, driver and device")
    for field in ("name", "driver"):
        if not isinstance(entry.get(field), str):
            raise UserError(f"{where}: {field}: expected string")
    try:
        device = convert(Device, entry.get("device"))
    except DecodeError as error:
        raise UserError(f"{where}: {error.under('device')}") from error
    return NamedDevice(entry["name"], entry["driver"], device)


def _from_slices(file: str, data: bytes) -> list[NamedDevice]:
    found: list[_Published] = []
    for result in load_files([(file, data)]):
        if isinstance(result, LoadFinding):
            if result.severity is Severity.ERROR:
                raise UserError(str(result))
            continue
        found += _of_slice(result)
    drivers: dict[tuple[str, str], set[str]] = {}
    for each in found:
        drivers.setdefault((each.pool, each.device.name), set()).add(each.driver)
    return [each.named(with_driver=len(drivers[each.pool, each.device.name]) > 1) for each in found]


@dataclass(frozen=True, slots=True)
class _Published:
    """A device of a slice."""

    driver: str
    pool: str
    device: Device

    def named(self, *, with_driver: bool) -> NamedDevice:
        """By pool and name; with its driver where another driver has the same names."""
        name = f"{self.pool}/{self.device.name}"
        return NamedDevice(
            f"{self.driver}/{name}" if with_driver else name, self.driver, self.device
        )


def _of_slice(loaded: LoadedObject) -> list[_Published]:
    value = None if loaded.carried is None else loaded.carried.object
    if not isinstance(value, ResourceSlice):
        place = f"{loaded.document.file}:{loaded.document.line}"
        raise UserError(f"{place}: {loaded.title}: expected a ResourceSlice")
    spec = value.spec
    return [_Published(spec.driver, spec.pool.name, device) for device in spec.devices or ()]

"""Volumes as containers see them: mounted as folders, or as block devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.validation.field_errors import (
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from drayman.apiserver.kinds.checks import supported
from drayman.apiserver.kinds.pods.paths import descending
from drayman.apiserver.kinds.reading import at, each_at, items_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

Volumes = Mapping[str, Object]
"""The valid volumes of a pod by name."""

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_BLOCK_SOURCES: Final = ("persistentVolumeClaim", "ephemeral")


def check_mounts(container: Object, volumes: Volumes, path: str) -> Errors:
    devices, used = _places(container, "volumeDevices", "devicePath")
    taken: set[str] = set()
    for where, mount in each_at(container, path, "volumeMounts"):
        name, place = text_at(mount, "name"), text_at(mount, "mountPath")
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found(f"{where}.name", name)
        if not place:
            yield required(f"{where}.mountPath")
        if place in taken:
            yield invalid(f"{where}.mountPath", place, "must be unique")
        taken.add(place)
        if name in devices:
            yield invalid(f"{where}.name", name, "must not already exist in volumeDevices")
        if place in used:
            detail = "must not already exist as a path in volumeDevices"
            yield invalid(f"{where}.mountPath", place, detail)
        if len(mount) > 2:
            yield from _options(container, mount, where, f"{path}.volumeMounts")
    if container.get("volumeDevices"):
        yield from _devices(container, volumes, path)


def _places(container: Object, name: str, member: str) -> tuple[set[str], set[str]]:
    """The names of the items of a list, and where in the container they are. Of several with one name the last one counts."""
    found = {text_at(item, "name"): text_at(item, member) for item in items_at(container, name)}
    return set(found), set(found.values())


def _options(container: Object, mount: Object, path: str, list_path: str) -> Errors:
    """What a mount may have besides a name and a place. Most errors are, as upstream, on the list and not on its item."""
    sub_path, expression = text_at(mount, "subPath"), text_at(mount, "subPathExpr")
    if sub_path:
        yield from descending(sub_path, f"{list_path}.subPath")
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{path}.subPathExpr", expression, detail)
        yield from descending(expression, f"{list_path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        place = f"{list_path}.mountPropagation"
        yield from supported(propagation, place, _PROPAGATIONS)
        if propagation == "Bidirectional" and not at(container, "securityContext", "privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(place, detail)
    yield from _read_only(mount, propagation, f"{list_path}.recursiveReadOnly")


def _read_only(mount: Object, propagation: object, path: str) -> Errors:
    recursive = mount.get("recursiveReadOnly")
    if recursive is None or recursive == "Disabled":
        return
    if recursive not in _RECURSIVE:
        yield not_supported(path, recursive, _RECURSIVE)
        return
    if not mount.get("readOnly"):
        yield forbidden(path, "may only be specified when readOnly is true")
    if propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        yield forbidden(path, detail)


def _devices(container: Object, volumes: Volumes, path: str) -> Errors:
    mounts, used = _places(container, "volumeMounts", "mountPath")
    names: set[str] = set()
    places: set[str] = set()
    for where, device in each_at(container, path, "volumeDevices"):
        name, place = text_at(device, "name"), text_at(device, "devicePath")
        yield from _device_name(name, names, volumes, f"{where}.name")
        if not place:
            yield required(f"{where}.devicePath")
        if place in places:
            yield invalid(f"{where}.devicePath", place, "must be unique")
        if ".." in place.split("/"):
            yield invalid(f"{where}.devicePath", place, "can not contain backsteps ('..')")
        else:
            places.add(place)
        if name in mounts:
            yield invalid(f"{where}.name", name, "must not already exist in volumeMounts")
        if place in used:
            detail = "must not already exist as a path in volumeMounts"
            yield invalid(f"{where}.devicePath", place, detail)
        names.add(name)


def _device_name(name: str, earlier: set[str], volumes: Volumes, path: str) -> Errors:
    if not name:
        yield required(path)
    elif name in earlier:
        yield invalid(path, name, "must be unique")
    if name not in volumes:
        yield not_found(path, name)
    elif all(volumes[name].get(source) is None for source in _BLOCK_SOURCES):
        detail = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        yield invalid(path, name, detail)

"""What volumes are made from. Vendor-specific sources are only checked for their required members."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.validation.field_errors import forbidden, invalid, required
from drayman.api.validation.names import dns_subdomain, driver_name
from drayman.apiserver.kinds.checks import one_of, required_name, supported
from drayman.apiserver.kinds.pods.downward import FILE_FIELDS, amount_reference, field_reference
from drayman.apiserver.kinds.pods.paths import descending, unreserved, without_backsteps
from drayman.apiserver.kinds.reading import each_at, number_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

_NEEDED: Final = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "ephemeral": ("volumeClaimTemplate",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "secret": ("secretName",),
    "vsphereVolume": ("volumePath",),
}
"""The required members of a source."""
_MODES: Final = 0o777
_MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_SHORTEST_TOKEN_S: Final = 600
_LONGEST_TOKEN_S: Final = 1 << 32
_PROJECTED: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)


def check_source(name: str, source: Object, path: str, *, is_pod: bool) -> Errors:
    for needed in _NEEDED.get(name, ()):
        if not source.get(needed):
            yield required(f"{path}.{needed}")
    match name:
        case "emptyDir":
            yield from _empty_dir(source, path)
        case "hostPath":
            yield from _host_path(source, path)
        case "gitRepo":
            yield from descending(text_at(source, "directory"), f"{path}.directory")
        case "secret" | "configMap":
            yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
            yield from _items(source, path)
        case "downwardAPI":
            yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
            for _, file in each_at(source, path, "items"):
                yield from _downward_file(file, path)
        case "projected":
            yield from _projected(source, path)
        case "nfs":
            yield from _absolute(text_at(source, "path"), f"{path}.path")
        case "csi":
            yield from _csi(source, path)
        case "image":
            if is_pod and not text_at(source, "reference"):
                yield required(f"{path}.reference")
            yield from one_of(source.get("pullPolicy"), f"{path}.pullPolicy", _PULL_POLICIES)


def _mode(mode: Json, path: str) -> Errors:
    if isinstance(mode, int) and not 0 <= mode <= _MODES:
        yield invalid(path, mode, _MODE_RULE)


def _absolute(place: str, path: str) -> Errors:
    if not place.startswith("/"):
        yield invalid(path, place, "must be an absolute path")


def _empty_dir(source: Object, path: str) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity.parse(str(limit)) < Quantity(0):
        detail = "SizeLimit field must be a valid resource quantity"
        yield forbidden(f"{path}.sizeLimit", detail)


def _host_path(source: Object, path: str) -> Errors:
    place = text_at(source, "path")
    if not place:
        yield required(f"{path}.path")
        return
    yield from without_backsteps(place, f"{path}.path")
    yield from supported(source.get("type"), f"{path}.type", _HOST_PATH_TYPES)


def _items(source: Object, path: str) -> Errors:
    """Keys and the files they become."""
    for where, item in each_at(source, path, "items"):
        if not text_at(item, "key"):
            yield required(f"{where}.key")
        if not text_at(item, "path"):
            yield required(f"{where}.path")
        yield from unreserved(text_at(item, "path"), f"{where}.path")
        yield from _mode(item.get("mode"), f"{where}.mode")


def _downward_file(file: Object, path: str) -> Errors:
    """A file with something about the pod. As upstream, errors are on the source and not on its item."""
    place = text_at(file, "path")
    if not place:
        yield required(f"{path}.path")
    yield from unreserved(place, f"{path}.path")
    field, amount = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from field_reference(field, FILE_FIELDS, f"{path}.fieldRef")
        if amount is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", detail)
    elif amount is not None:
        yield from amount_reference(amount, f"{path}.resourceFieldRef", names_container=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(file.get("mode"), f"{path}.mode")


def _csi(source: Object, path: str) -> Errors:
    yield from driver_name(text_at(source, "driver"), f"{path}.driver")
    if isinstance(secret := source.get("nodePublishSecretRef"), dict):
        name = text_at(secret, "name")
        if name:
            yield from dns_subdomain(name, f"{path}.name")
        else:
            yield required(f"{path}.nodePublishSecretRef.name")


def _projected(source: Object, path: str) -> Errors:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for where, part in each_at(source, path, "sources"):
        given = [name for name in _PROJECTED if part.get(name) is not None]
        for name in given:
            yield from _projection(name, part[name], f"{where}.{name}", path)
            for item in part[name].get("items") or ():
                place = text_at(item, "path")
                if place and place in taken:
                    shown = place if name == "downwardAPI" else text_at(part[name], "name")
                    yield invalid(path, shown, "conflicting duplicate paths")
                taken.add(place)
        if len(given) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


def _projection(name: str, part: Object, path: str, volume_path: str) -> Errors:
    match name:
        case "secret" | "configMap":
            if not text_at(part, "name"):
                yield required(f"{path}.name")
            yield from _items(part, path)
        case "downwardAPI":
            for _, file in each_at(part, path, "items"):
                yield from _downward_file(file, path)
        case "serviceAccountToken":
            yield from _token(part, path, volume_path)


def _token(part: Object, path: str, volume_path: str) -> Errors:
    seconds = number_at(part, "expirationSeconds")
    if seconds < _SHORTEST_TOKEN_S:
        detail = "may not specify a duration less than 10 minutes"
        yield invalid(f"{path}.expirationSeconds", seconds, detail)
    if seconds > _LONGEST_TOKEN_S:
        detail = "may not specify a duration larger than 2^32 seconds"
        yield invalid(f"{path}.expirationSeconds", seconds, detail)
    yield from required_name(text_at(part, "path"), f"{volume_path}.path", unreserved)

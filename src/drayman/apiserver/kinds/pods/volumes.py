"""Volumes of a pod: each has a name and exactly one source."""

from __future__ import annotations

from typing import Final

from drayman.api import formats
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    required,
)
from drayman.apiserver.kinds.checks import one_of
from drayman.apiserver.kinds.reading import each_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.strategy import Object

SOURCES: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "flocker",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "storageos",
    "portworxVolume",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
"""In the order they are looked at: the first one counts, the others are one too many."""
_NAMED: Final = {
    "secret": "secretName",
    "configMap": "name",
    "persistentVolumeClaim": "claimName",
    "hostPath": "path",
    "csi": "driver",
}
"""What a source cannot do without."""
_MODES: Final = 0o777
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


def check_volumes(spec: Object, path: str) -> Errors:
    names: set[str] = set()
    for where, volume in each_at(spec, path, "volumes"):
        name = text_at(volume, "name")
        if not name:
            yield required(f"{where}.name")
        elif problems := formats.dns_label_problems(name):
            yield from invalid_each(f"{where}.name", name, problems)
        elif name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        yield from _source(volume, where)


def _source(volume: Object, path: str) -> Errors:
    given = [name for name in SOURCES if volume.get(name) is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")
    first = given[0]
    yield from _details(first, volume[first], f"{path}.{first}")


def _details(name: str, source: Json, path: str) -> Errors:
    needed = _NAMED.get(name)
    if needed and not text_at(source, needed):
        yield required(f"{path}.{needed}")
    if name == "hostPath":
        yield from one_of(source.get("type"), f"{path}.type", _HOST_PATH_TYPES, needed=False)
    mode = source.get("defaultMode")
    if isinstance(mode, int) and not 0 <= mode <= _MODES:
        detail = "must be a number between 0 and 0777 (octal), both inclusive"
        yield invalid(f"{path}.defaultMode", mode, detail)
    for where, item in each_at(source, path, "items"):
        if not text_at(item, "path"):
            yield required(f"{where}.path")

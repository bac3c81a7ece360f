"""Volumes of a pod: each has a name and exactly one source."""

from __future__ import annotations

from typing import Final

from drayman.api import formats
from drayman.api.struct import Json
from drayman.api.validation import FieldError
from drayman.api.validation.field_errors import duplicate, forbidden, invalid, required
from drayman.api.validation.names import required_dns_label
from drayman.apiserver.kinds.pods.volume_sources import check_source
from drayman.apiserver.kinds.reading import each_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

SOURCES: Final = tuple(
    "emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker persistentVolumeClaim"
    " rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile vsphereVolume photonPersistentDisk portworxVolume"
    " azureDisk storageos projected scaleIO csi ephemeral image".split()
)
"""In the order they are checked: the first one counts, any other is one too many."""
_UPSTREAM_NAMES: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Sources whose names upstream misspells where they are one too many."""


def check_volumes(spec: Object, metadata: Json, path: str) -> tuple[dict[str, Object], Errors]:
    """The valid volumes by name, which containers may refer to, and what is wrong with the others.

    `metadata` is the pod's: names of volumes made for the pod derive from its name. None in a template.
    """
    volumes: dict[str, Object] = {}
    errors: list[FieldError] = []
    pod = text_at(metadata, "name")
    for where, volume in each_at(spec, path, "volumes"):
        found = list(_volume(volume, volumes, pod, where))
        errors += found
        if not found:
            volumes[text_at(volume, "name")] = volume
    if pod and any("ephemeral" in volume for volume in volumes.values()):
        errors += _references_to_made(spec, pod, path)
    return volumes, iter(errors)


def _volume(volume: Object, earlier: dict[str, Object], pod: str, path: str) -> Errors:
    name = text_at(volume, "name")
    yield from _source(volume, path, is_pod=bool(pod))
    if volume.get("ephemeral") is not None and pod and name:
        made = f"{pod}-{name}"
        for problem in formats.dns_subdomain_problems(made):
            yield invalid(f"{path}.name", name, f'PVC name "{made}": {problem}')
    yield from required_dns_label(name, f"{path}.name")
    if name in earlier:
        yield duplicate(f"{path}.name", name)


def _references_to_made(spec: Object, pod: str, path: str) -> Errors:
    """A volume made for the pod already belongs to it and cannot be referenced again."""
    volumes = list(each_at(spec, path, "volumes"))
    made = {f"{pod}-{text_at(volume, 'name')}" for _, volume in volumes if "ephemeral" in volume}
    for where, volume in volumes:
        name = text_at(volume, "persistentVolumeClaim", "claimName")
        if name in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid(f"{where}.persistentVolumeClaim.claimName", name, detail)


def _source(volume: Object, path: str, *, is_pod: bool) -> Errors:
    given = [name for name in SOURCES if volume.get(name) is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    first = given[0]
    yield from check_source(first, volume[first], f"{path}.{first}", is_pod=is_pod)
    for name in given[1:]:
        field = _UPSTREAM_NAMES.get(name, name)
        yield forbidden(f"{path}.{field}", "may not specify more than 1 volume type")

"""What a pod reads from the cluster: which ConfigMaps and Secrets, and as whom.

A node reads them to run the pod, and the API server lets it read these and no others. Both ask here: a name that one of them knew and the
other did not would keep the pod from running.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from drayman.api.struct import Json

DEFAULT_ACCOUNT: Final = "default"
"""The service account of a pod that names none."""


class _Places(NamedTuple):
    """What the references to one kind are called."""

    key: str
    """Of a variable."""
    whole: str
    """To all variables at once."""
    volume: str
    """Also of a projected volume."""
    name: str
    """The member of the volume that has the name."""


_CONFIG_MAPS: Final = _Places("configMapKeyRef", "configMapRef", "configMap", "name")
_SECRETS: Final = _Places("secretKeyRef", "secretRef", "secret", "secretName")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def config_maps_of(pod: Json) -> Iterator[str]:
    """The names of the ConfigMaps that a pod reads, some maybe several times."""
    yield from filter(None, _named(pod["spec"], _CONFIG_MAPS))


def secrets_of(pod: Json) -> Iterator[str]:
    """The names of the Secrets that a pod reads, or its images are pulled with."""
    yield from filter(None, _named(pod["spec"], _SECRETS))
    for reference in pod["spec"].get("imagePullSecrets") or ():
        if name := reference.get("name"):
            yield name


def _named(spec: Json, places: _Places) -> Iterator[str | None]:
    for volume in spec.get("volumes") or ():
        yield (volume.get(places.volume) or {}).get(places.name)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get(places.volume) or {}).get("name")
    for sort in _CONTAINERS:
        for container in spec.get(sort) or ():
            for variable in container.get("env") or ():
                yield ((variable.get("valueFrom") or {}).get(places.key) or {}).get("name")
            for source in container.get("envFrom") or ():
                yield (source.get(places.whole) or {}).get("name")

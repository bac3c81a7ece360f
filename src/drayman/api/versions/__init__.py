"""Conversion between the versions of `resource.k8s.io`.

Objects are held as v1. Conversion works on decoded JSON rather than on structs, so that unknown fields pass through
untouched, at the place the other version has for them. v1beta2 and v1alpha3 differ from v1 in name only; v1beta1 has a
different shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.errors import ConversionError
from drayman.api.resource import API_VERSION, GROUP
from drayman.api.struct import Json
from drayman.api.versions import v1beta1

_WORKLOAD_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
VERSIONS: Final[dict[str, tuple[str, ...]]] = {
    "DeviceClass": _WORKLOAD_VERSIONS,
    "ResourceSlice": _WORKLOAD_VERSIONS,
    "ResourceClaim": _WORKLOAD_VERSIONS,
    "ResourceClaimTemplate": _WORKLOAD_VERSIONS,
    "DeviceTaintRule": ("v1", "v1beta2", "v1alpha3"),
}
"""The versions each kind can be read and written in, the preferred one first."""


@dataclass(frozen=True, slots=True)
class Converted:
    """An object as v1, and the paths of fields its own version does not have there and would ignore."""

    value: dict[str, Json]
    version: str
    ignored: tuple[str, ...] = ()


def to_v1(value: dict[str, Json]) -> Converted:
    """An object of any version as v1. Raises ConversionError for a kind or version that does not exist."""
    kind, version = _kind_and_version(value)
    if version == "v1beta1":
        converted, ignored = v1beta1.to_v1(kind, value)
    else:
        converted, ignored = dict(value), ()
    converted["apiVersion"] = API_VERSION
    return Converted(converted, version, ignored)


def from_v1(value: dict[str, Json], version: str) -> dict[str, Json]:
    """A v1 object in another version. Raises ConversionError for a kind that version does not have."""
    kind, _ = _kind_and_version(value)
    _require(kind, version)
    converted = v1beta1.from_v1(kind, value) if version == "v1beta1" else dict(value)
    converted["apiVersion"] = f"{GROUP}/{version}"
    return converted


def source_path(kind: str, version: str, path: str) -> str:
    """Where a field of the v1 form is found in an object of the given version."""
    return v1beta1.source_path(kind, path) if version == "v1beta1" else path


def _kind_and_version(value: dict[str, Json]) -> tuple[str, str]:
    kind, api_version = value.get("kind"), value.get("apiVersion")
    group, _, version = str(api_version).partition("/")
    if group != GROUP or not isinstance(kind, str) or kind not in VERSIONS:
        raise ConversionError(f"{api_version} {kind} is not a kind of {GROUP}")
    _require(kind, version)
    return kind, version


def _require(kind: str, version: str) -> None:
    if version not in VERSIONS[kind]:
        choices = ", ".join(VERSIONS[kind])
        raise ConversionError(f"{kind} has no version {version}; it has {choices}")

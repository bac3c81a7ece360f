"""The versions of a kind, as far as ownership is concerned: fields are owned in the version they were written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import EMPTY, FieldSet
from drayman.apiserver.patching.shapes import Shape

Object = dict[str, Json]
Convert = Callable[[Object, str], Object]


def with_api_version(obj: Object, api_version: str) -> Object:
    """Conversion of kinds whose versions differ in name only."""
    return {**obj, "apiVersion": api_version}


@dataclass(frozen=True, slots=True)
class Versions:
    """The shape of a kind in each API version it has, and how to get from one to another."""

    shapes: Mapping[str, Shape]
    convert: Convert = with_api_version
    """Converts an object, whose apiVersion names its version, to another API version. It must not change its argument, and
    must accept objects that lack metadata or spec: while an apply is computed, fields are missing temporarily."""
    reset_fields: FieldSet = field(default=EMPTY)
    """Fields that a write through this endpoint cannot change, so that no manager comes to own them through it."""

    def has(self, api_version: str) -> bool:
        """Whether a version is still served. Owners in versions no longer served are forgotten."""
        return api_version in self.shapes

    def at(self, obj: Object, api_version: str) -> Object:
        """An object in a served version."""
        return obj if obj.get("apiVersion") == api_version else self.convert(obj, api_version)

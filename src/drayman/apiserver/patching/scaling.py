"""Ownership through the scale subresource.

A Scale has a field manager of its own kind, but what it changes is the number of replicas of its parent. So the owners of that
field are presented to it as owners of `spec.replicas` of the Scale, and the result is written back in the parent's terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import Path, field_set, named_path
from drayman.apiserver.patching.managed_fields import (
    Managed,
    Ownership,
    decode_managed,
    encode_managed,
)

SCALE_API_VERSION: Final = "autoscaling/v1"
_SCALE_REPLICAS: Final = named_path("spec", "replicas")


@dataclass(frozen=True, slots=True)
class ScaleOwnership:
    """Translates between the managedFields of a parent and those of its Scale.

    `replicas` has the path of the replicas for each API version of the parent; `api_version` is the one the request is about.
    """

    api_version: str
    replicas: Mapping[str, Path]

    def to_scale(self, parent_entries: Json) -> list[dict[str, Json]]:
        """The owners of the replicas, as owners of a Scale."""
        owners: Managed = {}
        for manager, owned in decode_managed(parent_entries).items():
            path = self.replicas.get(owned.api_version)
            if path is not None and owned.fields.has(path):
                fields = field_set([_SCALE_REPLICAS])
                owners[manager] = Ownership(fields, SCALE_API_VERSION, owned.time)
        return encode_managed(owners)

    def to_parent(self, parent_entries: Json, scale_entries: Json) -> list[dict[str, Json]]:
        """The parent's owners after a write to the Scale. Entries of versions that are not served are dropped."""
        scale, parent = decode_managed(scale_entries), decode_managed(parent_entries)
        owners: Managed = {}
        for manager, owned in parent.items():
            path = self.replicas.get(owned.api_version)
            if path is None:
                continue
            if owned.fields.has(path) and scale.pop(manager, None) is None:
                owned = replace(owned, fields=owned.fields - field_set([path]))
            if owned.fields:
                owners[manager] = owned
        for manager, owned in scale.items():
            if owned.fields.has(_SCALE_REPLICAS):
                # The real server looks up the time of the write where it cannot be found, and so records none.
                time = parent[manager].time if manager in parent else ""
                fields = field_set([self.replicas[self.api_version]])
                owners[manager] = Ownership(fields, self.api_version, time)
        return encode_managed(owners)

"""Conversion of objects between the version of a request and the hub version they are stored in."""

from __future__ import annotations

from drayman.apiserver.served.encoding import decode, encode, stored_form
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.cluster.embedded.model import Stored


def to_hub(resource: ApiResource, obj: Object, version: str) -> Object:
    """An object of a request as it is kept. May change the object handed in."""
    hub = resource.hub_kind
    if (resource.group, version) != (hub.group, hub.version):
        obj = resource.conversion.to_hub(obj, version)
    obj["kind"], obj["apiVersion"] = hub.kind, hub.api_version
    return obj


def from_hub(resource: ApiResource, obj: Object, version: str) -> Object:
    """A stored object in a version: itself in the hub version, otherwise a copy. Must not be changed."""
    hub, kind = resource.hub_kind, resource.kind_in(version)
    if kind == hub:
        return obj
    converted = resource.conversion.from_hub(obj, version)
    converted["kind"], converted["apiVersion"] = kind.kind, kind.api_version
    return converted


def is_kept_in(resource: ApiResource, version: str) -> bool:
    """Whether objects are stored in a version, so that their stored text is that version's text."""
    return resource.kind_in(version) == resource.hub_kind


def data_in(resource: ApiResource, stored: Stored, version: str) -> bytes:
    """The JSON text of a stored object in a version."""
    if is_kept_in(resource, version):
        return stored.data
    obj = from_hub(resource, decode(stored.data), version)
    if stored.revision == 0:
        return encode(obj)
    return stored_form(obj, resource.kind_in(version))(stored.revision)

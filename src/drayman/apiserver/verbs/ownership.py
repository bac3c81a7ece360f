"""Who owns which field: the link between writes and `patching.field_manager`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from drayman.apiserver.patching.builtin_shapes import shape_of, zero_of
from drayman.apiserver.patching.field_manager import FieldManager
from drayman.apiserver.patching.field_set import field_set, key_element, named_path
from drayman.apiserver.patching.managed_fields import same_but_times
from drayman.apiserver.patching.shapes import Shape
from drayman.apiserver.patching.structure import structure_of
from drayman.apiserver.patching.versions import Versions
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.conversion import from_hub, to_hub
from drayman.apiserver.served.recurring import Recurring
from drayman.apiserver.served.resources import ApiResource, GroupVersionKind, Subresource
from drayman.apiserver.served.shaping import message_of, normalised
from drayman.apiserver.served.strategy import Context, Object

MANAGERS_KEPT: Final = 1024
_UNOWNED: Final = frozenset({"name", "namespace", "uid", "creationTimestamp"})

_recent: Final[Recurring[_Creation]] = Recurring()
"""The entries of recently created objects, by their structure."""


def manager_of(call: Call) -> FieldManager:
    """The field manager of the endpoint a call goes to."""
    return _manager(call.resource, call.version, call.subresource)


@lru_cache(maxsize=MANAGERS_KEPT)
def _manager(resource: ApiResource, version: str, part: Subresource | None) -> FieldManager:
    strategy = resource.strategy if part is None else part.strategy or resource.strategy
    kind, hub = resource.kind_in(version), resource.hub_kind
    served = {resource.kind_in(name).api_version: name for name in resource.versions}
    shapes = {api_version: _shape(resource, name) for api_version, name in served.items()}
    if hub.api_version not in shapes:
        shapes[hub.api_version] = shape_of(message_of(hub))

    def convert(obj: Object, api_version: str) -> Object:
        source = obj["apiVersion"]
        if source != hub.api_version:
            obj = to_hub(resource, dict(obj), served[source])
        if api_version == hub.api_version:
            return obj
        return from_hub(resource, obj, served[api_version])

    reset = field_set(named_path(*path) for path in strategy.reset_fields)
    versions = Versions(shapes, convert, reset)
    return FieldManager(kind.api_version, kind.kind, versions, _empty(resource, kind))


def _shape(resource: ApiResource, version: str) -> Shape:
    if resource.codec is not None:
        return resource.codec.shape(version)
    return shape_of(message_of(resource.kind_in(version)))


def _empty(resource: ApiResource, kind: GroupVersionKind) -> Object:
    members = {} if resource.codec is not None else zero_of(message_of(kind))
    return {**members, "kind": kind.kind, "apiVersion": kind.api_version}


def note_creation(call: Call, obj: Object, context: Context) -> None:
    """Make the creator the owner of all that it sets."""
    metadata = obj["metadata"]
    if "managedFields" in metadata:
        noted = manager_of(call).create(
            normalised(call.resource, obj), call.write.field_manager, context.now
        )
        entries = noted["metadata"].get("managedFields", [])
    else:
        entries = _creators(call, obj, context)
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries


def _creators(call: Call, obj: Object, context: Context) -> list[Object]:
    """The entries of a new object. Ownership depends on structure, which objects made from one template share."""
    metadata = obj["metadata"]
    owned = {name: v for name, v in metadata.items() if name not in _UNOWNED}
    owner = _single_owner(owned)
    if owner:
        owned["ownerReferences"] = True
    structure = structure_of({**obj, "metadata": owned})
    alike = (call.resource, call.version, call.write.field_manager, structure)
    known = _recent.find(alike)
    if known is None:
        whole = normalised(call.resource, obj)
        noted = manager_of(call).create(whole, call.write.field_manager, context.now)
        known = _recent.keep(alike, _Creation(noted["metadata"].get("managedFields", []), owner))
    return known.entries_for(owner, context.now)


def _single_owner(metadata: Object) -> str:
    """The uid of the only owner, which distinguishes objects that are each made for one owner."""
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list) or len(owners) != 1:
        return ""
    uid = owners[0].get("uid") if isinstance(owners[0], dict) else ""
    return uid if isinstance(uid, str) else ""


class _Creation:
    """The entries of a created object, from which those of others with the same structure are made."""

    __slots__ = ("_entries", "_owner")

    def __init__(self, entries: list[Object], owner: str) -> None:
        self._entries = entries
        self._owner = owner

    def entries_for(self, owner: str, now: str) -> list[Object]:
        entries = [{**entry, "time": now} for entry in self._entries]
        if owner == self._owner:
            return entries
        for entry in entries:
            fields = entry["fieldsV1"]
            metadata = fields.get("f:metadata") or {}
            owners = metadata.get("f:ownerReferences")
            if owners:
                swapped = _swapped(owners, self._owner, owner)
                changed = {**metadata, "f:ownerReferences": swapped}
                entry["fieldsV1"] = {**fields, "f:metadata": changed}
        return entries


def _swapped(owners: Object, before: str, after: str) -> Object:
    """The fields of owner references with one owner in place of another."""
    element, wanted = key_element({"uid": before}), key_element({"uid": after})
    return {wanted if name == element else name: below for name, below in owners.items()}


def note_update(call: Call, new: Object, old: Object, context: Context) -> None:
    """Make the writer the owner of what it changes."""
    part = call.subresource.name if call.subresource is not None else ""
    noted = manager_of(call).update(old, new, call.write.field_manager, context.now, part)
    new["metadata"] = noted["metadata"]


def same_but_for_times(new: Object, old: Object) -> bool:
    """Whether writing would change nothing but the times of the managers' last writes."""
    one, other = new["metadata"], old["metadata"]
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return False
    names = (one.keys() | other.keys()) - {"managedFields", "resourceVersion"}
    if any(one.get(name) != other.get(name) for name in names):
        return False
    return same_but_times(one.get("managedFields"), other.get("managedFields"))

"""How writes move the ownership of fields.

An updater gets the fields that the update changes, and all others lose them. An applier gets the fields it applies, whether they
change or not. It conflicts with the owners of fields it would change, and removes what it applied before and does not apply now,
unless another manager owns that. Owners in other versions of the kind are handled in terms of those versions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from drayman.apiserver.patching.combining import merge, remove
from drayman.apiserver.patching.conflicts import ConflictError, conflicts_of
from drayman.apiserver.patching.field_set import FieldSet, field_set, named_path, union
from drayman.apiserver.patching.managed_fields import Managed, Manager, Ownership
from drayman.apiserver.patching.shaped_sets import with_named_fields, with_whole_units
from drayman.apiserver.patching.shapes import Shape
from drayman.apiserver.patching.tracing import Comparison, compare, fields_of
from drayman.apiserver.patching.versions import Object, Versions

_UNTRACKED_METADATA: Final = "name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion"
UNTRACKED: Final = field_set(
    [
        *(named_path(name) for name in ("apiVersion", "kind", "metadata")),
        *(named_path("metadata", name) for name in _UNTRACKED_METADATA.split()),
    ]
)
"""Fields that identify an object or belong to the server: owning them would mean nothing."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of an apply. `obj` is None if it changes nothing but ownership."""

    obj: Object | None
    managed: Managed


def update(
    versions: Versions, live: Object, new: Object, api_version: str, managed: Managed
) -> tuple[Managed, FieldSet]:
    """Ownership after an update, and the updater's share of it. Both objects are in `api_version`."""
    changes = _Changes(versions, live, new, api_version)
    left = _settle(changes, _current(versions, managed), None, force=True)
    gained = changes.at(api_version).changed.without_trees(versions.reset_fields) - UNTRACKED
    return left, gained


def apply(
    versions: Versions,
    live: Object,
    config: Object,
    api_version: str,
    managed: Managed,
    manager: Manager,
    *,
    force: bool,
) -> Applied:
    """Merge a configuration. Both objects are in `api_version`. Raises `ConflictError`."""
    shape = versions.shapes[api_version]
    managed = _current(versions, managed)
    merged: Object = merge(shape, live, config)
    last = managed.get(manager)
    owned = fields_of(shape, config).without_trees(versions.reset_fields)
    claims = {**managed, manager: Ownership(owned, api_version, last.time if last else "")}
    if last is not None:
        merged = _prune(versions, merged, claims, manager, last)
    changes = _Changes(versions, live, merged, api_version)
    left = _settle(changes, claims, manager, force=force)
    if manager in left:
        kept = owned - UNTRACKED
        left = {**left, manager: replace(left[manager], fields=kept)}
        if not kept:
            del left[manager]
    return Applied(None if merged == live else merged, left)


def _current(versions: Versions, managed: Managed) -> Managed:
    """What is owned in terms of the current versions; those no longer served are omitted."""
    result: Managed = {}
    for manager, owned in managed.items():
        if versions.has(owned.api_version):
            fields = with_whole_units(versions.shapes[owned.api_version], owned.fields)
            result[manager] = owned if fields is owned.fields else replace(owned, fields=fields)
    return result


class _Changes:
    """What changes between two objects, in each version requested."""

    def __init__(self, versions: Versions, old: Object, new: Object, api_version: str) -> None:
        self._versions = versions
        self._old = old
        self._new = new
        self._known = {api_version: self._compare(api_version)}

    def at(self, api_version: str) -> Comparison:
        if api_version not in self._known:
            self._known[api_version] = self._compare(api_version)
        return self._known[api_version]

    def _compare(self, api_version: str) -> Comparison:
        versions = self._versions
        old, new = versions.at(self._old, api_version), versions.at(self._new, api_version)
        return compare(versions.shapes[api_version], old, new).ignoring(versions.reset_fields)


def _settle(changes: _Changes, managed: Managed, writer: Manager | None, *, force: bool) -> Managed:
    """Take changed and removed fields from all managers but the writer."""
    left: Managed = {}
    taken: dict[Manager, FieldSet] = {}
    for manager, owned in managed.items():
        if manager == writer:
            left[manager] = owned
            continue
        comparison = changes.at(owned.api_version)
        lost = owned.fields & comparison.changed
        if lost:
            taken[manager] = lost
        fields = owned.fields - lost - comparison.removed
        if fields:
            left[manager] = replace(owned, fields=fields)
    if taken and not force:
        raise ConflictError(conflicts_of(taken))
    return left


def _prune(
    versions: Versions, merged: Object, claims: Managed, manager: Manager, last: Ownership
) -> Object:
    """Remove what the manager applied last time, does not apply now, and no other manager owns."""
    version = last.api_version
    shape = versions.shapes[version]
    converted = versions.at(merged, version)
    last_fields = with_named_fields(shape, last.fields)
    if not last_fields - _claimed(versions, claims, version):
        return merged
    pruned = _without(shape, converted, last_fields)
    pruned = _give_back_owned(versions, converted, pruned, version, claims)
    before = with_named_fields(shape, fields_of(shape, converted))
    after = with_named_fields(shape, fields_of(shape, versions.at(pruned, version)))
    # What had no owner stays: the manager may only remove what it had applied.
    result = _without(shape, converted, (before - after) & last_fields)
    return versions.at(result, claims[manager].api_version)


def _claimed(versions: Versions, claims: Managed, api_version: str) -> FieldSet:
    """Everything owned, in terms of a version."""
    owned = union([one.fields for one in claims.values() if one.api_version == api_version])
    return with_named_fields(versions.shapes[api_version], owned)


def _give_back_owned(
    versions: Versions, merged: Object, pruned: Object, first: str, claims: Managed
) -> Object:
    """Put back what any manager owns, including this manager's new configuration.

    The version the pruning was done in goes first: without what is owned there, conversion might lack a field it needs.
    """
    owned_in = {ownership.api_version for ownership in claims.values()}
    for version in sorted(owned_in, key=lambda v: (v != first, v)):
        shape = versions.shapes[version]
        merged, pruned = versions.at(merged, version), versions.at(pruned, version)
        there = with_named_fields(shape, fields_of(shape, merged))
        kept = with_named_fields(shape, fields_of(shape, pruned))
        pruned = _without(shape, merged, there - (kept | _claimed(versions, claims, version)))
    return pruned


def _without(shape: Shape, obj: Object, fields: FieldSet) -> Object:
    left: Object = remove(shape, obj, fields) or {}
    return left

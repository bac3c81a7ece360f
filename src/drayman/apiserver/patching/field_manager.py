"""Keeps `metadata.managedFields` while objects of one kind are created, updated and applied in one API version.

The object's own fields are up to the caller: defaults are filled in before an update is recorded, so that they belong to the writer,
and after an apply, so that they belong to no manager.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.patching.checking import misfits, misfits_text
from drayman.apiserver.patching.conflicts import ConflictError
from drayman.apiserver.patching.last_applied import (
    KUBECTL,
    last_applied_of,
    unchanged_since_applied,
    with_last_applied,
)
from drayman.apiserver.patching.list_items import ItemError
from drayman.apiserver.patching.managed_fields import (
    Managed,
    ManagedFieldsError,
    Manager,
    Operation,
    Ownership,
    cap_update_managers,
    decode_managed,
    encode_managed,
    is_reset,
)
from drayman.apiserver.patching.ownership import Applied, apply, update
from drayman.apiserver.patching.versions import Object, Versions
from drayman.apiserver.protocol.errors import bad_request, internal

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of all fields of an object that had no recorded owners before the first apply."""

UNKNOWN: Final = "unknown"
"""The manager of a client without a name."""


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Records writes of objects of one kind in one API version. See the module for when to call it.

    Objects may be in any version that `versions` can convert, as their apiVersion says. Updated ones are returned in the version they came
    in, applied ones in the version of the live object, new ones in `api_version`.
    """

    api_version: str
    kind: str
    versions: Versions
    empty: Object
    """An object of this kind without content, in `api_version`: what a new one is compared with."""

    def create(self, obj: Object, manager: str, now: str, subresource: str = "") -> Object:
        """A new object with its creator as the owner of all it sets. managedFields it came with count as those of other managers."""
        return self.update(self.empty, obj, manager, now, subresource)

    def update(
        self, old: Object, new: Object, manager: str, now: str, subresource: str = ""
    ) -> Object:
        """An object to be written in place of another, with what changes owned by the writer.

        `new` may carry managedFields: through the main path they replace those of `old`, and an empty list makes the server
        forget them. Invalid ones change nothing, since no update fails because of ownership.
        """
        managed = _managed_before(old, new, is_main_path=not subresource)
        if not managed and _uid(old):
            # This object has no recorded owners: that begins with the first apply.
            return with_managed_fields(new, [])
        try:
            writer = self._manager("Update", manager, subresource)
            after = self._updated(old, new, managed, writer, now)
        except ItemError:
            return with_managed_fields(new, _metadata(old).get("managedFields") or [])
        return with_managed_fields(new, encode_managed(after))

    def apply(
        self,
        live: Object | None,
        applied: Object,
        manager: str,
        *,
        force: bool,
        now: str,
        subresource: str = "",
    ) -> Object:
        """The live object with a configuration merged into it; without a live one, a new object.

        Raises `ConflictError` if that would take fields from others and is not forced, `StatusError` if the configuration is
        invalid. The result is not defaulted, and null where a removed field must not be absent.
        """
        self._check(applied)
        before = live or {"apiVersion": self.api_version, "kind": self.kind}
        try:
            managed = decode_managed(_metadata(before).get("managedFields"))
        except ManagedFieldsError as error:
            raise bad_request(f"failed to decode managed fields: {error}") from error
        base = self.versions.at(_unmanaged(before), self.api_version)
        if not managed and live is not None:
            managed = self._owned_before_first_apply(base, now)
        writer = self._manager("Apply", manager, subresource)
        outcome = self._apply(base, applied, managed, writer, force=force)
        return self._finished(before, applied, outcome, writer, now)

    def _check(self, applied: Object) -> None:
        """Refuse what is not a configuration of this kind."""
        api_version, kind = applied.get("apiVersion") or "", applied.get("kind") or ""
        group_version = api_version if "/" in api_version else f"/{api_version}"
        if (api_version, kind) != (self.api_version, self.kind):
            raise bad_request(f"invalid object type: {group_version}, Kind={kind}")
        if _metadata(applied).get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        found = misfits(self.versions.shapes[self.api_version], applied)
        if found:
            metadata = _metadata(applied)
            name = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
            raise internal(
                f"failed to create typed patch object ({name}; {group_version}, Kind={kind}): "
                f"{misfits_text(found)}"
            )

    def _updated(
        self, old: Object, new: Object, managed: Managed, writer: Manager, now: str
    ) -> Managed:
        live = self.versions.at(_unmanaged(old), self.api_version)
        wanted = self.versions.at(_unmanaged(new), self.api_version)
        after, gained = update(self.versions, live, wanted, self.api_version, managed)
        if gained:
            owned = after.get(writer)
            fields = gained if owned is None else gained | owned.fields
            after[writer] = Ownership(fields, self.api_version, now)
        return cap_update_managers(after)

    def _owned_before_first_apply(self, live: Object, now: str) -> Managed:
        writer = Manager(BEFORE_FIRST_APPLY, "Update", self.api_version)
        return self._updated(self.empty, live, {}, writer, now)

    def _apply(
        self, live: Object, config: Object, managed: Managed, writer: Manager, *, force: bool
    ) -> Applied:
        try:
            return apply(
                self.versions, live, config, self.api_version, managed, writer, force=force
            )
        except ItemError as error:
            raise bad_request(f"failed to create typed live object: {error}") from error
        except ConflictError as error:
            if writer.name != KUBECTL:
                raise
            shape = self.versions.shapes[self.api_version]
            allowed = unchanged_since_applied(shape, live)
            remaining = tuple(c for c in error.conflicts if not allowed.has(c.path))
            if remaining:
                raise ConflictError(remaining) from error
            return apply(self.versions, live, config, self.api_version, managed, writer, force=True)

    def _finished(
        self, before: Object, applied: Object, outcome: Applied, writer: Manager, now: str
    ) -> Object:
        managed = outcome.managed
        if outcome.obj is None:
            obj = before
        else:
            obj = self.versions.at(outcome.obj, before["apiVersion"])
            if writer in managed:
                managed = {**managed, writer: replace(managed[writer], time=now)}
        if writer.name == KUBECTL and last_applied_of(obj):
            obj = with_last_applied(obj, applied)
        return with_managed_fields(obj, encode_managed(managed))

    def _manager(self, operation: Operation, name: str, subresource: str) -> Manager:
        api_version = self.api_version if operation == "Update" else ""
        return Manager(name or UNKNOWN, operation, api_version, subresource)


def _managed_before(old: Object, new: Object, *, is_main_path: bool) -> Managed:
    """The owners an update starts from. Invalid entries count as none."""
    if is_main_path:
        sent = _metadata(new).get("managedFields")
        if is_reset(sent):
            return {}
        managed = _understood(sent)
        if managed:
            return managed
    return _understood(_metadata(old).get("managedFields"))


def _understood(entries: Json) -> Managed:
    try:
        return decode_managed(entries)
    except ManagedFieldsError:
        # Garbled owners are as good as unknown, and the write must not fail because of them.
        return {}


def _metadata(obj: Object) -> dict[str, Json]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _uid(obj: Object) -> str:
    return _metadata(obj).get("uid") or ""


def _unmanaged(obj: Object) -> Object:
    """The object without managedFields, which have no owner and change with every write."""
    if "managedFields" not in _metadata(obj):
        return obj
    return with_managed_fields(obj, [])


def with_managed_fields(obj: Object, entries: list[dict[str, Json]]) -> Object:
    """A copy of an object with other entries; without any, the member is left out."""
    metadata = {name: v for name, v in _metadata(obj).items() if name != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}

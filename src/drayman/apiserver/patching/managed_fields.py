"""`metadata.managedFields`: who owns which fields, since when, and how it is written.

A manager is a name together with how it writes: by apply or by update, through which subresource and, for updates, in which API
version. A manager that applies in a new version keeps its entry; one that updates in two versions has two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import FieldSet, FieldSetError, decode, encode

Operation = Literal["Apply", "Update"]

MAX_UPDATE_MANAGERS: Final = 10
"""Beyond this the oldest are merged: otherwise a client that makes up a name for each write would grow objects without bound."""

ANCIENT_CHANGES: Final = "ancient-changes"
"""The manager that the oldest updates are merged into."""


class ManagedFieldsError(ValueError):
    """Invalid managedFields."""


class Manager(NamedTuple):
    """Who writes, and how. `api_version` is empty for managers that apply."""

    name: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    @property
    def text(self) -> str:
        """The manager as named in conflicts."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        if self.operation == "Update":
            text += f" using {self.api_version}"
        return text


@dataclass(frozen=True, slots=True)
class Ownership:
    """What a manager owns, in terms of an API version. `time` is empty if its writes never changed the object."""

    fields: FieldSet
    api_version: str
    time: str = ""


Managed = dict[Manager, Ownership]


def decode_managed(entries: Json) -> Managed:
    """The entries of an object. Raises `ManagedFieldsError`."""
    if not isinstance(entries, list | None):
        raise ManagedFieldsError("managedFields must be a list")
    return dict(_decode_entry(index, entry) for index, entry in enumerate(entries or ()))


def _decode_entry(index: int, entry: Mapping[str, Json]) -> tuple[Manager, Ownership]:
    operation = entry.get("operation")
    api_version = entry.get("apiVersion") or ""
    fields_type = entry.get("fieldsType")
    if operation not in ("Apply", "Update"):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    if not api_version:
        raise ManagedFieldsError("apiVersion must not be empty")
    if not fields_type:
        raise ManagedFieldsError(f"missing fieldsType in managed fields entry {index}")
    if fields_type != "FieldsV1":
        raise ManagedFieldsError(
            f'invalid fieldsType "{fields_type}" in managed fields entry {index}'
        )
    try:
        fields = decode(entry.get("fieldsV1") or {})
    except FieldSetError as error:
        raise ManagedFieldsError(f"error decoding set: {error}") from error
    manager = Manager(
        entry.get("manager") or "",
        operation,
        api_version if operation == "Update" else "",
        entry.get("subresource") or "",
    )
    return manager, Ownership(fields, api_version, entry.get("time") or "")


def encode_managed(managed: Managed) -> list[dict[str, Json]]:
    """The entries to write: those of apply first, then by age."""
    ordered = sorted(managed.items(), key=_entry_order)
    return [_encode_entry(manager, ownership) for manager, ownership in ordered]


def _entry_order(item: tuple[Manager, Ownership]) -> tuple[str, ...]:
    manager, owned = item
    return manager.operation, owned.time, manager.name, owned.api_version, manager.subresource


def _encode_entry(manager: Manager, ownership: Ownership) -> dict[str, Json]:
    entry: dict[str, Json] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": ownership.api_version,
        "time": ownership.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encode(ownership.fields),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def is_reset(entries: Json) -> bool:
    """Whether a client asks to forget all owners: an empty list, or one with an empty entry."""
    return entries in ([], [{}])


def cap_update_managers(managed: Managed) -> Managed:
    """Merge the oldest updates of a version into one manager, until there are no more than the limit."""
    updates = [manager for manager in managed if manager.operation == "Update"]
    excess = len(updates) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return managed
    result = dict(managed)
    first_of: dict[str, Manager] = {}
    for manager in sorted(updates, key=lambda m: (managed[m].time, m)):
        if excess == 0:
            break
        owned = managed[manager]
        first = first_of.setdefault(owned.api_version, manager)
        if first == manager:
            continue
        bucket = Manager(ANCIENT_CHANGES, "Update", owned.api_version)
        if bucket not in result:
            result[bucket] = result.pop(first)
        del result[manager]
        merged = result[bucket].fields | owned.fields
        result[bucket] = replace(owned, fields=merged)
        excess -= 1
    return result


def same_but_times(old: Json, new: Json) -> bool:
    """Whether two lists of entries differ only in their times."""
    return _without_times(old) == _without_times(new)


def _without_times(entries: Json) -> list[Json]:
    return [
        {name: value for name, value in entry.items() if name != "time"} for entry in entries or ()
    ]

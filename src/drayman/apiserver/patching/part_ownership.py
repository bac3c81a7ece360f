"""Ownership after a write that changes a few fields, computed on the stored entries.

For `drayman.apiserver.verbs.quick_parts`, which says what that gains.

The general way decodes every entry into sets, takes the changes from all of them and encodes them again. Mostly the fields that a
write changes belong to the writer or to no manager. Looking up only these in the stored entries shows that, and the others stay as
they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import FieldSet, Path, decode, encode
from drayman.apiserver.patching.managed_fields import MAX_UPDATE_MANAGERS, Manager
from drayman.apiserver.patching.ownership import UNTRACKED
from drayman.apiserver.patching.part_changes import FieldsV1
from drayman.apiserver.patching.tracing import Comparison

Entry = dict[str, Json]


def entries_after(
    entries: list[Entry], change: Comparison, writer: Manager, now: str
) -> list[Entry] | None:
    """The entries after an update by `writer`, or None if a manager owns fields in another version.

    Unchanged entries are returned as they are, not copied.
    """
    left: list[Entry] = []
    fields = change.changed - UNTRACKED
    gains = bool(fields)
    for entry in entries:
        if entry["apiVersion"] != writer.api_version:
            return None
        kept = _kept(entry, change)
        if gains and _is_of(entry, writer):
            fields |= decode(kept["fieldsV1"])
        elif kept["fieldsV1"]:
            left.append(kept)
    if gains:
        left.append(_entry(writer, encode(fields), now))
    if len(left) > MAX_UPDATE_MANAGERS:
        return None
    if len(left) > 1:
        left.sort(key=_order)
    return left


def entries_with(
    entries: list[Entry], additions: Mapping[Path, FieldsV1], writer: Manager, now: str
) -> list[Entry] | None:
    """The entries after `writer` set parts that were absent: the content of each, as FieldsV1, by its path of names.

    None if that needs a comparison: a manager owns one of the parts anyway, or fields in another version.
    """
    left: list[Entry] = []
    own: FieldsV1 = {}
    for entry in entries:
        if entry["apiVersion"] != writer.api_version or _has_any(entry["fieldsV1"], additions):
            return None
        if _is_of(entry, writer):
            own = entry["fieldsV1"]
        else:
            left.append(entry)
    fields = dict(own)
    for (holder, name), below in additions.items():
        place = f"f:{holder}"
        members = {**fields.get(place, {}), f"f:{name}": below}
        fields[place] = dict(sorted(members.items()))
    left.append(_entry(writer, dict(sorted(fields.items())), now))
    if len(left) > MAX_UPDATE_MANAGERS:
        return None
    left.sort(key=_order)
    return left


def _has_any(fields: FieldsV1, paths: Iterable[Path]) -> bool:
    for holder, name in paths:
        if f"f:{name}" in fields.get(f"f:{holder}", {}):
            return True
    return False


def _kept(entry: Entry, change: Comparison) -> Entry:
    """What an owner keeps: everything that is neither changed nor removed."""
    fields = entry["fieldsV1"]
    if not (
        _owns_any(fields, change.added)
        or _owns_any(fields, change.modified)
        or _owns_any(fields, change.removed)
    ):
        return entry
    left = decode(fields) - change.changed - change.removed
    return {**entry, "fieldsV1": encode(left)}


def _is_of(entry: Entry, writer: Manager) -> bool:
    """Whether an entry, in the version that the writer uses, belongs to the writer."""
    own = (entry.get("manager", ""), entry["operation"], entry.get("subresource", ""))
    return own == (writer.name, writer.operation, writer.subresource)


def _order(entry: Entry) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time", ""),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _owns_any(fields: Json, some: FieldSet) -> bool:
    """Whether any member of a set is among the fields of a stored entry."""
    for element in some.members:
        below = fields.get(element)
        if below is not None and (not below or "." in below):
            return True
    for element, inner in some.children.items():
        below = fields.get(element)
        if below and _owns_any(below, inner):
            return True
    return False


def _entry(writer: Manager, fields: FieldsV1, now: str) -> Entry:
    entry: Entry = {
        "manager": writer.name,
        "operation": writer.operation,
        "apiVersion": writer.api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if writer.subresource:
        entry["subresource"] = writer.subresource
    return entry

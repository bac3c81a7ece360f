"""Server-side tables and metadata-only views: what `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from drayman.api.pods import FINISHED
from drayman.api.struct import Json
from drayman.apiserver.protocol.negotiation import META_GROUP, View
from drayman.apiserver.served.resources import ApiResource, Column
from drayman.apiserver.served.strategy import Object

IncludeObject = Literal["Metadata", "Object", "None"]
CREATION: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created."
)
NAME: Final = Column(
    "Name",
    lambda obj, _: obj["metadata"].get("name", ""),
    format="name",
    description="Name must be unique within a namespace.",
)
CREATED_AT: Final = Column(
    "Created At",
    lambda obj, _: obj["metadata"].get("creationTimestamp"),
    type="date",
    description=CREATION,
)
DEFAULT_COLUMNS: Final = (NAME, CREATED_AT)
"""The columns of kinds that declare none."""


def table(
    resource: ApiResource,
    objects: Iterable[tuple[Object, Object]],
    metadata: Object,
    view: View,
    now: datetime,
    include: IncludeObject = "Metadata",
    *,
    definitions: bool = True,
) -> Object:
    """A table of objects, each given in the hub version and in the version asked for."""
    columns = resource.columns or DEFAULT_COLUMNS
    return {
        "kind": "Table",
        "apiVersion": f"{META_GROUP}/{view.version}",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns] if definitions else None,
        "rows": [_row(columns, hub, shown, now, include, view) for hub, shown in objects],
    }


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(
    columns: tuple[Column, ...],
    hub: Object,
    shown: Object,
    now: datetime,
    include: IncludeObject,
    view: View,
) -> Object:
    row: Object = {"cells": [column.cell(hub, now) for column in columns]}
    if conditions := row_conditions(hub):
        row["conditions"] = conditions
    row["object"] = _included(shown, include, view)
    return row


def row_conditions(obj: Object) -> list[Json]:
    """Finished pods are marked, so that clients can leave them out."""
    if obj.get("kind") != "Pod":
        return []
    phase = (obj.get("status") or {}).get("phase")
    if phase not in FINISHED:
        return []
    messages = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }
    condition = {"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}
    return [condition]


def _included(obj: Object, include: IncludeObject, view: View) -> Json:
    if include == "None":
        return None
    return obj if include == "Object" else partial_metadata(obj, view)


def partial_metadata(obj: Object, view: View) -> Object:
    """Only the metadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META_GROUP}/{view.version}",
        "metadata": obj["metadata"],
    }

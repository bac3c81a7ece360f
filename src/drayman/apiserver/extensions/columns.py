"""Printer columns of custom resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from drayman.api.struct import Json
from drayman.apiserver.answers.tables import CREATION, NAME
from drayman.apiserver.extensions.paths import JsonPath, JsonPathError, parse_json_path
from drayman.apiserver.kinds.tables import age_of, moment_of
from drayman.apiserver.served.encoding import encode
from drayman.apiserver.served.resources import Column
from drayman.apiserver.served.strategy import Object

_AGE: Mapping[str, Json] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": CREATION,
}


def custom_columns(declared: Sequence[Mapping[str, Json]]) -> tuple[Column, ...]:
    """The columns of a definition. An invalid path ends them, as upstream."""
    columns = [NAME]
    for one in declared or (_AGE,):
        try:
            path = parse_json_path(one["jsonPath"])
        except JsonPathError:
            break
        columns.append(_column(one, path))
    return tuple(columns)


def _column(declared: Mapping[str, Json], path: JsonPath) -> Column:
    type_name: str = declared["type"]

    def cell(obj: Object, now: datetime) -> Json:
        found = path.find(obj)
        return cell_value(found[0], type_name, now) if found else None

    text = f"Custom resource definition column (in JSONPath format): {declared['jsonPath']}"
    return Column(
        name=declared["name"],
        cell=cell,
        type=type_name,
        format=declared.get("format") or "",
        priority=declared.get("priority") or 0,
        description=declared.get("description") or text,
    )


def cell_value(value: Json, type_name: str, now: datetime) -> Json:
    """A value as a cell of a type; None if it cannot be shown as that type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_name:
        case "integer":
            return int(value) if is_number else None
        case "number":
            return float(value) if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            if not isinstance(value, str):
                return None
            return age_of(value, now) if moment_of(value) is not None else "<invalid>"
    if value is None or isinstance(value, str):
        return value
    return encode(value).decode()

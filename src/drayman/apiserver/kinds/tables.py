"""Columns that tables of several kinds share, and the words in their cells.

Ages are computed here and sent as text, because clients print cells as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from drayman.api import times
from drayman.api.struct import Json
from drayman.apiserver.kinds.reading import at, items_at, text_at
from drayman.apiserver.served.resources import Column
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources.scale import selector_text

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"

Cell = Callable[[Object, datetime], Json]

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


def human_duration(seconds: float) -> str:
    """A duration in at most two units, the finer one only while it matters."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, coarse: int, coarse_name: str, fine: int, fine_name: str) -> str:
    rest = seconds % coarse // fine
    return f"{seconds // coarse}{coarse_name}" + (f"{rest}{fine_name}" if rest else "")


def moment_of(timestamp: Json) -> datetime | None:
    """The time an RFC 3339 text names, or None where there is none."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return times.moment_of(timestamp)
    except ValueError:
        return None


def age_of(timestamp: Json, now: datetime) -> str:
    moment = moment_of(timestamp)
    return UNKNOWN if moment is None else human_duration((now - moment).total_seconds())


def since(*path: str) -> Cell:
    """A cell that shows how long ago the time at a path was."""
    return lambda obj, now: age_of(at(obj, *path), now)


def text(*path: str, missing: str = "") -> Cell:
    """A cell with the text at a path."""
    return lambda obj, _now: text_at(obj, *path) or missing


def number(*path: str) -> Cell:
    return lambda obj, _now: at(obj, *path) or 0


def column(name: str, cell: Cell, kind: str = "string", *, wide: bool = False) -> Column:
    return Column(name=name, cell=cell, type=kind, priority=1 if wide else 0)


NAME: Final = Column(name="Name", cell=text("metadata", "name"), format="name")
AGE: Final = column("Age", since("metadata", "creationTimestamp"))
CREATED_AT: Final = column("Created At", text("metadata", "creationTimestamp"), "date")
NAME_AND_AGE: Final = (NAME, AGE)


def joined_labels(labels: Mapping[str, Json]) -> str:
    """Labels as `a=b,c=d`, in order."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def _template_items(obj: Object, path: tuple[str, ...], member: str) -> str:
    containers: Iterable[Json] = items_at(obj, *path, "spec", "containers")
    return ",".join(text_at(container, member) for container in containers)


def template_columns(
    *path: str, selector: Cell | None = None, wide: bool = True
) -> tuple[Column, ...]:
    """The columns about a pod template at a path."""
    columns = (
        column("Containers", lambda obj, _now: _template_items(obj, path, "name"), wide=wide),
        column("Images", lambda obj, _now: _template_items(obj, path, "image"), wide=wide),
    )
    if selector is None:
        return columns
    return (*columns, column("Selector", selector, wide=wide))


def flag(*path: str) -> Cell:
    """Whether something is set."""
    return lambda obj, _now: bool(at(obj, *path))


def selector_cell(*path: str) -> Cell:
    return lambda obj, _now: selector_text(at(obj, *path)) or NONE

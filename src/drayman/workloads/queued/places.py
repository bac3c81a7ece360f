"""Where in an object its pod sets are: the path of each template, how many pods it comes to, and where that number may be changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json

Object = dict[str, Json]
Path = tuple[str | int, ...]
"""Names of members and positions in lists, from the root of an object."""

MAIN: Final = "main"


@dataclass(frozen=True, slots=True)
class Place:
    """A pod set of an object."""

    name: str
    template: Path
    count: int
    min_count: int | None = None
    """The fewest pods that the object is content with; None: all."""
    counts: tuple[Path, ...] = ()
    """Numbers that become the count when fewer pods are admitted."""
    index_label: str | None = None
    """The label from which the number of a pod within the set is read."""
    indexes: int | None = None
    """How many such numbers there are; None if that is not known."""
    subgroup_label: str | None = None
    subgroups: int | None = None


def read(value: Json, path: Sequence[str | int]) -> Json:
    """What is at a path; None where something on the way is missing."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def number(value: Json, default: int) -> int:
    """A number of pods as specs have them: absent means the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def pointer(path: Sequence[str | int]) -> str:
    """A path as JSON patches write it."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)

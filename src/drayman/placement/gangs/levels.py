"""How near members are to be, in annotations of `drayman.dev`.

They complete every dialect: on a pod or a Job that is a gang by annotation, and on the object of a gang that has no words for it, such as a
PodGroup of the coscheduling plugin.
"""

from __future__ import annotations

from typing import Final

from drayman.placement.gangs.gang import InvalidGangError, Slices, Wish
from drayman.placement.gangs.statements import Statements, field_of

REQUIRED: Final = "drayman.dev/required-level"
PREFERRED: Final = "drayman.dev/preferred-level"
SLICE_SIZE: Final = "drayman.dev/slice-size"
SLICE_LEVEL: Final = "drayman.dev/slice-level"
ALL: Final = (REQUIRED, PREFERRED, SLICE_SIZE, SLICE_LEVEL)


def wish_of(statements: Statements) -> Wish:
    """Raises InvalidGangError."""
    return Wish(statements.level(REQUIRED), statements.level(PREFERRED))


def slices_of(statements: Statements) -> tuple[Slices, ...]:
    """Raises InvalidGangError."""
    return sliced(
        statements.count(SLICE_SIZE, least=2),
        statements.level(SLICE_LEVEL),
        field_of(SLICE_SIZE),
        field_of(SLICE_LEVEL),
    )


def sliced(
    size: int | None, level: str | None, size_field: str, level_field: str
) -> tuple[Slices, ...]:
    """Slices of this size, each in one domain of this level. Neither makes sense without the other. Raises InvalidGangError."""
    if size is None and level is None:
        return ()
    if size is None:
        raise InvalidGangError(size_field, "is required: the level of slices is stated")
    if level is None:
        raise InvalidGangError(level_field, "is required: the size of slices is stated")
    return (Slices(size, Wish(required=level)),)

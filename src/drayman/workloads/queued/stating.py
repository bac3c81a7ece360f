"""What labels and annotations of queued work may say: whatever they state is acted on, so that what cannot be understood is refused.

As Kueue's webhooks do it. What was there before is left alone, so that an object can be changed in other respects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from drayman.api.integers import parse_integer
from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, invalid
from drayman.workloads.queued.names import (
    COMPLETIONS_FOLLOW,
    MAX_EXECUTION,
    MIN_PARALLELISM,
    annotations_of,
    labels_of,
)

_MOST: Final = 2**31 - 1


def misstated(new: Mapping[str, Json], old: Mapping[str, Json] | None) -> Iterator[FieldError]:
    """What an object states about its time in a queue that makes no sense."""
    before = {} if old is None else {**labels_of(old), **annotations_of(old)}
    for part, stated in (("labels", labels_of(new)), ("annotations", annotations_of(new))):
        for name, problem in _CHECKS[part].items():
            value = stated.get(name)
            if value is not None and value != before.get(name) and (why := problem(value)):
                yield invalid(f"metadata.{part}[{name}]", value, why)


def _no_count(value: str) -> str:
    number = parse_integer(value)
    fits = number is not None and 0 < number <= _MOST
    return "" if fits else "must be a whole number, 1 or more"


def _no_choice(value: str) -> str:
    return "" if value in ("true", "false") else "must be true or false"


_CHECKS: Final = {
    "labels": {MAX_EXECUTION: _no_count},
    "annotations": {MIN_PARALLELISM: _no_count, COMPLETIONS_FOLLOW: _no_choice},
}

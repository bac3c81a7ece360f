"""Memory for what objects have in common.

`make bench-api`: the creation of a pod takes 320 us of CPU without it, and 215 with it. `drayman bench schedule` on
SchedulingWithResourceClaimTemplate/2000pods_100nodes takes about 8 % more CPU of the server without it.

Thousands of objects are made from one template: their names differ and their specs do not. Reading, defaulting, checking and
normalising a spec are functions of its content and nothing else, and together cost far more than writing the content down. So what
they came to is remembered by that: the JSON text of what they were given. What depends on anything besides, such as names, owners and
other objects, is done anew for each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

import msgspec

from drayman.api.struct import Json
from drayman.apiserver.served.strategy import Object
from drayman.bounded import Bounded

T = TypeVar("T")

MOST_KEPT: Final = 256
LONGEST: Final = 16 * 1024
"""Bytes of the longest text that is remembered. Larger specs are rare and seldom alike."""

_everything: Final[list[dict[Hashable, Any]]] = []
"""What is remembered anywhere. Memories are made once, for as long as the process lives."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def text_of(value: Json) -> bytes | None:
    """The content of a value, equal for equal values only; None for what is too large or no JSON."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return text if len(text) <= LONGEST else None


class Recurring(Generic[T]):
    """What some function came to, by what it was given: the most recent of it. Nobody may change what is kept here."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: Bounded[Hashable, T] = Bounded(MOST_KEPT)
        _everything.append(self._kept)

    def find(self, given: Hashable) -> T | None:
        return self._kept.get(given)

    def keep(self, given: Hashable, result: T) -> T:
        self._kept[given] = result
        return result

    def of(self, value: Json, compute: Callable[[Json], T]) -> T:
        """What a function makes of a value. It is the same function whenever this is asked, and its result is not None."""
        text = text_of(value)
        if text is None:
            return compute(value)
        found = self._kept.get(text)
        return self.keep(text, compute(value)) if found is None else found


class RecurringChange:
    """Changes of specs in place, each a function of the spec alone and of what is named with it."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: Recurring[bytes] = Recurring()

    def changed(self, spec: Object, change: Callable[[Object], Object], *of: Hashable) -> Object:
        """What a change makes of a spec: the spec itself, or a copy. Either is the caller's own."""
        text = text_of(spec)
        if text is None:
            return change(spec)
        after = self._texts.find((*of, text))
        if after is not None:
            copy: Object = _decode(after)
            return copy
        result = change(spec)
        self._texts.keep((*of, text), _encode(result))
        return result


def forget_everything() -> None:
    """Start with nothing in memory, as a new process does. Nothing comes out differently, only later."""
    for kept in _everything:
        kept.clear()

"""A cache for what objects have in common.

`make bench-api`: the creation of a pod takes 320 us of CPU without it, and 215 with it. `drayman bench schedule` on
SchedulingWithResourceClaimTemplate/2000pods_100nodes takes about 8 % more CPU of the server without it.

Thousands of objects are made from one template: their names differ and their specs do not. Reading, defaulting, checking and
normalising a spec depend only on its content, and together cost far more than writing the content down. So their results are cached
by that content: the JSON text of the input. What depends on anything else, such as names, owners and other objects, is computed for
each object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec

from drayman.api.struct import Json
from drayman.apiserver.served.strategy import Object
from drayman.bounded import Bounded

T = TypeVar("T")

MOST_KEPT: Final = 256
LONGEST: Final = 16 * 1024
"""Bytes of the longest text that is cached. Larger specs are rare and seldom equal."""

_everything: Final[list[dict[Hashable, Any]]] = []
"""All caches. Each is created once and lives as long as the process."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def text_of(value: Json) -> bytes | None:
    """The content of a value, equal for equal values only; None if it is too large or not JSON."""
    text = _content(value)
    return text if text is not None and len(text) <= LONGEST else None


def digest_of(value: Json) -> bytes | None:
    """What stands for the content of a value of any size, for results that are small themselves; None if it is not JSON."""
    text = _content(value)
    return None if text is None else blake2b(text, digest_size=32).digest()


def size_of(value: Json) -> int:
    """How many bytes a value has as JSON; 0 if it is not JSON."""
    return len(_content(value) or b"")


def _content(value: Json) -> bytes | None:
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


class Recurring(Generic[T]):
    """The most recent results of a function, by its input. The cached values must not be changed."""

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
        """The result of a function for a value. It must be the same function on every call, and its result is never None."""
        text = text_of(value)
        if text is None:
            return compute(value)
        found = self._kept.get(text)
        return self.keep(text, compute(value)) if found is None else found


class RecurringChange:
    """In-place changes of specs, each a function only of the spec and of what is named with it."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: Recurring[bytes] = Recurring()

    def changed(self, spec: Object, change: Callable[[Object], Object], *of: Hashable) -> Object:
        """The result of a change to a spec: the spec itself, or a copy. Either belongs to the caller."""
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
    """Empty all caches, as in a new process. Results stay the same but take longer."""
    for kept in _everything:
        kept.clear()

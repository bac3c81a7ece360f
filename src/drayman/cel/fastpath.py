"""What generated code calls.

Everything here either gives exactly the value that the interpreter gives, or raises. The caller takes any `Bail` or evaluation error as a
request to ask the interpreter, so nothing here needs to know which error it would have been, or whether it would have been absorbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from drayman.cel.dispatch import dispatcher
from drayman.cel.functions import Function, Overload
from drayman.cel.standard.collections import lookup
from drayman.cel.standard.comparison import compare
from drayman.cel.values import (
    LISTS,
    MISSING,
    NONE,
    MapValue,
    Opaque,
    OptionalValue,
)


class Bail(Exception):
    """The fast path does not know."""


def bail() -> NoReturn:
    raise Bail


def caller(function: Function, overload: Overload | None) -> Callable[..., object]:
    """Calls the given overload, or whichever fits."""
    run = dispatcher(function, overload)
    return lambda *args: run(args)


def is_opaque(value: object) -> bool:
    return isinstance(value, Opaque)


def index(container: object, key: object) -> object:
    value = lookup(container, key)
    if value is MISSING:
        raise Bail
    return value


def present(container: object, key: object) -> bool:
    if container.__class__ is OptionalValue:
        raise Bail
    return lookup(container, key) is not MISSING


def optional_step(container: object, key: object) -> OptionalValue:
    """One step of a path from its first optional step on: the container is an optional, or plain at that first step."""
    if isinstance(container, OptionalValue):
        if container is NONE:
            return NONE
        container = container.value
    value = lookup(container, key)
    return NONE if value is MISSING else OptionalValue(value)


def or_value(optional: object, default: Callable[[], object]) -> object:
    if not isinstance(optional, OptionalValue):
        raise Bail
    return default() if optional is NONE else optional.value


def or_optional(optional: object, other: Callable[[], object]) -> object:
    if not isinstance(optional, OptionalValue):
        raise Bail
    return other() if optional is NONE else optional


def ordered(left: object, right: object) -> int:
    return compare(left, right)


def _values(container: object) -> Iterable[object]:
    if isinstance(container, MapValue):
        return container.members()
    if isinstance(container, LISTS):
        return container
    raise Bail


def _pairs(container: object) -> Iterable[tuple[object, object]]:
    if isinstance(container, MapValue):
        return container.pairs()
    if isinstance(container, LISTS):
        return enumerate(container)
    raise Bail


def every(container: object, predicate: Callable[[object], object]) -> bool:
    for value in _values(container):
        verdict = predicate(value)
        if verdict is False:
            return False
        if verdict is not True:
            raise Bail
    return True


def some(container: object, predicate: Callable[[object], object]) -> bool:
    for value in _values(container):
        verdict = predicate(value)
        if verdict is True:
            return True
        if verdict is not False:
            raise Bail
    return False


def every_pair(container: object, predicate: Callable[[object, object], object]) -> bool:
    for key, value in _pairs(container):
        verdict = predicate(key, value)
        if verdict is False:
            return False
        if verdict is not True:
            raise Bail
    return True


def some_pair(container: object, predicate: Callable[[object, object], object]) -> bool:
    for key, value in _pairs(container):
        verdict = predicate(key, value)
        if verdict is True:
            return True
        if verdict is not False:
            raise Bail
    return False


def mapped(
    container: object,
    transform: Callable[[object], object],
    condition: Callable[[object], object] | None = None,
) -> list[object]:
    """`map` and `filter`."""
    found: list[object] = []
    for value in _values(container):
        if condition is not None:
            verdict = condition(value)
            if verdict is False:
                continue
            if verdict is not True:
                raise Bail
        found.append(transform(value))
    return found

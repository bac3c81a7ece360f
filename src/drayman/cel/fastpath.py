"""What generated code calls.

Everything here either gives exactly the value that the interpreter gives, or raises. The caller takes any `Bail` or evaluation error as a
request to ask the interpreter, so nothing here needs to know which error it would have been, or whether it would have been absorbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from drayman.cel.dispatch import accepts, dispatcher
from drayman.cel.functions import Function, Overload
from drayman.cel.standard.collections import lookup
from drayman.cel.types import Kind, Type
from drayman.cel.values import (
    LISTS,
    MISSING,
    NONE,
    MapValue,
    Opaque,
    OptionalValue,
    UInt,
    compare,
)


class Bail(Exception):
    """The fast path does not know."""


def bail() -> NoReturn:
    raise Bail


_CLASSES: dict[Kind, frozenset[type]] = {
    Kind.BOOL: frozenset((bool,)),
    Kind.INT: frozenset((int,)),
    Kind.UINT: frozenset((UInt,)),
    Kind.DOUBLE: frozenset((float,)),
    Kind.STRING: frozenset((str,)),
    Kind.BYTES: frozenset((bytes,)),
}


def direct(overload: Overload) -> Callable[..., object]:
    """The implementation of an overload behind a check of its arguments' classes, which are learned as they come by."""
    known = [set(_CLASSES.get(param.kind, ())) for param in overload.params]
    implementation = overload.implementation
    if any(_depends_on_content(param) for param in overload.params):
        known = [set() for _ in known]

    def call(*args: object) -> object:
        for arg, classes in zip(args, known, strict=True):
            if arg.__class__ not in classes:
                return slow(args)
        return implementation(*args)

    def slow(args: Sequence[object]) -> object:
        if not accepts(overload, args):
            raise Bail
        for arg, param, classes in zip(args, overload.params, known, strict=True):
            if not _depends_on_content(param):
                classes.add(arg.__class__)
        return implementation(*args)

    return call


def _depends_on_content(type_: Type) -> bool:
    return type_.kind in (Kind.LIST, Kind.MAP)


def dispatched(function: Function) -> Callable[..., object]:
    """Whichever overload fits."""
    run = dispatcher(function, None)
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

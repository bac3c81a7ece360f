"""Which overload takes which values at run time.

Static types leave this open wherever a value is dynamic. Only the first entry of lists and maps is looked at, as upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Overload
from drayman.cel.types import Type, TypeKind
from drayman.cel.values import LISTS, MapValue, no_such_overload, type_name

_CONTAINERS = (*LISTS, MapValue)  # whether they fit depends on what is in them
_ANYTHING = frozenset((TypeKind.DYN, TypeKind.ANY, TypeKind.PARAMETER))

# Functions that upstream implements by what a value can do rather than by signatures: their errors name no types.
_BY_TRAIT = frozenset(
    ("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_<_", "_<=_", "_>_", "_>=_", "@in", "!_")
)
_SINGLETONS = _BY_TRAIT | {
    "size",
    "matches",
    "type",
    "dyn",
    "_==_",
    "_!=_",
    "@not_strictly_false",
    "sort",
    "@sortByAssociatedKeys",
}


def fits(type_: Type, value: object) -> bool:
    """Whether a value can be passed where a type is declared."""
    if type_.kind in _ANYTHING:
        return True
    if type_.name != type_name(value):
        return False
    if type_.kind is TypeKind.LIST and isinstance(value, LISTS) and len(value):
        return fits(type_.parameters[0], value[0])
    if type_.kind is TypeKind.MAP and isinstance(value, MapValue) and value:
        key, first = next(value.pairs())
        return fits(type_.parameters[0], key) and fits(type_.parameters[1], first)
    return True


def accepts(overload: Overload, args: Sequence[object]) -> bool:
    if len(overload.params) != len(args):
        return False
    return not overload.guarded or all(
        fits(param, arg) for param, arg in zip(overload.params, args, strict=True)
    )


def is_singleton(function: Function) -> bool:
    """Whether upstream has one implementation for all overloads, so that the resolved overload does not bind it."""
    return function.name in _SINGLETONS


def dispatcher(
    function: Function, overload: Overload | None
) -> Callable[[Sequence[object]], object]:
    """Calls the given overload, or whichever fits; raises EvaluationError if none does."""
    choice = _Choice(function, overload)

    def run(args: Sequence[object]) -> object:
        implementation = choice.get(tuple(map(type, args)))
        return (implementation or choice.make(args))(*args)

    return run


def binary_dispatcher(
    function: Function, overload: Overload | None
) -> Callable[[object, object], object]:
    """The same for two arguments, as most operators have: nothing is packed and unpacked."""
    choice = _Choice(function, overload)

    def run(left: object, right: object) -> object:
        implementation = choice.get((left.__class__, right.__class__))
        return (implementation or choice.make((left, right)))(left, right)

    return run


class _Choice(dict[tuple[type, ...], Callable[..., object]]):
    """The implementations that were chosen before, by the classes of the arguments."""

    __slots__ = ("_candidates", "_name")

    def __init__(self, function: Function, overload: Overload | None) -> None:
        super().__init__()
        self._name = function.name
        if overload is not None and not is_singleton(function):
            self._candidates: tuple[Overload, ...] = (overload,)
        else:
            self._candidates = function.overloads + function.dynamic

    def make(self, args: Sequence[object]) -> Callable[..., object]:
        implementation = _implementation(self._name, self._candidates, args)
        classes = tuple(map(type, args))
        if not any(issubclass(of, _CONTAINERS) for of in classes):
            self[classes] = implementation
        return implementation


def _implementation(
    name: str, candidates: Sequence[Overload], args: Sequence[object]
) -> Callable[..., object]:
    for candidate in candidates:
        if accepts(candidate, args):
            return candidate.implementation
    if name in _SINGLETONS:
        raise no_such_overload()
    raise EvaluationError(f"no such overload: {name}({', '.join(map(type_name, args))})")

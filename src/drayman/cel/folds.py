"""Comprehensions at run time.

The accumulator gets its first value when it is first read, so that `cel.bind` costs nothing for a variable that is not used. A list
or map that a macro builds is extended in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from msgspec import Struct

from drayman.cel.errors import EvaluationError
from drayman.cel.runtime import UNSET, State, Step
from drayman.cel.values import LISTS, Concatenation, MapValue, type_name

_GO_TYPES = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
}


class Fold(Struct, frozen=True):
    """The slots of a comprehension and how its accumulator starts."""

    first: int
    second: int
    accumulator: int
    init: Step
    builds: bool  # whether it builds up a list or map from an empty one
    two: bool

    def read_accumulator(self) -> Step:
        """Reads the accumulator, which may be a list or map under construction: only the macro's own step can name it."""
        slot, init, builds = self.accumulator, self.init, self.builds

        def step(state: State) -> object:
            value = state.slots[slot]
            if value is UNSET:
                value = init(state)
                if builds:
                    value = MapValue() if isinstance(value, MapValue) else []
                state.slots[slot] = value
            return value

        return step


def local_step(slot: int) -> Step:
    return lambda state: state.slots[slot]


def fold_step(fold: Fold, iter_range: Step, condition: Step, step: Step, result: Step) -> Step:
    first, second, accumulator = fold.first, fold.second, fold.accumulator

    def run(state: State) -> object:
        values = iter_range(state)
        if isinstance(values, EvaluationError):
            return values
        state.slots[accumulator] = UNSET
        entries = _entries(values, two=fold.two)
        if entries is None:
            return _not_iterable(values, two=fold.two)
        slots = state.slots
        for slots[first], slots[second] in entries:
            if condition(state) is False:
                break
            slots[accumulator] = step(state)
        return result(state)

    return run


def _entries(values: object, *, two: bool) -> Iterable[tuple[object, object]] | None:
    """What the variables of a comprehension get in each iteration; None for values that are neither list nor map."""
    if isinstance(values, MapValue):
        return values.pairs()
    if not isinstance(values, LISTS):
        return None
    elements = values.walk() if isinstance(values, Concatenation) else values
    return enumerate(elements) if two else zip(elements, repeat(None))


def _not_iterable(value: object, *, two: bool) -> EvaluationError:
    shown = _GO_TYPES.get(type_name(value), type_name(value))
    if two:
        return EvaluationError(f"unsupported comprehension range type: {shown}")
    return EvaluationError(f"got '{shown}', expected iterable type")

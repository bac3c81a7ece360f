"""Comprehensions at run time.

The accumulator gets its first value when it is first read, so that `cel.bind` costs nothing for a variable that is not used. A list
or map that a macro builds is extended in place; a step other than the macro's own that reads it gets a copy, charged by its size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Fold:
    """The slots of a comprehension and how its accumulator starts."""

    first: int
    second: int
    accumulator: int
    init: Step
    builds: bool  # a list or map from nothing
    two: bool

    def read_accumulator(self, *, shared: bool) -> Step:
        """Reads the accumulator; `shared` gives the very object under construction."""
        slot, init, builds = self.accumulator, self.init, self.builds

        def step(state: State) -> object:
            value = state.slots[slot]
            if value is UNSET:
                value = init(state)
                if builds:
                    value = MapValue() if isinstance(value, MapValue) else []
                state.slots[slot] = value
            if builds and not shared and isinstance(value, list | MapValue):
                state.charge(len(value))
                return MapValue(value) if isinstance(value, MapValue) else list(value)
            return value

        return step


def local_step(slot: int) -> Step:
    return lambda state: state.slots[slot]


def fold_step(fold: Fold, iter_range: Step, condition: Step, step: Step, result: Step) -> Step:
    def run(state: State) -> object:
        values = iter_range(state)
        if isinstance(values, EvaluationError):
            return values
        state.slots[fold.accumulator] = UNSET
        if isinstance(values, MapValue):
            entries: Iterable[tuple[object, object]] = values.pairs()
        elif isinstance(values, LISTS):
            elements = values.walk() if isinstance(values, Concatenation) else values
            entries = enumerate(elements) if fold.two else ((value, None) for value in elements)
        else:
            return _not_iterable(values, two=fold.two)
        for first, second in entries:
            state.slots[fold.first] = first
            state.slots[fold.second] = second
            if condition(state) is False:
                break
            state.slots[fold.accumulator] = step(state)
        return result(state)

    return run


def _not_iterable(value: object, *, two: bool) -> EvaluationError:
    shown = _GO_TYPES.get(type_name(value), type_name(value))
    if two:
        return EvaluationError(f"unsupported comprehension range type: {shown}")
    return EvaluationError(f"got '{shown}', expected iterable type")

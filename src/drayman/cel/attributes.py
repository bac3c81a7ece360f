"""Paths such as `device.attributes["x"].y` at run time.

A path is resolved as a whole: it costs one for itself and one for each step that is taken, steps after a missing optional one are not
taken, and a condition followed by a path (`(c ? a : b).x`) applies the path to whichever branch is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from drayman.cel.costs import SELECT
from drayman.cel.errors import AbortError, CostLimitError, EvaluationError
from drayman.cel.runtime import State, Step
from drayman.cel.standard.collections import lookup, missing
from drayman.cel.values import (
    MISSING,
    NONE,
    MapValue,
    Opaque,
    OptionalValue,
    TypeValue,
    no_such_overload,
    type_name,
)


@dataclass(frozen=True, slots=True)
class Qualifier:
    """One step of a path: a key, known or computed by `key_of`."""

    key: object = None
    key_of: Step | None = None
    optional: bool = False
    test_only: bool = False

    def apply(self, state: State, container: object) -> object:
        """The value under the key, or an error. With `test_only`, whether there is one."""
        key = self.key if self.key_of is None else self.key_of(state)
        state.charge(SELECT)
        if isinstance(key, EvaluationError):
            return key
        found = _lookup(container, key)
        if self.test_only:
            return found if isinstance(found, EvaluationError) else found is not MISSING
        return missing(container, key) if found is MISSING else found

    def apply_if_present(self, state: State, container: object) -> object:
        """The value, an error, or `MISSING`. Only a step that leads somewhere is charged."""
        key = self.key if self.key_of is None else self.key_of(state)
        if isinstance(key, EvaluationError):
            return key
        found = _lookup(container, key)
        if found is MISSING:
            return MISSING
        if isinstance(found, EvaluationError):
            return found
        state.charge(SELECT)
        return found


def _lookup(container: object, key: object) -> object:
    try:
        return lookup(container, key)
    except AbortError:
        raise
    except EvaluationError as error:
        return error


class Attribute(Protocol):
    def add(self, qualifier: Qualifier) -> None:
        """Extends the path."""

    def resolve(self, state: State) -> object:
        """The value at the end of the path, without the cost of the path itself."""

    @property
    def step(self) -> Step:
        """The same with that cost. Call it only when the path is complete."""


@dataclass(slots=True)
class Path:
    root: Step
    qualifiers: list[Qualifier] = field(default_factory=list)
    free: bool = False  # a presence test itself costs nothing
    local: int | None = None  # the slot that the root reads, if it is a local variable

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)
        self.free = self.free or qualifier.test_only

    @property
    def step(self) -> Step:
        if self.qualifiers:
            return self._charged
        return _charged(self.root) if self.local is None else _charged_local(self.local)

    def _charged(self, state: State) -> object:
        value = self.resolve(state)
        if not self.free:
            state.charge(SELECT)
        elif isinstance(value, OptionalValue):
            return value is not NONE
        return value

    def resolve(self, state: State) -> object:
        value = self.root(state)
        if isinstance(value, EvaluationError):
            return value
        optional = isinstance(value, OptionalValue)
        if isinstance(value, OptionalValue):
            value = _reread(value)
            if value is NONE or not self.qualifiers:
                return value
            value = value.value
            if isinstance(value, EvaluationError):
                return value
        for qualifier in self.qualifiers:
            optional = optional or qualifier.optional
            if optional:
                value = qualifier.apply_if_present(state, value)
                if value is MISSING:
                    return NONE
            else:
                value = qualifier.apply(state, value)
            if isinstance(value, EvaluationError):
                return value
        return OptionalValue(value) if optional else value


def _reread(optional: OptionalValue) -> OptionalValue:
    """An optional as it is when a path starts from it, such as one in a variable.

    Upstream unwraps it to a value of the host language and converts it back. That loses nested optionals and types, and fails for the
    values of libraries: `cel.bind(m, device.capacity["x"].?memory, m.value())` is an error if there is a value.
    """
    return optional if optional is NONE else OptionalValue(_native(optional.value))


def _native(value: object) -> object:
    match value:
        case Opaque():
            return EvaluationError(f"unsupported conversion to ref.Val: {type_name(value)}")
        case OptionalValue():
            return None if value is NONE else _native(value.value)
        case TypeValue():
            return value.name
        case MapValue():
            return value.plain()
    return value


def _charged(root: Step) -> Step:
    """A path that is only a root. The body is `State.charge`, inlined because variables are read all the time."""

    def step(state: State) -> object:
        value = root(state)
        state.cost += SELECT
        if state.cost > state.limit:
            raise CostLimitError
        return _reread(value) if isinstance(value, OptionalValue) else value

    return step


def _charged_local(slot: int) -> Step:
    def step(state: State) -> object:
        state.cost += SELECT
        if state.cost > state.limit:
            raise CostLimitError
        value = state.slots[slot]
        return _reread(value) if isinstance(value, OptionalValue) else value

    return step


@dataclass(slots=True)
class Conditional:
    condition: Step
    if_true: Attribute
    if_false: Attribute

    def add(self, qualifier: Qualifier) -> None:
        self.if_true.add(qualifier)
        self.if_false.add(qualifier)

    def step(self, state: State) -> object:
        return self.resolve(state)

    def resolve(self, state: State) -> object:
        value = self.condition(state)
        if value is True:
            return self.if_true.resolve(state)
        if value is False:
            return self.if_false.resolve(state)
        return value if isinstance(value, EvaluationError) else no_such_overload()

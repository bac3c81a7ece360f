"""Calls of functions at run time: arguments, cost, implementation.

Upstream evaluates both arguments of most binary functions before it looks at errors, and charges the call in any case; calls with more
arguments stop at the first error and charge nothing. The costs of failing expressions show the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drayman.cel.costs import PENDING, CostRule
from drayman.cel.dispatch import binary_dispatcher, dispatcher, is_singleton
from drayman.cel.errors import AbortError, CostLimitError, EvaluationError, InternalError
from drayman.cel.functions import Function, Overload
from drayman.cel.runtime import State, Step
from drayman.cel.standard.collections import insert
from drayman.cel.values import LISTS, MapValue, Opaque, equal, slot

_BINARY = 2


def call_step(
    function: Function,
    overload: Overload | None,
    steps: Sequence[Step],
    *,
    stops_early: bool = False,
    grows: bool = False,
) -> Step:
    """A call of the only overload that fits the static types, or of whichever fits at run time.

    With `grows` the first argument is a list or map under construction, which is extended in place.
    """
    if function.name == "@not_strictly_false":
        return _not_strictly_false(steps[0])
    run = _growing(function) if grows else dispatcher(function, overload)
    rule = cost_rule(function, overload)
    if not steps:
        return _constant_call(run, rule)
    stops_early = stops_early or len(steps) > _BINARY or _is_variadic(function, overload)
    if len(steps) == _BINARY and rule is _unit and not stops_early and not grows:
        return _operator_step(binary_dispatcher(function, overload), steps[0], steps[1])

    def step(state: State) -> object:
        args: list[object] = []
        error: EvaluationError | None = None
        for argument in steps:
            value = argument(state)
            args.append(value)
            if isinstance(value, EvaluationError) and error is None:
                error = value
                if stops_early and len(args) < len(steps):
                    return error
        if error is not None:
            state.charge(rule(args, error))
            return error
        return _run(state, run, rule, args)

    return step


def _operator_step(run: Callable[[object, object], object], left: Step, right: Step) -> Step:
    """A call with two arguments that costs one, with everything inlined: most loops consist of arithmetic and comparisons."""

    def step(state: State) -> object:
        a, b = left(state), right(state)
        if isinstance(a, EvaluationError):
            result: object = a
        elif isinstance(b, EvaluationError):
            result = b
        else:
            try:
                result = run(a, b)
            except AbortError:
                raise
            except EvaluationError as error:
                result = error
        state.cost += 1
        if state.cost > state.limit:
            raise CostLimitError
        return result

    return step


def _run(
    state: State, run: Callable[[Sequence[object]], object], rule: CostRule, args: list[object]
) -> object:
    expected = rule(args, PENDING)
    if state.cost + expected > state.limit:
        state.charge(expected)
    result: object
    try:
        result = run(args)
    except AbortError:
        raise
    except EvaluationError as error:
        result = error
    state.charge(rule(args, result))
    return result


def _constant_call(run: Callable[[Sequence[object]], object], rule: CostRule) -> Step:
    def step(state: State) -> object:
        return _run(state, run, rule, [])

    return step


def _is_variadic(function: Function, overload: Overload | None) -> bool:
    if is_singleton(function):
        return False
    if overload is None:
        return len(function.overloads) > 1
    return overload.variadic


def cost_rule(function: Function, overload: Overload | None) -> CostRule:
    """What a call costs: by the overload's rule, else by the function's, else one."""
    if overload is not None and overload.rule.cost is not None:
        return overload.rule.cost
    return function.rule.cost or _unit


def _unit(args: Sequence[object], result: object) -> int:
    return 1


def _not_strictly_false(argument: Step) -> Step:
    def step(state: State) -> object:
        value = argument(state)
        state.cost += 1
        if state.cost > state.limit:
            raise CostLimitError
        return value if value.__class__ is bool else True

    return step


def equality_step(overload: Overload, left: Step, right: Step) -> Step:
    """`==` or `!=`. For `!=`, values that cannot be compared count as different."""
    rule = overload.rule.cost or _unit
    negated = overload.id == "not_equals"

    def step(state: State) -> object:
        a, b = left(state), right(state)
        # Known before the comparison, which is not started if it would be too expensive.
        state.charge(rule((a, b), PENDING))
        if isinstance(a, EvaluationError):
            return a
        if isinstance(b, EvaluationError):
            return b
        try:
            return equal(a, b) is not negated
        except AbortError:
            raise
        except EvaluationError as error:
            return True if negated else error

    return step


def membership_step(value_step: Step, values: object) -> Step | None:
    """`x in [constants]` as a set lookup, which costs nothing; None if the list is not of scalars."""
    assert isinstance(values, LISTS)
    members = MapValue()
    for value in values:
        if not isinstance(value, bool | int | float | str):
            return None
        members[slot(value)] = True

    def step(state: State) -> object:
        value = value_step(state)
        if isinstance(value, bool | int | float | str):
            return members.has(value) or (isinstance(value, int) and _has_double(members, value))
        if isinstance(value, bytes) or (isinstance(value, Opaque) and not value.hashable):
            raise InternalError("runtime error: hash of unhashable type")
        return value if isinstance(value, EvaluationError) else False

    return step


def _has_double(members: MapValue, value: int) -> bool:
    """Unlike the keys of a map, members of a set that are doubles match integers too."""
    return not isinstance(value, bool) and members.has(float(value)) and float(value) == value


def _growing(function: Function) -> Callable[[Sequence[object]], object]:
    if function.name == "_+_":
        return _extend
    return _insert


def _extend(args: Sequence[object]) -> object:
    target, added = args
    assert isinstance(target, list)
    assert isinstance(added, LISTS)
    target.extend(added)
    return target


def _insert(args: Sequence[object]) -> object:
    target = args[0]
    assert isinstance(target, MapValue)
    if len(args) == _BINARY:
        other = args[1]
        if not isinstance(other, MapValue):
            raise EvaluationError("no such overload")
        return insert(target, tuple(other.pairs()))
    return insert(target, ((args[1], args[2]),))

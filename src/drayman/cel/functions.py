"""What a library contributes to an environment: functions with typed overloads, types, constants and macros."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from drayman.cel import ast
from drayman.cel.costs import CostRule, EstimateRule
from drayman.cel.macros import Macro
from drayman.cel.types import Type

# Looks for mistakes that types do not show; yields the faulty node and a message for each.
Validator: TypeAlias = Callable[[ast.Checked], Iterator[tuple[ast.Expr, str]]]


class Rule(Struct, frozen=True):
    """What a call costs: at worst, before anything runs, and once it has run."""

    estimate: EstimateRule | None = None
    cost: CostRule | None = None


NO_RULE = Rule()


class Overload(Struct, frozen=True):
    """One signature of a function and what it does.

    `params` has the target of a member overload first. `implementation` takes the arguments positionally, gets only values
    that fit `params` (elements of lists and values of maps may still be anything), and raises EvaluationError to fail.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    implementation: Callable[..., object]
    rule: Rule = NO_RULE
    member: bool = False
    # Upstream binds most calls with two arguments so that both are evaluated before an error in one of them counts; calls with three or
    # more, and these, stop at the first error and then cost nothing.
    variadic: bool = False
    # Whether values must fit `params`; if not, the implementation takes anything.
    guarded: bool = True
    # The index of an argument that is a regular expression: a constant one is checked when compiling.
    pattern: int | None = None


class Function(Struct, frozen=True):
    """Overloads of a name. Environments merge functions of the same name.

    Costs: the rule of the overload decides where exactly one overload fits the static types of a call and its rule gives a
    figure; then the rule of the function, which sees every call of the name; a call without a rule costs 1.
    """

    name: str
    overloads: tuple[Overload, ...]
    rule: Rule = NO_RULE
    # Overloads that the type checker does not know: for dynamic values only.
    dynamic: tuple[Overload, ...] = ()


def static(
    name: str,
    id: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., object],
    rule: Rule = NO_RULE,
    *,
    member: bool = False,
    variadic: bool = False,
    guarded: bool = True,
    pattern: int | None = None,
) -> Function:
    """One row of a table of functions: `name(...)` with one overload."""
    overload = Overload(
        id, params, result, implementation, rule, member, variadic, guarded, pattern
    )
    return Function(name, (overload,))


member = partial(static, member=True)  # a row for `target.name(...)`


def priced(rule: Rule, *functions: Function) -> tuple[Function, ...]:
    """The functions with a rule for every call of their names."""
    return tuple(replace(function, rule=rule) for function in functions)


def succeeds(parse: Callable[..., object]) -> Callable[..., bool]:
    """The test whether a parser takes its arguments without a ValueError."""

    def test(*args: object) -> bool:
        try:
            parse(*args)
        except ValueError:
            return False
        return True

    return test


Fields: TypeAlias = Mapping[str, object]


class Message(Struct, frozen=True):
    """Something that can be written as `name{field: value}`: its type, the types of its fields, and what it evaluates to.

    `build` gets the fields that are set, in the order of the source, and raises EvaluationError to fail.
    """

    name: str
    type: Type
    fields: Mapping[str, Type]
    build: Callable[[Fields], object]


class Library(Struct, frozen=True):
    name: str
    functions: tuple[Function, ...] = ()
    types: tuple[Type, ...] = ()  # whose names are values, such as `kubernetes.Quantity`
    constants: Mapping[str, tuple[Type, object]] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    macros: tuple[Macro, ...] = ()
    # Of `==` on two values of one type, by type name.
    equality: Mapping[str, EstimateRule] = field(default_factory=dict)
    validators: tuple[Validator, ...] = ()
    # Functions within whose arguments list and map literals may mix types.
    mixes_types: frozenset[str] = frozenset()

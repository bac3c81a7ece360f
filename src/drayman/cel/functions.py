"""What a library contributes to an environment: functions with typed overloads, types, constants and macros."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from drayman.cel import ast
from drayman.cel.costs import CostRule, EstimateRule
from drayman.cel.macros import Macro
from drayman.cel.types import Type

# Looks for mistakes that types do not show; yields the faulty node and a message for each.
Validator: TypeAlias = Callable[[ast.Checked], Iterator[tuple[ast.Expr, str]]]


class Overload(Struct, frozen=True):
    """One signature of a function and what it does.

    `params` has the target of a member overload first. `implementation` takes the arguments positionally, gets only values
    that fit `params` (elements of lists and values of maps may still be anything), and raises EvaluationError to fail.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    implementation: Callable[..., object]
    member: bool = False
    estimate: EstimateRule | None = None
    cost: CostRule | None = None
    # Upstream binds most calls with two arguments so that both are evaluated before an error in one of them counts; calls with three or
    # more, and these, stop at the first error and then cost nothing.
    variadic: bool = False
    guarded: bool = (
        True  # whether values must fit `params`; if not, the implementation takes anything
    )
    pattern: int | None = (
        None  # index of an argument that is a regular expression: a constant one is checked when compiling
    )


class Function(Struct, frozen=True):
    """All overloads of a name. Environments merge functions of the same name from several libraries.

    Costs: the rules of the overload decide where exactly one overload fits the static types of a call and its rule gives a
    figure; then the rules of the function, which see every call of the name; a call without a rule costs 1.
    """

    name: str
    overloads: tuple[Overload, ...]
    estimate: EstimateRule | None = None
    cost: CostRule | None = None
    dynamic: tuple[
        Overload, ...
    ] = ()  # that the type checker does not know: for dynamic values only


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
    types: tuple[
        Type, ...
    ] = ()  # whose names are values of the language, such as `kubernetes.Quantity`
    constants: Mapping[str, tuple[Type, object]] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    macros: tuple[Macro, ...] = ()
    equality: Mapping[str, EstimateRule] = field(
        default_factory=dict
    )  # of `==` on two values of one type, by type name
    validators: tuple[Validator, ...] = ()
    mixes_types: frozenset[str] = (
        frozenset()
    )  # functions within whose arguments list and map literals may mix types

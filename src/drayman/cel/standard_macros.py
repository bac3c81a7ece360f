"""The macros of the language: presence, quantifiers, transformations, bindings and optional mapping.

The expansions are the reference implementation's, node for node, because their cost is part of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drayman.cel import ast
from drayman.cel.macros import (
    Expander,
    Macro,
    MacroContext,
    MacroError,
    call,
    ident,
    literal,
    member_call,
)

ACCUMULATOR = "@result"  # not accessible to expressions
OLD_ACCUMULATOR = "__result__"  # its former name; still not allowed for a variable
UNUSED = "#unused"  # no identifier can look like this

Args = Sequence[ast.Expr]
# How a quantifier folds: (start, condition, step, result)
Fold = tuple[ast.Expr, ast.Expr, ast.Expr, ast.Expr]


def _accumulator(context: MacroContext) -> ast.Ident:
    return ident(context, ACCUMULATOR)


def _variable(expr: ast.Expr, problem: str) -> str:
    if not isinstance(expr, ast.Ident):
        raise MacroError(problem, expr)
    if expr.name == OLD_ACCUMULATOR:
        raise MacroError("iteration variable overwrites accumulator variable", expr)
    return expr.name


def _variables(args: Args, count: int, problem: str) -> tuple[str, str]:
    first = _variable(args[0], problem)
    if count == 1:
        return first, ""
    second = _variable(args[1], problem)
    if first == second:
        raise MacroError(f"duplicate variable name: {first}", args[1])
    return first, second


def _fold(context: MacroContext, target: ast.Expr, names: tuple[str, str], fold: Fold) -> ast.Expr:
    start, condition, step, result = fold
    return ast.Comprehension(
        context.new_id(), target, names[0], names[1], ACCUMULATOR, start, condition, step, result
    )


def _has(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr:
    match args[0]:
        case ast.Select(operand=operand, field=field):
            return ast.Select(context.new_id(), operand, field, test_only=True)
        case other:
            raise MacroError("invalid argument to has() macro", other)


def _all(context: MacroContext, predicate: ast.Expr) -> Fold:
    return (
        literal(context, True),
        call(context, "@not_strictly_false", _accumulator(context)),
        call(context, "_&&_", _accumulator(context), predicate),
        _accumulator(context),
    )


def _exists(context: MacroContext, predicate: ast.Expr) -> Fold:
    return (
        literal(context, False),
        call(context, "@not_strictly_false", call(context, "!_", _accumulator(context))),
        call(context, "_||_", _accumulator(context), predicate),
        _accumulator(context),
    )


def _exists_one(context: MacroContext, predicate: ast.Expr) -> Fold:
    increment = call(context, "_+_", _accumulator(context), literal(context, 1))
    return (
        literal(context, 0),
        literal(context, True),
        call(context, "_?_:_", predicate, increment, _accumulator(context)),
        call(context, "_==_", _accumulator(context), literal(context, 1)),
    )


def _quantifier(fold: Callable[[MacroContext, ast.Expr], Fold], count: int) -> Expander:
    def expand(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr:
        assert target is not None
        names = _variables(args, count, "argument must be a simple name")
        return _fold(context, target, names, fold(context, args[count]))

    return expand


def _when(context: MacroContext, condition: ast.Expr | None, step: ast.Expr) -> ast.Expr:
    if condition is None:
        return step
    return call(context, "_?_:_", condition, step, _accumulator(context))


def _filter(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr:
    assert target is not None
    names = _variables(args, 1, "argument is not an identifier")
    kept = ast.ListExpr(context.new_id(), (args[0],))
    step = _when(context, args[1], call(context, "_+_", _accumulator(context), kept))
    start = ast.ListExpr(context.new_id(), ())
    return _fold(
        context, target, names, (start, literal(context, True), step, _accumulator(context))
    )


def _list_of(count: int, problem: str) -> Expander:
    """`map` and `transformList`: after the variables an optional condition, then the element."""

    def expand(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr:
        assert target is not None
        names = _variables(args, count, problem)
        condition = args[count] if len(args) == count + 2 else None
        element = ast.ListExpr(context.new_id(), (args[-1],))
        step = _when(context, condition, call(context, "_+_", _accumulator(context), element))
        start = ast.ListExpr(context.new_id(), ())
        return _fold(
            context, target, names, (start, literal(context, True), step, _accumulator(context))
        )

    return expand


def _map_of(*, entry: bool) -> Expander:
    """`transformMap` keeps the keys; `transformMapEntry` gets its entries from a map."""

    def expand(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr:
        assert target is not None
        names = _variables(args, 2, "argument must be a simple name")
        condition = args[2] if len(args) == 4 else None
        key = () if entry else (ident(context, names[0]),)
        insert = call(context, "cel.@mapInsert", _accumulator(context), *key, args[-1])
        step = _when(context, condition, insert)
        start = ast.MapExpr(context.new_id(), ())
        return _fold(
            context, target, names, (start, literal(context, True), step, _accumulator(context))
        )

    return expand


def _binding(context: MacroContext, name: str, value: ast.Expr, result: ast.Expr) -> ast.Expr:
    """A comprehension over nothing, whose accumulator is the bound variable."""
    empty = ast.ListExpr(context.new_id(), ())
    never, again = literal(context, False), ident(context, name)
    return ast.Comprehension(context.new_id(), empty, UNUSED, "", name, value, never, again, result)


def _bind(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr | None:
    if not (isinstance(target, ast.Ident) and target.name == "cel"):
        return None
    if not isinstance(args[0], ast.Ident):
        raise MacroError("cel.bind() variable names must be simple identifiers", args[0])
    return _binding(context, args[0].name, args[1], args[2])


def _opt_map(name: str, *, flat: bool) -> Expander:
    def expand(context: MacroContext, target: ast.Expr | None, args: Args) -> ast.Expr:
        assert target is not None
        if not isinstance(args[0], ast.Ident):
            raise MacroError(f"{name}() variable name must be a simple identifier", args[0])
        value = member_call(context, context.copy(target), "value")
        mapped = _binding(context, args[0].name, value, args[1])
        return call(
            context,
            "_?_:_",
            member_call(context, target, "hasValue"),
            mapped if flat else call(context, "optional.of", mapped),
            call(context, "optional.none"),
        )

    return expand


STANDARD = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _quantifier(_all, 1)),
    Macro("exists", 2, True, _quantifier(_exists, 1)),
    Macro("exists_one", 2, True, _quantifier(_exists_one, 1)),
    Macro("map", 2, True, _list_of(1, "argument is not an identifier")),
    Macro("map", 3, True, _list_of(1, "argument is not an identifier")),
    Macro("filter", 2, True, _filter),
)

BINDINGS = (Macro("bind", 3, True, _bind),)

OPTIONALS = (
    Macro("optMap", 2, True, _opt_map("optMap", flat=False)),
    Macro("optFlatMap", 2, True, _opt_map("optFlatMap", flat=True)),
)

TWO_VARIABLES = (
    Macro("all", 3, True, _quantifier(_all, 2)),
    Macro("exists", 3, True, _quantifier(_exists, 2)),
    Macro("existsOne", 3, True, _quantifier(_exists_one, 2)),
    Macro("exists_one", 3, True, _quantifier(_exists_one, 2)),
    Macro("transformList", 3, True, _list_of(2, "argument must be a simple name")),
    Macro("transformList", 4, True, _list_of(2, "argument must be a simple name")),
    Macro("transformMap", 3, True, _map_of(entry=False)),
    Macro("transformMap", 4, True, _map_of(entry=False)),
    Macro("transformMapEntry", 3, True, _map_of(entry=True)),
    Macro("transformMapEntry", 4, True, _map_of(entry=True)),
)

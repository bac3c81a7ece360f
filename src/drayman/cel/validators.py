"""Checks of a typed tree that go beyond types: literals that can never work, and literals that mix types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from drayman.cel import ast
from drayman.cel.errors import EvaluationError, Issue
from drayman.cel.functions import Validator
from drayman.cel.regex import compile_pattern
from drayman.cel.times import NANOS, Duration, Timestamp
from drayman.cel.types import Type
from drayman.cel.unify import equivalent


def validate(
    checked: ast.Checked, validators: Sequence[Validator], mixes_types: frozenset[str]
) -> list[Issue]:
    """The issues of all validators, in their order, at most one for a node and message."""
    found = [*_mixed_literals(checked, mixes_types)]
    for validator in (_literal_arguments, *validators):
        found.extend(validator(checked))
    unique = dict.fromkeys((checked.offsets[node.id], message) for node, message in found)
    return [Issue.at(checked.source, offset, message) for offset, message in unique]


_PARSERS: Mapping[tuple[str, type], Callable[..., object]] = {
    ("duration", str): Duration.parse,
    ("timestamp", str): Timestamp.parse,
    ("timestamp", int): lambda seconds: Timestamp.checked(seconds * NANOS),
    ("matches", str): compile_pattern,
}
"""What reads the first argument of a function, by the type of a literal there."""


def _literal_arguments(checked: ast.Checked) -> Iterator[tuple[ast.Expr, str]]:
    for node in ast.walk(checked.expr):
        match node:
            case ast.Call(function=function, args=(ast.Literal(value=value) as argument, *_)):
                parse = _PARSERS.get((function, type(value)))
                if parse is None:
                    continue
                try:
                    parse(value)
                except (ValueError, EvaluationError):
                    yield argument, f"invalid {function} argument"


def _mixed_literals(
    checked: ast.Checked, mixes_types: frozenset[str]
) -> Iterator[tuple[ast.Expr, str]]:
    lists: list[tuple[ast.Expr, str]] = []
    maps: list[tuple[ast.Expr, str]] = []
    pending = [checked.expr]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and node.function in mixes_types:
            continue
        if isinstance(node, ast.ListExpr):
            lists += list(_mixed_list(checked, node))[:1]
        elif isinstance(node, ast.MapExpr):
            maps += _mixed_map(checked, node)
        pending.extend(ast.children(node))
    yield from lists
    yield from maps


def _mixed_list(checked: ast.Checked, node: ast.ListExpr) -> Iterator[tuple[ast.Expr, str]]:
    expected: Type | None = None
    for index, element in enumerate(node.elements):
        type_ = _entry_type(checked, element, index in node.optional)
        if expected is None:
            expected = type_
        elif not equivalent(expected, type_):
            yield element, f"expected type '{expected}' but found '{type_}'"


def _mixed_map(checked: ast.Checked, node: ast.MapExpr) -> Iterator[tuple[ast.Expr, str]]:
    if not node.entries:
        return
    first = node.entries[0]
    key_type = checked.types[first.key.id]
    value_type = _entry_type(checked, first.value, first.optional)
    for entry in node.entries[1:]:
        key = checked.types[entry.key.id]
        if not equivalent(key_type, key):
            yield entry.key, f"expected type '{key_type}' but found '{key}'"
        value = _entry_type(checked, entry.value, entry.optional)
        if not equivalent(value_type, value):
            yield entry.value, f"expected type '{value_type}' but found '{value}'"


def _entry_type(checked: ast.Checked, expr: ast.Expr, optional: bool) -> Type:
    type_ = checked.types[expr.id]
    return type_.parameters[0] if optional and type_.parameters else type_

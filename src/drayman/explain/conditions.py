"""The conditions of a selector, and what each compares with what: `device.attributes["d"].profile == "1g.10gb"`.

Only comparisons of one attribute, one capacity or the driver with literal values are understood. That is what people write; everything else
is an opaque condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from drayman.cel import ast
from drayman.cel.device import environment
from drayman.cel.device_types import Features
from drayman.cel.errors import CompileError
from drayman.cel.lexer import Token, TokenKind, tokenize

ATTRIBUTE: Final = "attribute"
CAPACITY: Final = "capacity"
DRIVER: Final = "driver"
TOP_DOWN: Final = (">", ">=")
"""Comparisons that the largest values pass."""
BOTTOM_UP: Final = ("<", "<=")
_OPERATORS: Final = {"_==_": "==", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_MIRRORED: Final = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_METHODS: Final = {"isGreaterThan": ">", "isLessThan": "<"}
_ON_TEXT: Final = ("startsWith", "endsWith", "contains")
_MAKING: Final = ("quantity", "semver")
_INDEXING: Final = ("_[_]", "_[?_]", "_?._")
_VALUES: Final = (TokenKind.STRING, TokenKind.INT)
_GROUPS: Final = {"attributes": ATTRIBUTE, "capacity": CAPACITY}


class WrittenValue(Struct, frozen=True):
    """A value as it is written in a selector: a string, a number, true or false."""

    value: str | int | bool
    begin: int
    end: int


class Comparison(Struct, frozen=True):
    """What a condition compares, and how."""

    what: str
    """`attribute`, `capacity` or `driver`."""
    name: str
    """With its domain; empty for the driver."""
    operator: str
    """`==`, `<` and so on; `in`; or the name of a function on text."""
    values: tuple[WrittenValue, ...]


class SelectorCondition(Struct, frozen=True):
    """One of the conditions that a selector joins with `&&`, and where it begins there."""

    text: str
    begin: int


def conditions_of(expression: str) -> tuple[SelectorCondition, ...]:
    """The conditions of an expression; the expression itself if it is not made of several."""
    tokens, issues = tokenize(expression)
    whole = (SelectorCondition(expression, 0),)
    if issues:
        return whole
    depth, begin = 0, 0
    parts: list[SelectorCondition] = []
    for token in tokens:
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.text in "([{":
            depth += 1
        elif token.text in ")]}":
            depth -= 1
        elif depth == 0 and token.text in ("||", "?"):
            return whole  # these bind less than `&&` does
        elif depth == 0 and token.text == "&&":
            parts.append(_condition(expression, begin, token.offset))
            begin = token.offset + len(token.text)
    return (*parts, _condition(expression, begin, len(expression)))


def _condition(expression: str, begin: int, end: int) -> SelectorCondition:
    text = expression[begin:end]
    return SelectorCondition(text.strip(), begin + len(text) - len(text.lstrip()))


def comparison_of(condition: str, *, list_attributes: bool) -> Comparison | None:
    """What a condition compares; None if it is not a comparison that is understood."""
    try:
        checked = environment(Features(list_attributes=list_attributes)).check(condition)
    except CompileError:
        return None
    tokens = {token.offset: token for token in tokenize(condition)[0]}
    reader = _Reader(checked.offsets, tokens)
    found = [reader.comparison(each) for each in _alternatives(checked.expr)]
    first = found[0]
    if first is None or any(each is None for each in found):
        return None
    if len(found) == 1:
        return first
    same = {(each.what, each.name) for each in found if each}
    equal = all(each.operator in ("==", "in") for each in found if each)
    if len(same) > 1 or not equal:
        return None
    values = tuple(value for each in found if each for value in each.values)
    return Comparison(first.what, first.name, "in", values)


def _alternatives(expr: ast.Expr) -> Iterator[ast.Expr]:
    """What an expression joins with `||`."""
    pending = [expr]
    while pending:
        match pending.pop():
            case ast.Call(function="_||_", args=(left, right)):
                pending += (right, left)
            case other:
                yield other


class _Reader(Struct, frozen=True):
    """Reads comparisons, with the positions of their values in the text."""

    offsets: Mapping[int, int]
    tokens: Mapping[int, Token]

    def comparison(self, expr: ast.Expr) -> Comparison | None:
        match expr:
            case ast.Call(function="@in", args=(subject, ast.ListExpr(elements=elements))):
                return self._made(subject, "in", elements)
            case ast.Call(function=function, args=(left, right)) if function in _OPERATORS:
                return self._compared(left, _OPERATORS[function], right)
            case ast.Call(function=function, target=target, args=(value,)) if target is not None:
                return self._called(target, function, value)
        return None

    def _compared(self, left: ast.Expr, operator: str, right: ast.Expr) -> Comparison | None:
        match left, right:
            case ast.Call(function="compareTo", target=own, args=(other,)), ast.Literal(value=0):
                return None if own is None else self._either(own, operator, other)
            case ast.Literal(value=0), ast.Call(function="compareTo", target=own, args=(other,)):
                return None if own is None else self._either(other, operator, own)
        return self._either(left, operator, right)

    def _called(self, target: ast.Expr, function: str, value: ast.Expr) -> Comparison | None:
        if function in _ON_TEXT:
            return self._made(target, function, (value,))
        operator = _METHODS.get(function)
        return None if operator is None else self._either(target, operator, value)

    def _either(self, left: ast.Expr, operator: str, right: ast.Expr) -> Comparison | None:
        """Whichever side the value is on."""
        found = self._made(left, operator, (right,))
        return found or self._made(right, _MIRRORED[operator], (left,))

    def _made(
        self, subject: ast.Expr, operator: str, values: tuple[ast.Expr, ...]
    ) -> Comparison | None:
        place = _place(subject)
        written = [self._written(value) for value in values]
        found = tuple(value for value in written if value is not None)
        if place is None or not found or len(found) < len(written):
            return None
        return Comparison(*place, operator, found)

    def _written(self, expr: ast.Expr) -> WrittenValue | None:
        match expr:
            case ast.Call(function=function, args=(inner,)) if function in _MAKING:
                expr = inner
        if not isinstance(expr, ast.Literal) or not isinstance(expr.value, str | int):
            return None
        token = self.tokens.get(self.offsets[expr.id])
        if token is None or not (token.kind in _VALUES or token.text in ("true", "false")):
            return None
        return WrittenValue(expr.value, token.offset, token.offset + len(token.text))


def _place(expr: ast.Expr) -> tuple[str, str] | None:
    """Whether an expression is an attribute, a capacity or the driver of the device, and its full name."""
    keys: list[object] = []
    while not isinstance(expr, ast.Ident):
        match expr:
            case ast.Select(operand=operand, field=key, test_only=False):
                expr, keys = operand, [key, *keys]
            case ast.Call(function=function, args=(operand, ast.Literal(value=key))) if (
                function in _INDEXING
            ):
                expr, keys = operand, [key, *keys]
            case ast.Call(function="orValue" | "value", target=target) if target is not None:
                expr = target
            case _:
                return None
    match expr.name, keys:
        case "device", ["driver"]:
            return DRIVER, ""
        case "device", [str() as group, str() as domain, str() as name] if group in _GROUPS:
            return _GROUPS[group], f"{domain}/{name}"
    return None

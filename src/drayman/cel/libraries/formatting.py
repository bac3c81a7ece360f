"""`"%s has %d".format([name, count])`, as version 2 of the strings extension does it.

That version writes `%f` and `%e` for readers of American English: thousands get commas, infinity is a sign, and an exponent is a raised
power of ten. The number in `%.3e` is the width, not the precision, which is always six. Both are odd and both are kept, because stored
expressions compare with the result. A number above `MAX_PRECISION` is refused, where upstream wraps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from drayman.cel import ast
from drayman.cel.costs import PENDING, STRING_TRAVERSAL, actual_size
from drayman.cel.doubles import grouped_double
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Rule, member, priced
from drayman.cel.libraries.rendering import Unrenderable, render
from drayman.cel.libraries.rules import TRAVERSAL, growth_cost
from drayman.cel.types import DYN, STRING, Type, list_of
from drayman.cel.values import LISTS, ListValue, check_size, type_name

MAX_PRECISION = 255

_DEFAULT_PRECISION = 6
_CLAUSE = re.compile(r"%(?:\.([0-9]*))?(.?)", re.DOTALL)
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


_TypeOf: TypeAlias = Callable[[ast.Expr], Type]


class Clause(Struct, frozen=True):
    """One `%` of a format: the text before it, its letter and the number in front of that."""

    text: str
    letter: str
    number: int


def parse(format: str) -> Iterator[Clause]:
    """The clauses in order, then one without a letter for the text after them. Raises EvaluationError."""
    text, position = "", 0
    while (percent := format.find("%", position)) >= 0:
        text += format[position:percent]
        if format.startswith("%%", percent):
            text += "%"
            position = percent + 2
            continue
        letter, number, position = _parse_clause(format, percent)
        yield Clause(text, letter, number)
        text = ""
    yield Clause(text + format[position:], "", 0)


def _parse_clause(format: str, percent: int) -> tuple[str, int, int]:
    if percent + 1 == len(format):
        raise EvaluationError("unexpected end of string")
    match = _CLAUSE.match(format, percent)
    assert match is not None, "the pattern matches at every percent sign"
    digits, letter = match[1], match[2]
    if digits is not None:
        if not letter:
            raise _unparsable(
                "error while parsing precision: could not find end of precision specifier"
            )
        if not digits or int(digits[:6]) > MAX_PRECISION:
            raise _unparsable(
                f"error while converting precision to integer: {digits!r} is not within 0..255"
            )
    if letter not in _LETTERS:
        raise _unparsable(f'unrecognized formatting clause "{letter}"')
    return letter, int(digits) if digits else _DEFAULT_PRECISION, match.end()


def _unparsable(reason: str) -> EvaluationError:
    return EvaluationError(f"could not parse formatting clause: {reason}")


def format_text(format: str, items: ListValue) -> str:
    parts: list[str] = []
    size = 0
    for index, clause in enumerate(parse(format)):
        parts.append(clause.text)
        if clause.letter:
            if index >= len(items):
                raise EvaluationError(f"index {index} out of range")
            parts.append(_write(clause, items[index]))
            size += len(parts[-1])
            check_size(size)
    return "".join(parts)


def _write(clause: Clause, value: object) -> str:
    letter = _LETTERS[clause.letter]
    if type_name(value) not in letter.accepts:
        raise EvaluationError(letter.mismatch(type_name(value)))
    try:
        return letter.write(value, clause.number)
    except Unrenderable as error:
        raise EvaluationError(letter.mismatch(error.type_name)) from None


def validate(checked: ast.Checked) -> Iterator[tuple[ast.Expr, str]]:
    """Finds calls of a constant format with a literal list that can never work, and the faulty node."""
    for node in ast.walk(checked.expr):
        if isinstance(node, ast.Call) and node.function == "format":
            yield from _check_call(node, lambda expr: checked.types.get(expr.id, DYN))


def _check_call(call: ast.Call, type_of: _TypeOf) -> Iterator[tuple[ast.Expr, str]]:
    match call:
        case ast.Call(target=ast.Literal(value=str(format)), args=(ast.ListExpr(elements=items),)):
            pass
        case _:
            return
    used = 0
    try:
        for used, clause in enumerate(parse(format)):
            if not clause.letter:
                break
            if used >= len(items):
                yield call, f"index {used} out of range"
                return
            letter = _LETTERS[clause.letter]
            if (misfit := _first_misfit(letter, items[used], type_of)) is not None:
                yield misfit, letter.mismatch(type_of(misfit).name)
                return
    except EvaluationError as error:
        yield call, error.message
        return
    if len(items) > used:
        yield (
            call,
            f"too many arguments supplied to string.format (expected {used}, got {len(items)})",
        )


def _first_misfit(letter: _Letter, item: ast.Expr, type_of: _TypeOf) -> ast.Expr | None:
    static = type_of(item)
    if static != DYN and static.name not in letter.accepts:
        return item
    if letter.accepts is not _TEXT:
        return None
    parts: tuple[ast.Expr, ...] = ()
    if isinstance(item, ast.ListExpr):
        parts = item.elements
    elif isinstance(item, ast.MapExpr):
        parts = tuple(part for entry in item.entries for part in (entry.key, entry.value))
    misfits = (_first_misfit(letter, part, type_of) for part in parts)
    return next((misfit for misfit in misfits if misfit is not None), None)


def _scientific(value: object, number: int) -> str:
    double = _as_double(value)
    if not math.isfinite(double):
        return grouped_double(double, 0).rjust(number)
    mantissa, _, exponent = f"{double + 0.0:.{_DEFAULT_PRECISION}e}".partition("e")
    power = f"{exponent.removeprefix('+')}".translate(_RAISED)
    return f"{mantissa}×10{power}".rjust(number)


def _as_double(value: object) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in _SPECIAL_DOUBLES:
        return _SPECIAL_DOUBLES[value]
    raise Unrenderable(type_name(value))


def _in_base(base: str) -> Callable[[object, int], str]:
    def write(value: object, number: int) -> str:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            return value.hex() if base == "x" else value.hex().upper()
        assert isinstance(value, int)
        return f"{int(value):{base}}"

    return write


class _Letter(Struct, frozen=True):
    """What a clause does. `accepts` has the names of types, static or at run time."""

    write: Callable[[object, int], str]
    accepts: frozenset[str]
    needs: str

    def mismatch(self, given: str) -> str:
        return f"error during formatting: {self.needs}, was given {given}"


_INTEGERS = frozenset({"int", "uint"})
_DOUBLES = frozenset({"double", "string"})
_HEXADECIMAL = _INTEGERS | {"string", "bytes"}
_TEXT = (
    _HEXADECIMAL
    | {"double", "bool", "list", "map", "type", "null_type"}
    | {"google.protobuf.Timestamp", "google.protobuf.Duration"}
)
_NEEDS_TEXT = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps"
)
_NEEDS_HEXADECIMAL = "only integers, byte buffers, and strings can be formatted as hex"

_LETTERS = {
    "s": _Letter(lambda value, number: render(value), _TEXT, _NEEDS_TEXT),
    "d": _Letter(_in_base("d"), _INTEGERS, "decimal clause can only be used on integers"),
    "f": _Letter(
        lambda value, number: grouped_double(_as_double(value), number),
        _DOUBLES,
        "fixed-point clause can only be used on doubles",
    ),
    "e": _Letter(_scientific, _DOUBLES, "scientific clause can only be used on doubles"),
    "b": _Letter(
        _in_base("b"), _INTEGERS | {"bool"}, "only integers and bools can be formatted as binary"
    ),
    "x": _Letter(_in_base("x"), _HEXADECIMAL, _NEEDS_HEXADECIMAL),
    "X": _Letter(_in_base("X"), _HEXADECIMAL, _NEEDS_HEXADECIMAL),
    "o": _Letter(_in_base("o"), _INTEGERS, "octal clause can only be used on integers"),
}


def _format_cost(args: Sequence[object], result: object) -> int:
    cost = math.ceil(actual_size(args[0]) * STRING_TRAVERSAL)
    if result is PENDING or not isinstance(args[1], LISTS):
        return cost
    inputs = actual_size(args[0]) + sum(map(actual_size, args[1]))
    return cost + growth_cost(actual_size(result), inputs)


FORMAT = priced(
    Rule(TRAVERSAL.estimate, _format_cost),
    member("format", "string_format", (STRING, list_of(DYN)), STRING, format_text, variadic=True),
)

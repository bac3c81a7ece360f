"""Values as text, the way `format` shows them: Go's number formats, and CEL's own syntax inside lists and maps."""

from __future__ import annotations

import math

from drayman.cel.doubles import not_finite, shortest_double
from drayman.cel.errors import CostLimitError, EvaluationError
from drayman.cel.libraries.rules import MAX_STEPS
from drayman.cel.times import Duration, Timestamp
from drayman.cel.values import LISTS, ListValue, MapValue, TypeValue, materialize, type_name

_NESTED_PRECISION = 6
ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


class Unrenderable(Exception):
    """A value that has no text form. `type_name` is its type."""

    def __init__(self, type_name: str) -> None:
        super().__init__(type_name)
        self.type_name = type_name


def render(value: object) -> str:
    """A value on its own: strings as they are, lists and maps in CEL's syntax.

    Lists may share parts, so that a small one can have an enormous text: the steps are counted, and too many of them end in CostLimitError.
    Raises Unrenderable.
    """
    match value:
        case str():
            return value
        case bytes():
            return _decoded(value)
        case float():
            return shortest_double(value)
        case Timestamp() | Duration():
            return str(value)
    parts: list[str] = []
    pending: list[object] = [value]  # in reverse; tokens are text that is final
    steps = 0
    while pending:
        item = pending.pop()
        if isinstance(item, _Token):
            parts.append(item)
            continue
        steps += 1 + (len(item) // 10 if isinstance(item, str | bytes) else 0)
        if isinstance(item, LISTS):
            steps += len(item)
        if steps > MAX_STEPS:
            raise CostLimitError
        if isinstance(item, LISTS):
            pending += _reversed_list(item)
        elif isinstance(item, MapValue):
            pending += _reversed_map(item)
        else:
            parts.append(_scalar(item))
    return "".join(parts)


class _Token(str):
    """Text that is part of the result as it is."""

    __slots__ = ()


_COMMA, _COLON = _Token(", "), _Token(":")
_OPEN_LIST, _CLOSE_LIST, _OPEN_MAP, _CLOSE_MAP = map(_Token, "[]{}")


def _reversed_list(items: ListValue) -> list[object]:
    upside_down: list[object] = [_CLOSE_LIST]
    for item in reversed(materialize(items)):
        upside_down += (item, _COMMA)
    if items:
        upside_down.pop()
    upside_down.append(_OPEN_LIST)
    return upside_down


def _reversed_map(entries: MapValue) -> list[object]:
    """Sorted by the text of the keys."""
    keyed = sorted(
        ((_scalar(key), value) for key, value in entries.pairs()), key=lambda pair: pair[0]
    )
    upside_down: list[object] = [_CLOSE_MAP]
    for key, value in reversed(keyed):
        upside_down += (value, _COLON, _Token(key), _COMMA)
    if keyed:
        upside_down.pop()
    upside_down.append(_OPEN_MAP)
    return upside_down


def _scalar(value: object) -> str:
    """A value inside a list or map."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(_decoded(value))}"
        case float():
            text = f"{value:.{_NESTED_PRECISION}f}"
            return text if math.isfinite(value) else quoted(not_finite(value))
        case Timestamp():
            return f'timestamp("{value}")'
        case Duration():
            return f'duration("{value}")'
        case TypeValue():
            return value.name
    raise Unrenderable(type_name(value))


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def quoted(text: str) -> str:
    """A string literal, with all non-printing characters escaped."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""Values as text, the way `format` shows them: Go's number formats, and CEL's own syntax inside lists and maps."""

from __future__ import annotations

import math
from decimal import Decimal

from drayman.cel.errors import CostLimitError, EvaluationError
from drayman.cel.library.rules import MAX_STEPS
from drayman.cel.times import Duration, Timestamp
from drayman.cel.values import LISTS, ListValue, MapValue, TypeValue, type_name

_SCIENTIFIC_FROM, _SCIENTIFIC_BELOW = 6, -4
_NESTED_PRECISION = 6
_ESCAPES = {
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
    """A value that has no text. `type_name` is what it is instead."""

    def __init__(self, type_name: str) -> None:
        super().__init__(type_name)
        self.type_name = type_name


class Renderer:
    """Renders one value. Lists may share parts, so the steps are counted and an explosion ends in CostLimitError."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps = 0

    def text(self, value: object) -> str:
        """A value on its own: strings as they are."""
        self._count(value)
        match value:
            case str():
                return value
            case bytes():
                return _decoded(value)
            case float():
                return shortest_double(value)
            case Timestamp() | Duration():
                return str(value)
            case _:
                return self._other(value)

    def _other(self, value: object) -> str:
        """What looks the same on its own and inside of something."""
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                return str(int(value))
            case TypeValue():
                return value.name
            case MapValue():
                return self._map(value)
            case list() | tuple():
                return self._list(value)
            case _ if isinstance(value, LISTS):
                return self._list(value)
        raise Unrenderable(type_name(value))

    def _nested(self, value: object) -> str:
        """A value inside a list or map: as CEL would write it, more or less."""
        self._count(value)
        match value:
            case str():
                return quoted(value)
            case bytes():
                return f"b{quoted(_decoded(value))}"
            case float():
                return (
                    f"{value:.{_NESTED_PRECISION}f}"
                    if math.isfinite(value)
                    else quoted(_not_finite(value))
                )
            case Timestamp():
                return f'timestamp("{value}")'
            case Duration():
                return f'duration("{value}")'
            case _:
                return self._other(value)

    def _list(self, items: ListValue) -> str:
        return f"[{', '.join(self._nested(item) for item in items)}]"

    def _map(self, entries: MapValue) -> str:
        rendered = [(self._nested(key), self._nested(value)) for key, value in entries.pairs()]
        rendered.sort(key=lambda pair: pair[0])
        return "{" + ", ".join(f"{key}:{value}" for key, value in rendered) + "}"

    def _count(self, value: object) -> None:
        self._steps += 1 + (len(value) // 10 if isinstance(value, str | bytes) else 0)
        if self._steps > MAX_STEPS:
            raise CostLimitError


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def shortest_double(value: float) -> str:
    """The fewest digits that give the number back; with an exponent from a million on and below 0.0001."""
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if _SCIENTIFIC_BELOW <= exponent < _SCIENTIFIC_FROM:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def grouped_double(value: float, precision: int) -> str:
    """With commas between thousands."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value + 0.0:,.{precision}f}"  # adding zero drops the sign of a negative zero


def quoted(text: str) -> str:
    """A string literal, with everything escaped that does not print."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

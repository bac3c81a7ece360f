"""JSON as strictly as the API server takes it, with the line of what is wrong.

Decoders that are made for speed let a second field of the same name win, turn large numbers into others and name a place no
reader would recognise. What people write goes through here instead: duplicate fields, halves of characters, numbers that JSON
does not have and nesting without end are refused. A number too large for the decoder remains a text, so that it is refused
where it is used, with the name of the field.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Final

from drayman.api.errors import JsonError
from drayman.api.struct import Json

MAX_DEPTH: Final = 256
"""Deepest nesting of what is read. Objects of the API stay far below, and what walks over them may recurse."""

_LONGEST_INTEGER: Final = 400
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_WHITESPACE: Final = re.compile(r"[ \t\r\n]*")
_TOO_DEEP: Final = f"nested more than {MAX_DEPTH} levels deep"
_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse(data: bytes) -> Json:
    """The one value in a text. Raises JsonError."""
    text = decode_text(data)
    start = _skip_whitespace(text, 0)
    value, end = _value_at(text, start, _line(text, start))
    rest = _skip_whitespace(text, end)
    if rest < len(text):
        raise _error(json.JSONDecodeError("Extra data", text, rest))
    return value


def parse_stream(text: str) -> Iterator[tuple[int, Json]]:
    """The values that stand one after the other in a text, each with its first line. Raises JsonError."""
    counted, line = 0, 1
    position = _skip_whitespace(text, 0)
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        value, end = _value_at(text, position, line)
        yield line, value
        position = _skip_whitespace(text, end)


def decode_text(data: bytes) -> str:
    """The characters of a file, without a byte order mark. Raises JsonError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "; it looks like UTF-16" if data.startswith(_WIDE_MARKS) else ""
        raise JsonError(data.count(b"\n", 0, error.start) + 1, f"not valid UTF-8{hint}") from error


def _value_at(text: str, position: int, line: int) -> tuple[Json, int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise _error(error) from error
    except RecursionError as error:
        raise JsonError(line, _TOO_DEEP) from error
    except ValueError as error:
        raise JsonError(line, f"not valid JSON: {error}") from error
    if _is_too_deep(value):
        raise JsonError(line, _TOO_DEEP)
    if _SURROGATE_ESCAPE.search(text, position, end) and _has_lone_surrogate(value):
        raise JsonError(line, "not valid JSON: half of a surrogate pair in a text")
    return value, end


def _error(error: json.JSONDecodeError) -> JsonError:
    reason = f"not valid JSON: {error.msg}"
    return JsonError(error.lineno, reason, column=error.colno, is_syntax=True)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _skip_whitespace(text: str, position: int) -> int:
    match = _WHITESPACE.match(text, position)
    return match.end() if match else position


def _is_too_deep(value: Json) -> bool:
    """Goes down level by level: what is to find out about recursion must not recurse."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _has_lone_surrogate(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _unique_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} is there twice")
    return value


def _bounded_float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _bounded_integer(text: str) -> int | str:
    return int(text) if len(text) <= _LONGEST_INTEGER else text


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_object,
    parse_float=_bounded_float,
    parse_int=_bounded_integer,
    parse_constant=_no_constant,
)

"""The ways in which JSON is read here.

`parse` and `parse_stream` are for what people write: duplicate fields, lone surrogates and numbers that JSON does not have are
refused with their line. A number too large for the decoder remains a text, so that it is refused where it is used, with the name of the
field. `parse_tree` is for bodies of requests: it keeps everything that the API server would comment on. `parse_embedded` is for texts
inside bodies. `parse_unique` is for the many texts that have no problems.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from drayman.api.errors import JsonError, UnrecognizedError
from drayman.api.struct import Json
from drayman.api.syntax.json_scanner import syntax_error
from drayman.api.syntax.values import MAX_DEPTH, TOO_DEEP, Number, Pairs, depth_exceeds, plain

_LONGEST_INTEGER: Final = 400
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_WHITESPACE: Final = re.compile(r"[ \t\r\n]*")
_NESTED: Final = f"nested more than {MAX_DEPTH} levels deep"
_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse(data: bytes) -> Json:
    """The one value in a text. Raises JsonError."""
    text = decode_text(data)
    start = _skip_whitespace(text, 0)
    value, end = _value_at(text, start, text.count("\n", 0, start) + 1)
    rest = _skip_whitespace(text, end)
    if rest < len(text):
        raise _error(json.JSONDecodeError("Extra data", text, rest))
    return value


def parse_stream(text: str) -> Iterator[tuple[int, Json]]:
    """The consecutive values in a text, each with its first line. Raises JsonError."""
    counted, line = 0, 1
    position = _skip_whitespace(text, 0)
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        value, end = _value_at(text, position, line)
        yield line, value
        position = _skip_whitespace(text, end)


def parse_tree(body: bytes, context: str = "") -> Json:
    """A body with duplicates and numbers kept. Raises UnrecognizedError, whose text begins with the context."""
    text = body.decode(errors="replace")
    try:
        tree = _AS_WRITTEN.decode(text)
    except RecursionError as error:
        raise UnrecognizedError(f"{context}{TOO_DEEP}") from error
    except ValueError as error:
        reason = syntax_error(body) or "invalid character in JSON input"
        raise UnrecognizedError(f"{context}{reason}") from error
    if depth_exceeds(tree, MAX_DEPTH):
        raise UnrecognizedError(f"{context}{TOO_DEEP}")
    return _without_surrogates(tree) if _SURROGATE_ESCAPE.search(text) else tree


def parse_embedded(data: bytes) -> Json:
    """The value of JSON inside something else, such as an annotation; of fields with the same name, the last counts. Raises BodyError."""
    return plain(parse_tree(data))


def parse_unique(body: bytes) -> Json:
    """The value of a text in which no field occurs twice and no character is escaped by number. Raises ValueError or RecursionError.

    A text that comes out the same when it is written again has no duplicates, and needs no closer look.
    """
    if b"\\u" in body:
        raise ValueError("there may be halves of characters")
    try:
        tree = _decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    return tree if _encode(tree) == body else _UNIQUE.decode(body.decode())


def decode_text(data: bytes) -> str:
    """The characters of a file, without a byte order mark. Raises JsonError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "; it looks like UTF-16" if data.startswith(_WIDE_MARKS) else ""
        raise JsonError(data.count(b"\n", 0, error.start) + 1, f"not valid UTF-8{hint}") from error


def _value_at(text: str, position: int, line: int) -> tuple[Json, int]:
    try:
        value, end = _STRICT.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise _error(error) from error
    except RecursionError as error:
        raise JsonError(line, _NESTED) from error
    except ValueError as error:
        raise JsonError(line, f"not valid JSON: {error}") from error
    if depth_exceeds(value, MAX_DEPTH):
        raise JsonError(line, _NESTED)
    if _SURROGATE_ESCAPE.search(text, position, end) and _has_lone_surrogate(value):
        raise JsonError(line, "not valid JSON: half of a surrogate pair in a text")
    return value, end


def _error(error: json.JSONDecodeError) -> JsonError:
    reason = f"not valid JSON: {error.msg}"
    return JsonError(error.lineno, reason, column=error.colno, is_syntax=True)


def _skip_whitespace(text: str, position: int) -> int:
    match = _WHITESPACE.match(text, position)
    return match.end() if match else position


def _has_lone_surrogate(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _without_surrogates(tree: Json) -> Json:
    """Lone surrogates are replaced, as they cannot be encoded."""
    if isinstance(tree, Number) or not isinstance(tree, str | list):
        return tree
    if isinstance(tree, str):
        return tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(tree, Pairs):
        return Pairs((_without_surrogates(n), _without_surrogates(v)) for n, v in tree)
    return [_without_surrogates(value) for value in tree]


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


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_unique_object,
    parse_float=_bounded_float,
    parse_int=_bounded_integer,
    parse_constant=_no_constant,
)
_AS_WRITTEN: Final = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_no_constant
)
_UNIQUE: Final = json.JSONDecoder(object_pairs_hook=_unique_object, parse_constant=_no_constant)
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode

"""Request bodies as they came: every field in its order, also the second of the same name, and numbers as they were written.

What the API server says about a body depends on all of that, so the exact decoder works on this tree rather than on the value a
fast decoder would make of it. It also tells what a body claims to be, which comes before decoding it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Final, NoReturn

import msgspec

from drayman.api.schema.errors import MalformedError, UnrecognizedError
from drayman.api.schema.json_syntax import syntax_error
from drayman.api.struct import Json

MAX_DEPTH: Final = 220
"""Deepest nesting that is taken apart. The API server goes to 10,000, and no object of the API goes beyond 100. Whatever is done
to a value later takes a few calls for each level, which the interpreter bounds at 1,000."""

TOO_DEEP: Final = "exceeded max depth"

MAX_VALUES: Final = 100_000
"""Most values in a body: texts, numbers, lists, objects. The API server has no such bound but the three megabytes that a body may
have, which hold a million of them; the largest objects of the API have some ten thousand."""

MAX_MANAGED_VALUES: Final = 4 * MAX_VALUES
"""The same with managed fields, which have an entry for each field and may have it once for each manager."""

_SHOWN_BYTES: Final = 30
_LONGEST_INT64: Final = 20
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_TYPE_STRUCT: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\"";'
    ' Kind string "json:\\"kind,omitempty\\"" }'
)


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class Pairs(list[tuple[str, "Json"]]):
    """The fields of an object in the order in which they came, duplicates included."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What a body claims to be; empty where it does not say."""

    api_version: str
    kind: str


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


_TYPE_META: Final = msgspec.json.Decoder(_TypeMeta)


def identify(body: bytes) -> Identity:
    """What a JSON body claims to be. Raises UnrecognizedError with the text for the client."""
    try:
        found = _TYPE_META.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return identify_tree(parse_tree(body, "couldn't get version/kind; json parse error: "))
    return Identity(found.api_version or "", found.kind or "")


def identify_tree(tree: Json) -> Identity:
    """What a parsed body claims to be. Raises UnrecognizedError."""
    if not isinstance(tree, Pairs | None):
        raise _not_a_kind(f"{type_word(tree)} into Go value of type {_TYPE_STRUCT}")
    found = {"apiVersion": "", "kind": ""}
    for name, value in tree or ():
        if name not in found or value is None:
            continue
        if not isinstance(value, str) or isinstance(value, Number):
            raise _not_a_kind(f"{type_word(value)} into Go struct field .{name} of type string")
        found[name] = value
    return Identity(found["apiVersion"], found["kind"])


def _not_a_kind(mismatch: str) -> UnrecognizedError:
    prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    return UnrecognizedError(f"{prefix} {mismatch}")


def parse_tree(body: bytes, context: str = "") -> Json:
    """A JSON body with duplicates and numbers kept. Raises UnrecognizedError, whose text begins with the context."""
    text = body.decode(errors="replace")
    try:
        tree = _DECODER.decode(text)
    except RecursionError as error:
        raise UnrecognizedError(f"{context}{TOO_DEEP}") from error
    except ValueError as error:
        reason = syntax_error(body) or "invalid character in JSON input"
        raise UnrecognizedError(f"{context}{reason}") from error
    if depth_exceeds(tree, MAX_DEPTH):
        raise UnrecognizedError(f"{context}{TOO_DEEP}")
    return _without_surrogates(tree) if _SURROGATE.search(body) else tree


def depth_exceeds(tree: Json, limit: int) -> bool:
    """Goes down level by level: what is to find out about recursion must not recurse."""
    level = [tree]
    for _ in range(limit):
        level = [
            child
            for parent in level
            for child in children(parent)
            if isinstance(child, list | dict)
        ]
        if not level:
            return False
    return True


def values_exceed(tree: Json, limit: int) -> bool:
    """Whether a tree has more values in it than this. Stops counting there."""
    pending, found = [tree], 1
    while pending and found <= limit:
        inside = children(pending.pop())
        found += len(inside)
        pending.extend(child for child in inside if isinstance(child, list | dict))
    return found > limit


def children(tree: Json) -> list[Json]:
    """The values directly inside a value."""
    if isinstance(tree, Pairs):
        return [value for _, value in tree]
    if isinstance(tree, dict):
        return list(tree.values())
    return tree if isinstance(tree, list) else []


def type_word(value: Json) -> str:
    """What error messages call the type of a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Number | int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Pairs | dict):
        return "object"
    return "null" if value is None else "array"


def plain(tree: Json) -> Json:
    """The value a tree stands for; of fields with the same name the last one counts."""
    if isinstance(tree, Pairs):
        return {name: plain(value) for name, value in tree}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    if isinstance(tree, Number):
        return number_value(tree)
    return tree


def number_value(text: str) -> int | float:
    """The value of a number: an integer if it is written as one and is of 64 bits. Raises MalformedError beyond a double."""
    if len(text) <= _LONGEST_INT64 and not set(text) & set(".eE"):
        whole = int(text)
        if -(2**63) <= whole < 2**63:
            return whole
    value = float(text)
    if math.isinf(value):
        raise MalformedError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def excerpt(body: bytes) -> str:
    """The start of a body as error messages show it: as text if it might be an object, otherwise in hexadecimal."""
    if not body:
        return "<empty>"
    start = body[:_SHOWN_BYTES]
    shown = start.decode(errors="replace") if body[0] == ord("{") else start.hex()
    return f"{shown} ..." if len(body) > _SHOWN_BYTES else shown


def _without_surrogates(tree: Json) -> Json:
    """Halves of characters are replaced, as they cannot be encoded."""
    if isinstance(tree, Number) or not isinstance(tree, str | list):
        return tree
    if isinstance(tree, str):
        return tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(tree, Pairs):
        return Pairs((_without_surrogates(n), _without_surrogates(v)) for n, v in tree)
    return [_without_surrogates(value) for value in tree]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Pairs,
    parse_int=Number,
    parse_float=Number,
    parse_constant=_no_constant,
)

"""JSON values as texts are turned into them, and how large and how deep they may be.

What the API server says about a body depends on every field in its order, including duplicates, and on numbers as they were written.
So bodies are read into trees that keep all of that: objects are `Pairs` where a field may occur twice, and numbers `Number`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from drayman.api.errors import MalformedError
from drayman.api.struct import Json

MAX_DEPTH: Final = 256
"""Deepest nesting of anything that is read. The API server goes to 10,000, and no object of the API goes beyond 100. Whatever is done to a
value later takes two or three calls for each level, which the interpreter bounds at 1,000."""

TOO_DEEP: Final = "exceeded max depth"

MAX_VALUES: Final = 100_000
"""Most values in a body: texts, numbers, lists, objects. The API server's only bound is the three megabytes that a body may
have, which hold a million of them; the largest objects of the API have some ten thousand."""

MAX_MANAGED_VALUES: Final = 4 * MAX_VALUES
"""The same with managed fields, which have an entry for each field and may have it once for each manager."""

_LONGEST_INT64: Final = 20


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class Pairs(list[tuple[str, "Json"]]):
    """The fields of an object in the order in which they came, duplicates included."""

    __slots__ = ()


def depth_exceeds(tree: Json, limit: int) -> bool:
    """Goes down level by level: a check of recursion must not recurse."""
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


def duplicate_paths(tree: Json, path: str = "") -> Iterator[str]:
    """The paths of fields that occur twice, as in `spec.containers[0].name`."""
    if isinstance(tree, Pairs):
        seen: set[str] = set()
        for name, value in tree:
            place = f"{path}.{name}" if path else name
            if name in seen:
                yield place
            seen.add(name)
            yield from duplicate_paths(value, place)
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from duplicate_paths(item, f"{path}[{index}]")


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
    """The value a tree stands for; of fields with the same name, the last one counts. Raises MalformedError."""
    if isinstance(tree, Pairs):
        return {name: plain(value) for name, value in tree}
    if isinstance(tree, dict):
        return {name: plain(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    if isinstance(tree, Number):
        return number_value(tree)
    return tree


def number_value(text: str) -> int | float:
    """The value of a number: an integer if it is written as one and fits in 64 bits. Raises MalformedError beyond a double."""
    if len(text) <= _LONGEST_INT64 and not set(text) & set(".eE"):
        whole = int(text)
        if -(2**63) <= whole < 2**63:
            return whole
    value = float(text)
    if math.isinf(value):
        raise MalformedError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value

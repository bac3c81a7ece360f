"""`find` and `findAll`: RE2's syntax, linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, cast

from drayman.cel.costs import actual_size
from drayman.cel.errors import CostLimitError
from drayman.cel.functions import Library, Rule, member, priced
from drayman.cel.libraries.rules import FREE_GROWTH, MAX_STEPS, REGEX_RULE, regex_cost
from drayman.cel.regex import compile_pattern
from drayman.cel.types import INT, STRING, list_of


class _Match(Protocol):
    def start(self) -> int: ...

    def end(self) -> int: ...


class _BytesPattern(Protocol):
    """A compiled pattern searches bytes too, at half the cost of text."""

    def finditer(self, text: bytes) -> Iterator[_Match]: ...


def find(text: str, pattern: str) -> str:
    """The leftmost match; empty if there is none."""
    match = compile_pattern(pattern).search(text)
    return match.group() if match is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[object]:
    """The matches from left to right, at most `limit` of them unless that is negative."""
    found: list[object] = []
    for match in _matches(text.encode(), cast(_BytesPattern, compile_pattern(pattern))):
        if len(found) == limit:
            break
        found.append(match.decode())
        if len(found) > MAX_STEPS:
            raise CostLimitError
    return found


def _matches(text: bytes, pattern: _BytesPattern) -> Iterator[bytes]:
    """Go's rules: no empty match directly after another match, and none within a character."""
    previous_end = -1
    for match in pattern.finditer(text):
        start, end = match.start(), match.end()
        if start != end or (
            start != previous_end and not _is_continuation(text[start : start + 1])
        ):
            yield text[start:end]
        previous_end = end


def _is_continuation(byte: bytes) -> bool:
    return byte != b"" and byte[0] & 0xC0 == 0x80


def _find_all_cost(args: Sequence[object], result: object) -> int:
    """Even a short match takes time, so many of them are charged one by one."""
    return regex_cost(args, result) + max(0, actual_size(result) - FREE_GROWTH)


_TEXTS = list_of(STRING)
_PAIR, _TRIPLE = (STRING, STRING), (STRING, STRING, INT)

REGEX = Library(
    "kubernetes.regex",
    functions=(
        *priced(REGEX_RULE, member("find", "string_find_string", _PAIR, STRING, find, pattern=1)),
        *priced(
            Rule(REGEX_RULE.estimate, _find_all_cost),
            member("findAll", "string_find_all_string", _PAIR, _TEXTS, find_all, pattern=1),
            member("findAll", "string_find_all_string_int", _TRIPLE, _TEXTS, find_all, pattern=1),
        ),
    ),
)

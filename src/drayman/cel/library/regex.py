"""`find` and `findAll`: RE2's syntax, linear time."""

from __future__ import annotations

from typing import Protocol, cast

from drayman.cel.functions import Function, Library, Overload
from drayman.cel.library.rules import regex_cost, regex_estimate
from drayman.cel.regex import compile_pattern
from drayman.cel.types import INT, STRING, list_of


class _Span(Protocol):
    def start(self) -> int: ...

    def end(self) -> int: ...


def find(text: str, pattern: str) -> str:
    """The leftmost match; empty if there is none."""
    match = compile_pattern(pattern).search(text)
    return match.group() if match is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[object]:
    """The matches from left to right, `limit` at most unless that is negative. None starts where another ended, if empty."""
    found: list[object] = []
    previous_end = -1
    for match in compile_pattern(pattern).finditer(text):
        if len(found) == limit:
            break
        span = cast(_Span, match)
        if span.start() != span.end() or span.start() != previous_end:
            found.append(match.group())
        previous_end = span.end()
    return found


_STRINGS = list_of(STRING)

REGEX = Library(
    "kubernetes.regex",
    functions=(
        Function(
            "find",
            (
                Overload(
                    "string_find_string", (STRING, STRING), STRING, find, member=True, pattern=1
                ),
            ),
            regex_estimate,
            regex_cost,
        ),
        Function(
            "findAll",
            (
                Overload(
                    "string_find_all_string",
                    (STRING, STRING),
                    _STRINGS,
                    find_all,
                    member=True,
                    pattern=1,
                ),
                Overload(
                    "string_find_all_string_int",
                    (STRING, STRING, INT),
                    _STRINGS,
                    find_all,
                    member=True,
                    pattern=1,
                ),
            ),
            regex_estimate,
            regex_cost,
        ),
    ),
)

"""Regular expressions: RE2's syntax, searched in linear time.

The binding is imported on first use because most selectors have no pattern and start-up time counts. RE2 and Go's `regexp` agree on the
syntax except for a few corner cases, in which Go's behaviour is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

from drayman.cel.errors import EvaluationError

MAX_PATTERN = 10_240
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")

_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class Match(Protocol):
    def group(self, index: int = 0) -> str: ...


class Pattern(Protocol):
    """The part of a compiled pattern that is used here."""

    def search(self, text: str) -> Match | None: ...

    def finditer(self, text: str) -> Iterator[Match]: ...


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Pattern:
    """Raises EvaluationError where Go would refuse the pattern."""
    import re2

    if len(pattern) > MAX_PATTERN:
        raise EvaluationError("error parsing regexp: expression too large")
    if _ANY_BYTE.search(pattern):
        raise EvaluationError(
            f"error parsing regexp: invalid escape sequence: `\\C` in `{pattern}`"
        )
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Pattern = re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError(f"error parsing regexp: {_in_go_words(text)}") from None
    return compiled


def _in_go_words(text: str) -> str:
    """RE2's error about a pattern, in Go's words."""
    reason, _, part = text.partition(": ")
    if reason == "trailing \\":  # the one error without the part it is about
        return "trailing backslash at end of expression: ``"
    return f"{_GO_WORDS.get(reason, reason)}: `{part}`"


def matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None

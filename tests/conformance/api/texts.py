"""Texts of answers: messages of refusals and of their causes, and warnings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from conformance.api.comparing import Answer
from conformance.api.vectors import Expected

_PATTERNS: Final = {
    r"<uid:\d+>": r"[0-9a-f-]{36}",
    r"<rv(:\d+)?>": r"\d+",
    r"<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    r"<generated:\d+>": r"[a-z0-9]{5}",
}
"""What may stand in a text for a placeholder."""
_PLACEHOLDER: Final = re.compile("|".join(f"({pattern})" for pattern in _PATTERNS))
_QUOTED: Final = re.compile(r'299 - "(.*)"')


def text_differences(expect: Expected, answer: Answer, token: str) -> Iterator[str]:
    """Which recorded texts the answer does not have."""
    if expect.message is not None and not _is(expect.message, answer.message, token):
        yield f"says {answer.message!r} instead of {expect.message!r}"
    for cause in expect.causes:
        said = [
            c.message for c in answer.causes if (c.reason, c.field) == (cause.reason, cause.field)
        ]
        if not any(_is(cause.message, text, token) for text in said):
            yield f"says {said} about {cause.field} instead of {cause.message!r}"
    warnings = [
        match[1].replace('\\"', '"') for w in answer.warnings if (match := _QUOTED.fullmatch(w))
    ]
    if len(warnings) != len(expect.warnings) or not all(
        _is(wanted, text, token) for wanted, text in zip(expect.warnings, warnings, strict=True)
    ):
        yield f"warns {warnings} instead of {list(expect.warnings)}"


def _is(recorded: str, text: str, token: str) -> bool:
    """Whether a text is the recorded one, but for what its server chose."""
    pattern, position = "", 0
    recorded = recorded.replace("{u}", token)
    for match in _PLACEHOLDER.finditer(recorded):
        free = next(p for name, p in _PATTERNS.items() if re.fullmatch(name, match[0]))
        pattern += re.escape(recorded[position : match.start()]) + free
        position = match.end()
    return re.fullmatch(pattern + re.escape(recorded[position:]), text) is not None

"""JSON that leaves nothing to guess."""

from __future__ import annotations

import codecs
from typing import Any

import pytest

from drayman.api.errors import JsonError
from drayman.api.syntax import json_text

READ: dict[str, tuple[bytes, Any]] = {
    "object": (b' {"a": [1, 2.5, null, true]}\n', {"a": [1, 2.5, None, True]}),
    "byte order mark": (codecs.BOM_UTF8 + b"[]", []),
    "pair of surrogates": (b'"\\ud83d\\ude00"', "\U0001f600"),
    "number beyond what is held": (b"[1e400, -1E999999999]", ["1e400", "-1E999999999"]),
    "integer beyond any use": (b"9" * 1_000_000, "9" * 1_000_000),
    "integer of 128 bits": (b"-340282366920938463463374607431768211456", -(2**128)),
    "as deep as allowed": (b"[" * 256 + b"]" * 256, None),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ)
def test_read(data: bytes, value: Any) -> None:
    """JSON is read as what it says; numbers too large to hold remain texts."""
    found = json_text.parse(data)
    assert value is None or found == value


REFUSED: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 1, "Expecting value"),
    "cut off": (b'{"a": [1,\n', 2, "Expecting value"),
    "more after it": (b"[]\n[]", 2, "Extra data"),
    "field twice": (b'{"a": 1, "b": {"c": 1, "c": 1}}', 1, "the key 'c' is there twice"),
    "NaN": (b"[NaN]", 1, "NaN is not a number in JSON"),
    "infinity": (b"\n\n[-Infinity]", 3, "-Infinity is not a number in JSON"),
    "half a character": (b'["\\uD800"]', 1, "half of a surrogate pair"),
    "control character": (b'["a\x0bb"]', 1, "Invalid control character"),
    "NUL": (b"[]\x00", 1, "Extra data"),
    "not UTF-8": (b'[\n"\xff"]', 2, "not valid UTF-8"),
    "UTF-16": ("[]".encode("utf-16"), 1, "it looks like UTF-16"),
    "too deep": (b"[" * 257 + b"]" * 257, 1, "nested more than 256 levels deep"),
    "far too deep": (b'{"a":' * 1_000_000, 1, "nested more than 256 levels deep"),
}


@pytest.mark.parametrize(("data", "line", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(data: bytes, line: int, reason: str) -> None:
    """What is wrong is said, with the line."""
    with pytest.raises(JsonError) as caught:
        json_text.parse(data)
    assert reason in caught.value.reason
    assert caught.value.line == line

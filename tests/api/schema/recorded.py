"""The recorded behaviour of the API server, where it is there to be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[4] / "shared"
VECTOR_FILES = ("validation.jsonl", "defaults.jsonl", "scenarios.jsonl")


def vectors() -> Iterator[dict[str, Any]]:
    """All vectors of the API. Skips the test that asks where there are none."""
    folder = SHARED / "conformance" / "api"
    if not folder.is_dir():
        pytest.skip("the recorded vectors are not on this machine")
    for name in VECTOR_FILES:
        with (folder / name).open() as lines:
            yield from map(json.loads, lines)


def transcripts() -> Iterator[dict[str, Any]]:
    """All recorded exchanges. Skips the test that asks where there are none."""
    path = SHARED / "transcripts" / "kubectl.jsonl"
    if not path.is_file():
        pytest.skip("the recorded exchanges are not on this machine")
    with path.open() as lines:
        yield from map(json.loads, lines)

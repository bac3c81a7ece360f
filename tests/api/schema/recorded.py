"""The recorded behaviour of the API server; exchanges with kubectl where they are there to be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.records import API, records

SHARED = Path(__file__).resolve().parents[4] / "shared"


def vectors() -> Iterator[dict[str, Any]]:
    """All vectors of the API."""
    for file in API:
        yield from records(file)


def transcripts() -> Iterator[dict[str, Any]]:
    """All recorded exchanges. Skips the test that asks where there are none."""
    path = SHARED / "transcripts" / "kubectl.jsonl"
    if not path.is_file():
        pytest.skip("the recorded exchanges are not on this machine")
    with path.open() as lines:
        yield from map(json.loads, lines)

"""The recorded facts, read from the compressed files of this folder."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import pytest

JsonObject = dict[str, Any]
T = TypeVar("T")

FOLDER: Final = Path(__file__).parent / "recorded"
ALLOCATOR: Final = ("allocator/directed", "allocator/fuzz", "allocator/scaling")
API: Final = ("api/validation", "api/defaults", "api/scenarios")
FILES: Final = (*ALLOCATOR, "cel/devices", "cel/vectors", *API, "scheduling/scenarios")


REFERENCE: Final = Path(__file__).parents[3] / "shared" / "conformance"
"""Where the records come from, if it is beside the repository."""
UPSTREAMS_TABLE: Final = "allocator/table"
"""Upstream's own table of allocation problems, which only the reference has."""


@cache
def lines(file: str) -> tuple[bytes, ...]:
    """The records of a file as text, one each."""
    return tuple(gzip.decompress((FOLDER / f"{file}.jsonl.gz").read_bytes()).splitlines())


def records(file: str) -> list[JsonObject]:
    """The records of a file, for the caller to change at will."""
    return typed(file, JsonObject)


def typed(file: str, kind: type[T]) -> list[T]:
    """The records of a file in a form of the caller's."""
    decoder = msgspec.json.Decoder(kind)
    return [decoder.decode(line) for line in lines(file)]


def problems(file: str) -> list[JsonObject]:
    """The records of a file of ours, or of the reference. Skips the test that asks for the latter where it is not."""
    if file in FILES:
        return records(file)
    table, scenarios = REFERENCE / f"{file}.json", REFERENCE / f"{file}.jsonl"
    if table.exists():
        return msgspec.json.decode(table.read_bytes(), type=list[JsonObject])
    if scenarios.exists():
        return [msgspec.json.decode(line) for line in scenarios.read_bytes().splitlines()]
    pytest.skip(f"the records {file} are not beside the repository")

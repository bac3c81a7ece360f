"""Which part of a log is shown, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drayman.node.agent.logs import read_log
from drayman.node.streams.model import LogOptions

LOG = (
    "2026-01-01T00:00:01.000000001Z stdout F one\n"
    "2026-01-01T00:00:02.000000000Z stderr F two\n"
    "2026-01-01T00:00:03.000000000Z stdout P thr\n"
    "2026-01-01T00:00:03.100000000Z stdout F ee\n"
    "2026-01-01T00:00:04.000000000Z stdout F \n"
)


@dataclass(frozen=True)
class Case:
    says: str
    options: LogOptions
    want: bytes


CASES = [
    Case(
        "all of it, parts of a line put together",
        LogOptions(follow=True),
        b"one\ntwo\nthree\n\n",
    ),
    Case("the last lines", LogOptions(tail=1), b"\n"),
    Case("no line", LogOptions(tail=0), b""),
    Case(
        "lines since a moment", LogOptions(since=datetime(2026, 1, 1, 0, 0, 4, tzinfo=UTC)), b"\n"
    ),
    Case("so many bytes", LogOptions(limit_bytes=5), b"one\nt"),
    Case(
        "with the time of each line",
        LogOptions(timestamps=True, limit_bytes=35),
        b"2026-01-01T00:00:01.000000001Z one\n",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
async def test_part_of_a_log(case: Case, tmp_path: Path) -> None:
    """Each case says what holds."""
    path = tmp_path / "log"
    path.write_text(LOG)
    pieces = [piece async for piece in read_log(path, case.options, lambda: True)]
    assert b"".join(pieces) == case.want


async def test_following_ends_with_the_container(tmp_path: Path) -> None:
    """What is written before the end is shown, also the last line."""
    path = tmp_path / "log"
    answers = iter((False, False, True))

    def is_over() -> bool:
        found = next(answers)
        if found:
            path.write_text(LOG)
        return found

    pieces = [piece async for piece in read_log(path, LogOptions(follow=True), is_over)]
    assert b"".join(pieces) == b"one\ntwo\nthree\n\n"

"""Which part of a log is shown, case by case, and how logs are kept in files."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.node.agent.processes import log_files
from drayman.node.agent.processes.log_files import LONGEST_LINE, Log
from drayman.node.agent.processes.logs import last_entries, read_log
from drayman.node.streams.model import LogOptions

LOG = (
    "2026-01-01T00:00:01.000000001Z stdout F one\n"
    "2026-01-01T00:00:02.000000000Z stderr F two\n"
    "2026-01-01T00:00:03.000000000Z stdout P thr\n"
    "2026-01-01T00:00:03.100000000Z stdout F ee\n"
    "2026-01-01T00:00:04.000000000Z stdout F \n"
)
FILES = ("log.9", "log.10", "log.11", "log")
"""In their order, which is not that of their names."""


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
    Case("the last lines, of several files", LogOptions(tail=4), b"two\nthree\n\n"),
    Case("more than there are", LogOptions(tail=1000), b"one\ntwo\nthree\n\n"),
    Case("no line", LogOptions(tail=0), b""),
    Case(
        "lines since a moment", LogOptions(since=datetime(2026, 1, 1, 0, 0, 4, tzinfo=UTC)), b"\n"
    ),
    Case(
        "lines since before there was time",
        LogOptions(since_seconds=10**18),
        b"one\ntwo\nthree\n\n",
    ),
    Case("so many bytes", LogOptions(limit_bytes=5), b"one\nt"),
    Case("so many bytes of the last lines", LogOptions(limit_bytes=5, tail=4), b"two\nt"),
    Case(
        "with the time of each line",
        LogOptions(timestamps=True, limit_bytes=35),
        b"2026-01-01T00:00:01.000000001Z one\n",
    ),
]


def spread(folder: Path, text: str, count: int) -> Path:
    """A log in so many files."""
    lines = iter(text.splitlines(keepends=True))
    names = FILES[-count:]
    for name in names:
        (folder / name).write_text("".join(islice(lines, None if name == "log" else 1)))
    return folder / "log"


async def shown(path: Path, options: LogOptions) -> bytes:
    return b"".join([piece async for piece in read_log(path, options, lambda: True)])


@pytest.mark.parametrize("count", range(1, len(FILES) + 1))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
async def test_part_of_a_log(case: Case, count: int, tmp_path: Path) -> None:
    """Each case says what holds, in however many files the log is."""
    assert await shown(spread(tmp_path, LOG, count), case.options) == case.want


async def test_a_line_that_was_cut_short(tmp_path: Path) -> None:
    """It is left out, also where another file follows, and carriage returns divide nothing."""
    (tmp_path / "log.1").write_text(LOG + "2026-01-01T00:0")
    (tmp_path / "log").write_text(
        "2026-01-01T00:00:05.0Z stdout F 1%\r2%\n2026-01-01T00:00:06.0Z s"
    )
    assert await shown(tmp_path / "log", LogOptions()) == b"one\ntwo\nthree\n\n1%\r2%\n"


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


@pytest.mark.parametrize(
    ("tail", "last", "want"),
    [
        (None, 9, range(29)),
        (2, 9, range(8, 29)),
        (0, 9, range(10, 29)),
        # What is gone before anybody could read it is not shown, and what comes after it is.
        (0, 90, (*range(10, 20), *range(95, 110))),
    ],
)
async def test_following_from_file_to_file(
    tail: int | None, last: int, want: Iterable[int], tmp_path: Path
) -> None:
    """Nothing is left out and nothing shown twice when files become full, and are removed."""
    log = Log(str(tmp_path / "log"), most_bytes=200, most_files=3)
    numbers = iter(range(1000))

    def write(lines: int) -> None:
        for number in islice(numbers, lines):
            log.add("stdout", f"{number:03}\n".encode())

    write(10)
    # Nothing before the first look, then nothing, less than a file, more than one, and again.
    amounts = iter((0, 0, 1, 9, last))

    def is_over() -> bool:
        amount = next(amounts, None)
        write(amount or 0)
        return amount is None

    options = LogOptions(follow=True, tail=tail)
    seen = b"".join([piece async for piece in read_log(tmp_path / "log", options, is_over)])
    assert [int(line) for line in seen.split()] == list(want)


STREAMS = st.sampled_from(("stdout", "stderr"))
SAID = st.lists(st.tuples(STREAMS, st.text("ab\r\n", max_size=40)), max_size=40)


@given(said=SAID, most_bytes=st.integers(1, 400), tail=st.integers(0, 30))
def test_files_hold_the_end_of_what_was_said(
    said: list[tuple[str, str]], most_bytes: int, tail: int
) -> None:
    """Each entry is in one file, there are no more files than allowed, and the last entries are found from the end."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        for most_files in (3, 1000):
            log = Log(str(path), most_bytes, most_files)
            for stream, text in said:
                log.add(stream, text.encode())
            log.finish()
            kept = last_entries(path, 10_000)
            files = [Path(each).read_bytes() for each in (*log_files.full_files(str(path)), path)]
            assert len(files) <= most_files
            assert all(data.endswith(b"\n") for data in files if data)
            assert len(kept) == b"".join(files).count(b"\n")
            assert last_entries(path, tail) == kept[len(kept) - tail if tail < len(kept) else 0 :]
            for each in Path(folder).iterdir():
                each.unlink()
        everything = b"".join(entry.text + b"\n" * entry.is_whole for entry in kept)
        assert sorted(everything) == sorted("".join(text for _, text in said).encode())


def test_a_full_disk(tmp_path: Path) -> None:
    """What finds no room is lost. The log goes on when there is some, with a line of its own."""
    path = tmp_path / "log"
    log = Log(str(path))
    log.add("stdout", b"one\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
    try:
        log.add("stdout", b"two\n")
        log.add("stdout", b"three\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.add("stdout", b"four\n")
    assert [entry.text for entry in last_entries(path, 10)] == [b"one", b"four"]


def test_long_lines_are_divided(tmp_path: Path) -> None:
    """In parts that are put together again."""
    log = Log(str(tmp_path / "log"))
    log.add("stdout", b"x" * (2 * LONGEST_LINE + 1))
    log.add("stdout", b"y\n")
    entries = last_entries(tmp_path / "log", 10)
    assert [entry.is_whole for entry in entries] == [False, False, True]
    assert b"".join(entry.text for entry in entries) == b"x" * (2 * LONGEST_LINE + 1) + b"y"


async def test_a_client_that_leaves(tmp_path: Path) -> None:
    """Its files are closed, also while they are being read."""
    path = spread(tmp_path, LOG, 2)
    pieces = read_log(path, LogOptions(follow=True), lambda: False)
    reading = asyncio.create_task(anext(pieces))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait((reading,))
    await pieces.aclose()
    assert [
        each.name for each in Path("/proc/self/fd").iterdir() if _leads_below(each, tmp_path)
    ] == []


def _leads_below(descriptor: Path, folder: Path) -> bool:
    return descriptor.resolve().is_relative_to(folder)

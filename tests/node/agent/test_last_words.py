"""What a container leaves to say when it has failed: the end of its log, if that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from drayman.node.agent.processes.attempts import Attempt, Ended
from drayman.node.agent.processes.messages import LINES_OF_LOG, LONGEST_OF_LOG, last_words
from drayman.node.agent.spec import Container

FALLS_BACK = Container(termination_message_policy="FallbackToLogsOnError")
HEAD = b"2026-01-01T00:00:01.000000001Z stderr F "


@dataclass(frozen=True)
class Case:
    says: str
    log: bytes
    want: str


CASES = [
    Case("lines of both streams", HEAD + b"one\n" + HEAD + b"two\n", "one\ntwo\n"),
    Case("a carriage return is no end of a line", HEAD + b"10%\r20%\n", "10%\r20%\n"),
    Case("a last line that was cut short is left out", HEAD + b"one\n2026-01-01T0", "one\n"),
    Case("no more than so many lines", (HEAD + b"x\n") * 100, "x\n" * LINES_OF_LOG),
    Case(
        "no more than so many bytes", HEAD + b"y" * 5000 + b"\n", "y" * (LONGEST_OF_LOG - 1) + "\n"
    ),
    Case("nothing of an empty log", b"", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_the_end_of_a_log(case: Case, tmp_path: Path) -> None:
    """Each case says what is told."""
    (tmp_path / "log").write_bytes(case.log)
    assert last_words(FALLS_BACK, Attempt(tmp_path), Ended(1)) == case.want

"""What a container leaves to say when it ends: a file that it writes, or the end of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from drayman.node.agent.processes.attempts import Attempt, Ended
from drayman.node.agent.processes.logs import last_entries
from drayman.node.agent.spec import Container

LONGEST: Final = 4096
LONGEST_OF_LOG: Final = 2048
LINES_OF_LOG: Final = 80


def last_words(container: Container, attempt: Attempt, ended: Ended) -> str:
    """Raises OSError."""
    said = _end_of(attempt.message_file, LONGEST).decode("utf-8", "replace")
    falls_back = container.termination_message_policy == "FallbackToLogsOnError"
    if said or not falls_back or ended.code == 0:
        return said
    return _end_of_log(attempt.log)


def _end_of_log(path: Path) -> str:
    text = b"".join(each.shown(timestamps=False) for each in last_entries(path, LINES_OF_LOG))
    return text[-LONGEST_OF_LOG:].decode("utf-8", "replace")


def _end_of(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most))
            return file.read(most)
    except FileNotFoundError:
        return b""

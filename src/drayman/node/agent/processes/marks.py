"""What an agent writes down about an attempt, in its folder, beside what the shim writes: for an agent that comes after it was killed.

post-start  that the hook was begun, and that it has returned. The first is written before the hook is run: a hook that adds something
            must not do so twice, so one whose agent was killed is not run again. Its command goes on without the agent and has most
            likely ended.
failed      why the container has to be ended. It is written before the container is told, so that one that ends with code 0 then has not
            succeeded, and so that the next agent goes on with it.
with-node   that the container was ended because its node was: it has not crashed, and is not kept waiting by the next agent.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

from drayman.plugins.files import write_atomically

_POST_START: Final = "post-start"
_FAILED: Final = "failed"
_WITH_NODE: Final = "with-node"


class Hook(Enum):
    """How far the hook of an attempt has come."""

    DUE = ""
    BEGUN = "begun"
    RETURNED = "returned"
    CUT_OFF = "cut off"
    """Its agent has ended before it returned, and somebody has said so."""


class Failure(Enum):
    """Why a container that runs is ended, though its pod goes on."""

    STARTUP = "startup probe"
    LIVENESS = "liveness probe"
    POST_START = "postStart hook"


def hook_of(folder: Path) -> Hook:
    """Raises OSError."""
    return Hook(_read(folder / _POST_START))


def note_hook(folder: Path, hook: Hook) -> None:
    """Raises OSError."""
    write_atomically(folder / _POST_START, hook.value.encode())


def failure_of(folder: Path) -> Failure | None:
    """Raises OSError."""
    found = _read(folder / _FAILED)
    return Failure(found) if found else None


def note_failure(folder: Path, failure: Failure) -> None:
    """Raises OSError."""
    write_atomically(folder / _FAILED, failure.value.encode())


def ended_with_node(folder: Path) -> bool:
    return (folder / _WITH_NODE).exists()


def note_end_with_node(folder: Path) -> None:
    """Raises OSError."""
    write_atomically(folder / _WITH_NODE, b"")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""

"""What a command does to the process that it has for itself. Where it was called from another program, it leaves the process alone.

A question about a cluster must not slow down the scheduler that may be on the same machine: it gives way. And it ends at once: to take a
hundred thousand objects apart one by one takes a noticeable part of the time of such a command, and the end of the process does it for
nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

_LESS_URGENT: Final = 10
"""The niceness of the process: mostly what others leave of the processors is enough, and where they leave nothing it still gets a tenth."""

_is_own = False
_kept: Final[list[object]] = []


def own() -> None:
    """The process is there for one command."""
    global _is_own  # noqa: PLW0603 - there is one process, and it is this one
    _is_own = True


def give_way() -> None:
    """Leave the processors to whoever needs them, once and for the rest of the process."""
    if _is_own and os.getpriority(os.PRIO_PROCESS, 0) < _LESS_URGENT:
        os.setpriority(os.PRIO_PROCESS, 0, _LESS_URGENT)


def keep(value: object) -> None:
    """Hold something large until the end, in place of what was kept before."""
    _kept[:] = [value]


def leave(status: int) -> NoReturn:
    """End the process. What was kept is left to the system."""
    if _is_own and _kept:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    sys.exit(status)

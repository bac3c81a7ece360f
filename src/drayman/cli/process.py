"""What a command does to the process that it has for itself. Where it was called from another program, it leaves the process alone.

A question about a cluster must not slow down the scheduler that may be on the same machine: it gives way.
"""

from __future__ import annotations

import os
from typing import Final

_LESS_URGENT: Final = 10
"""The niceness of the process: mostly what others leave of the processors is enough, and where they leave nothing it still gets a tenth."""

_is_own = False


def own() -> None:
    """The process is there for one command."""
    global _is_own  # noqa: PLW0603 - there is one process, and it is this one
    _is_own = True


def give_way() -> None:
    """Leave the processors to whoever needs them, once and for the rest of the process."""
    if _is_own and os.getpriority(os.PRIO_PROCESS, 0) < _LESS_URGENT:
        os.setpriority(os.PRIO_PROCESS, 0, _LESS_URGENT)

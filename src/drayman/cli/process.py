"""What a command does to a process of its own. Called from another program, it leaves the process alone.

A question about a cluster must not slow down a scheduler on the same machine, so it runs at low priority.
"""

from __future__ import annotations

import os
from typing import Final

_LESS_URGENT: Final = 10
"""The niceness of the process: what others leave of the processors is usually enough, and if they leave nothing it still gets a tenth."""

_is_own = False


def own() -> None:
    """Mark the process as existing for one command."""
    global _is_own  # noqa: PLW0603 - there is one process, and it is this one
    _is_own = True


def give_way() -> None:
    """Lower the priority of the process, once and until it ends."""
    if _is_own and os.getpriority(os.PRIO_PROCESS, 0) < _LESS_URGENT:
        os.setpriority(os.PRIO_PROCESS, 0, _LESS_URGENT)

"""Work in the background, which nobody waits for.

The event loop keeps the error of such a task to itself, and whoever gathers the task when it is no longer needed discards it. So a failure
is logged when it happens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any


def in_background(
    work: Coroutine[Any, Any, None], name: str, log: logging.Logger
) -> asyncio.Task[None]:
    """A task for work. `name` is what the log says has failed; the task has to be kept by the caller."""
    task = asyncio.create_task(work, name=name)
    report_failure(task, log)
    return task


def report_failure(task: asyncio.Task[None], log: logging.Logger) -> None:
    """Nobody waits for a task from now on."""
    task.add_done_callback(partial(_report, log))


def _report(log: logging.Logger, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("%s has failed", task.get_name(), exc_info=task.exception())

"""`drayman replay`: the group of its commands."""

from __future__ import annotations

from typing import Final

import click

from drayman.cli.lazy import LazyGroup

COMMANDS: Final = {
    "quota": "drayman.cli.replay.quota:quota",
    "queues": "drayman.cli.replay.queues:queues",
}

_EPILOG: Final = """\b
Examples:
  drayman replay quota --scenarios quota.jsonl --results -
  drayman replay queues --scenarios queues.jsonl --results -
"""


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog=_EPILOG)
def replay() -> None:
    """Decide recorded scenarios of queues, step by step."""

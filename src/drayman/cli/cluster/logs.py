"""`drayman logs`: what the components of an instance have logged."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import click

from drayman.cli.cluster.log_lines import COMPONENTS, Chooser
from drayman.cli.errors import UserError, reason
from drayman.cli.options import data_dir_option
from drayman.cli.output import refuse_unread, to_stdout
from drayman.questions.which_cluster import folder_of

_POLL_S: Final = 0.2
_EPILOG: Final = """\b
Examples:
  drayman logs scheduler                who went where, with which devices
  drayman logs scheduler -f --tail 0    the next decisions
  drayman logs queues controllers       several at once
"""


@click.command(epilog=_EPILOG)
@click.argument("components", nargs=-1, type=click.Choice(COMPONENTS), metavar="[COMPONENT]...")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is logged from now on.")
@click.option(
    "--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines of what is there."
)
@data_dir_option
def logs(
    components: tuple[str, ...], follow: bool, tail: int | None, data_dir: Path | None
) -> None:
    """Print what the cluster of a data directory has logged.

    COMPONENT is scheduler, controllers, queues, nodes or server; without one, everything is printed.
    """
    path = folder_of(data_dir).log
    try:
        file = path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise UserError(
            f"there is no {path}: nothing has run on that directory; start it with `drayman up`"
        ) from error
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}") from error
    chooser = Chooser(frozenset(components))
    with file:
        for line in deque(filter(chooser.wants, _lines(path, file)), tail):
            to_stdout(line)
        while follow:
            for line in filter(chooser.wants, _added(file)):
                to_stdout(line)
            refuse_unread()
            time.sleep(_POLL_S)


def _lines(path: Path, file: IO[str]) -> Iterator[str]:
    """What is there: first the file that was full, if there is one."""
    full = path.with_name(f"{path.name}.1")
    if full.exists():
        with full.open(encoding="utf-8", errors="replace") as before:
            yield from (line.rstrip("\n") for line in before)
    yield from _added(file)


def _added(file: IO[str]) -> Iterator[str]:
    """The lines since the last call that are complete. A file that has become shorter is read from its start."""
    position = file.tell()
    if file.seek(0, 2) < position:
        position = 0
    file.seek(position)
    while (line := file.readline()).endswith("\n"):
        position = file.tell()
        yield line.rstrip("\n")
    file.seek(position)

"""Data to standard output as JSON or YAML, and tables for people.

Rich is imported only where something is drawn, because importing it costs as much as everything else at start-up. On anything
but a terminal, and where NO_COLOR is set, it writes plain text.
"""

from __future__ import annotations

import logging
import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

Data = Mapping[str, Any] | Sequence[Any]
"""What JSON and YAML can hold."""

PLAIN_WIDTH: Final = 80
"""Columns of output that goes to no terminal, so that it reads the same everywhere."""

_log: Final = logging.getLogger(__name__)
_F = TypeVar("_F", bound=Callable[..., object])


def format_option(function: _F) -> _F:
    """The option `-o json|yaml`, as `output_format`."""
    return click.option(
        "-o",
        "--output",
        "output_format",
        type=click.Choice(["json", "yaml"]),
        help="Print data instead of text.",
    )(function)


def print_data(data: Data, output_format: str) -> None:
    """Print a document."""
    if output_format == "yaml":
        import yaml

        click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)
        return
    import json

    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def say(sentence: str) -> None:
    """Tell whoever sits there, on standard error. Where nobody does any more, what the process is there for goes on."""
    try:
        click.echo(sentence, err=True)
    except OSError as error:
        _log.debug("not said: %s (%s)", sentence, error)


def refuse_unread() -> None:
    """Raise BrokenPipeError if whoever read standard output has gone: a command that only waits would not notice by writing."""
    if sys.stdout is None:
        return
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # it goes to no file, as in tests
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        raise BrokenPipeError


def console(file: IO[str] | None = None) -> Console:
    """Where to draw: colours and the real width on a terminal, plain text of 80 columns elsewhere."""
    from rich.console import Console

    class PipedConsole(Console):
        """A console that leaves a closed pipe to the entry point, as any other way of printing does."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    target = file or sys.stdout or StringIO()  # closed: nobody is to see it
    width = None if target.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    return PipedConsole(file=target, width=width, highlight=False, soft_wrap=False)


def can_redraw(out: Console) -> bool:
    """Whether a picture can be drawn over the last one. What cannot do that gets pictures one after the other."""
    return out.is_terminal and not out.is_dumb_terminal

"""Data to standard output as JSON or YAML, and tables for people.

Rich is imported only where something is drawn, because importing it costs as much as everything else at start-up. On anything
but a terminal, and where NO_COLOR is set, it writes plain text.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

from drayman.printable import printable, printable_json, printable_yaml

if TYPE_CHECKING:
    from rich.console import Console

Data = Mapping[str, Any] | Sequence[Any]
"""What JSON and YAML can hold."""

PLAIN_WIDTH: Final = 80
"""Columns of output that does not go to a terminal, so that it reads the same everywhere."""

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
        click.echo(printable_yaml(data), nl=False)
        return
    import json

    click.echo(printable_json(json.dumps(data, indent=2, ensure_ascii=False)))


def to_stderr(text: str, *, nl: bool = True) -> None:
    """Print to standard error. On a terminal, lines that are too long are wrapped between words."""
    click.echo(_wrapped(printable(text), sys.stderr), err=True, nl=nl)


def to_stdout(text: str, *, wraps: bool = False) -> None:
    """Print for people to standard output. With `wraps`, as on standard error; not for commands, which have to be copied whole."""
    click.echo(_wrapped(printable(text), sys.stdout) if wraps else printable(text))


def print_verbatim(text: str, *, nl: bool = True) -> None:
    """Print what programs may read, such as the text of a file: as it is, except on a terminal, where it is only looked at."""
    is_looked_at = sys.stdout is not None and sys.stdout.isatty()
    click.echo(printable(text) if is_looked_at else text, nl=nl)


def _wrapped(text: str, stream: IO[str] | None) -> str:
    if stream is None or not stream.isatty():
        return text
    width = os.get_terminal_size(stream.fileno()).columns or PLAIN_WIDTH
    wrapper = textwrap.TextWrapper(
        width,
        subsequent_indent="  ",
        break_long_words=False,  # a path or an address has to be copied whole
        break_on_hyphens=False,
    )
    return "\n".join(
        # Lines with an indent are laid out already, such as an expression with a caret below it.
        wrapper.fill(line) if len(line) > width and not line.startswith(" ") else line
        for line in text.split("\n")
    )


def say(sentence: str) -> None:
    """Tell the user, on standard error. If standard error is closed, the process continues its work."""
    try:
        to_stderr(sentence)
    except OSError as error:
        _log.debug("not said: %s (%s)", sentence, error)


class PrintableFormatter(logging.Formatter):
    """Log lines in which nothing controls the terminal."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def date_log_lines() -> None:
    """Put the time before each line of the log, for commands that run for weeks."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_dated())


def log_to_stderr(level: int) -> None:
    """Write the log to standard error from a level on, in the same lines, for commands that can be told to say more than what is wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(_dated())
    logging.basicConfig(level=level, handlers=[handler])


def _dated() -> PrintableFormatter:
    return PrintableFormatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")


def refuse_unread() -> None:
    """Raise BrokenPipeError if the reader of standard output has gone: a command that only waits would not notice by writing."""
    if sys.stdout is None:
        return
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # not a real file, as in tests
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        raise BrokenPipeError


def console(file: IO[str] | None = None) -> Console:
    """Where to draw: colours and the real width on a terminal, plain text of 80 columns elsewhere."""
    from rich.console import Console, ConsoleOptions, Group, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class PlainConsole(Console):
        """A console on which only its own styles control the terminal, whatever it draws.

        It leaves a closed pipe to the entry point, as other ways of printing do.
        """

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

        def print(self, *objects: Any, **options: Any) -> None:
            # Names that are longer than a line go on in the next one: cut off, they could not be copied. The library joins texts to a
            # new one without their own settings for that, unless they are in a group.
            kept = (Group(each) if isinstance(each, Text) else each for each in objects)
            super().print(*kept, **{"crop": False, **options})

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    target = file or sys.stdout or StringIO()  # closed: nothing is to be shown
    width = None if target.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    return PlainConsole(file=target, width=width, highlight=False, soft_wrap=False)


def can_redraw(out: Console) -> bool:
    """Whether a frame can be drawn over the last one. Otherwise frames are printed one after another."""
    return out.is_terminal and not out.is_dumb_terminal

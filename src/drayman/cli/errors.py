"""What ends a command early.

Exit statuses: 0 for success, 1 for input that is wrong, 2 for a wrong command line (click's own), 70 for a fault of ours,
130 and 141 for an interrupt and a closed pipe, as shells have it.
"""

from __future__ import annotations

from typing import IO, Any, Final

import click

INTERNAL_ERROR: Final = 70
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141

LONGEST_MESSAGE: Final = 4_000
"""Characters of a message that are shown. What is wrong may be a name of a hundred megabytes."""


def printable(text: str) -> str:
    """The text with control characters spelt out: names from a file must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def reason(error: OSError) -> str:
    """What the system says, in the middle of a sentence."""
    return (error.strerror or str(error)).lower()


class UserError(click.ClickException):
    """Something the user gave is wrong. The message is one line that names file, object and field."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error."""
        message = self.message
        if len(message) > LONGEST_MESSAGE:
            message = f"{message[:LONGEST_MESSAGE]}..."
        click.echo(f"error: {printable(message)}", file=file, err=True)

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


class UserError(click.ClickException):
    """Something the user gave is wrong. The message is one line that names file, object and field."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error."""
        click.echo(f"error: {self.message}", file=file, err=True)

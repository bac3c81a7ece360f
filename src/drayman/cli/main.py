"""`drayman`: the entry point, and what every command has in common."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

import drayman
from drayman.cli.errors import CLOSED_PIPE, INTERNAL_ERROR, INTERRUPTED
from drayman.cli.lazy import LazyGroup

COMMANDS: Final = {
    "demo": "drayman.cli.demo.command:demo",
    "validate": "drayman.cli.validate:validate",
    "allocate": "drayman.cli.allocate:allocate",
    "cel": "drayman.cli.cel:cel",
}

_EPILOG: Final = """\b
Examples:
  drayman demo                          three claims on a simulated DGX H100
  drayman validate claim.yaml           field errors with file and line
  drayman COMMAND --help                what a command does, with examples
"""


@dataclass(slots=True)
class Settings:
    """The options of `drayman` itself."""

    debug: bool = False


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(drayman.__version__, "--version", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")
@click.pass_obj
def cli(settings: Settings | None, debug: bool) -> None:
    """Kubernetes Dynamic Resource Allocation: the right devices for every workload, and a reason for every refusal."""
    if settings is not None:
        settings.debug = debug


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status. Nothing escapes as a traceback unless it is asked for."""
    settings = Settings()
    try:
        status = cli.main(list(arguments), prog_name="drayman", standalone_mode=False, obj=settings)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return CLOSED_PIPE
    except Exception as error:
        if settings.debug:
            raise
        click.echo(
            f"internal error: {type(error).__name__}: {error}\n"
            "This is a bug in drayman. Please report it with the command line you used;"
            " `drayman --debug ...` shows where it happened.",
            err=True,
        )
        return INTERNAL_ERROR


def _discard_output() -> None:
    """Whoever read our output has gone: keep the interpreter from failing once more when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())

"""`drayman`: the entry point, and what every command has in common."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper
from types import FrameType
from typing import Final, TextIO

import click

import drayman
from drayman.cli.errors import (
    CLOSED_PIPE,
    INTERNAL_ERROR,
    INTERRUPTED,
    UserError,
    reason,
)
from drayman.cli.lazy import LazyGroup
from drayman.cli.output import PrintableFormatter, to_stderr
from drayman.cli.process import own
from drayman.cli.settings import Settings

COMMANDS: Final = {
    "up": "drayman.cli.cluster.up:up",
    "down": "drayman.cli.cluster.down:down",
    "status": "drayman.cli.cluster.down:status",
    "kubeconfig": "drayman.cli.cluster.down:kubeconfig",
    "logs": "drayman.cli.cluster.logs:logs",
    "explain": "drayman.cli.explain.command:explain",
    "plan": "drayman.cli.plan:plan",
    "capacity": "drayman.cli.capacity:capacity",
    "simulate": "drayman.cli.simulate.command:simulate",
    "defrag": "drayman.cli.defrag.command:defrag",
    "map": "drayman.cli.map.command:map_",
    "top": "drayman.cli.top.command:top",
    "snapshot": "drayman.cli.snapshot:snapshot",
    "migrate": "drayman.cli.migrate:migrate",
    "validate": "drayman.cli.validate:validate",
    "profiles": "drayman.cli.profiles:profiles",
    "node": "drayman.cli.nodes:node",
    "device": "drayman.cli.simulated_devices:device",
    "driver": "drayman.cli.drivers:driver",
    "scheduler": "drayman.cli.scheduler:scheduler",
    "queues": "drayman.cli.queues.command:queues",
    "queue": "drayman.cli.queues.command:queue",
    "quota": "drayman.cli.quota.command:quota",
    "bench": "drayman.cli.bench.command:bench",
    "demo": "drayman.cli.demo.command:demo",
    "allocate": "drayman.cli.allocate:allocate",
    "cel": "drayman.cli.cel:cel",
    "replay": "drayman.cli.replay.command:replay",
    "completion": "drayman.cli.completing:completion",
}

_EPILOG: Final = """\b
Examples:
  drayman up                            a Kubernetes API on this machine
  drayman demo                          the examples on simulated nodes
  drayman validate claim.yaml           field errors with file and line
  drayman COMMAND --help                what a command does, with examples
"""

_SIGNALLED: Final = 128
"""What shells add to the number of the signal that ended a process."""
_AGAIN_S: Final = 0.01


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
    _main(Settings(), "drayman")


def plugin() -> None:
    """The same for `kubectl drayman ...`: kubectl runs the executable `kubectl-drayman`."""
    _main(Settings(as_plugin=True), "kubectl drayman")


def _main(settings: Settings, program: str) -> None:
    own()
    end_on_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not every terminal can show every name
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:  # which prints to standard error
        logging.lastResort.setFormatter(PrintableFormatter())
    sys.exit(run(sys.argv[1:], settings, program))


def end_on_signals() -> None:
    """Have SIGTERM and SIGHUP end the process as Ctrl-C does, wherever it is."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if (
            signal.getsignal(number) is not signal.SIG_IGN
        ):  # ignored under nohup, to outlive the terminal
            signal.signal(number, _end)
    sys.unraisablehook = _ignored


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the process as a signal does, but removes temporary files first."""
    sys.exit(_SIGNALLED + number)


def _ignored(what: sys.UnraisableHookArgs) -> None:
    """Called with what is raised where Python goes on regardless, such as a callback of a weak reference, of which each import has one.

    If that was the end, it comes again a moment later. The process would otherwise start what it was told not to, perhaps with the lock of
    imports held for ever, so that its threads wait for ever.
    """
    error = what.exc_value
    if not isinstance(error, SystemExit | KeyboardInterrupt):
        sys.__unraisablehook__(what)
        return

    def raise_again(number: int, frame: FrameType | None) -> None:
        raise error

    signal.signal(signal.SIGALRM, raise_again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def run(
    arguments: Sequence[str], settings: Settings | None = None, program: str = "drayman"
) -> int:
    """Run a command line and return its exit status. Nothing escapes as a traceback unless requested."""
    settings = settings or Settings()
    try:
        status = cli.main(list(arguments), prog_name=program, standalone_mode=False, obj=settings)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _failed(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _discard(sys.stdout)
        return CLOSED_PIPE
    except OSError as error:
        _discard(sys.stdout)
        return _failed(UserError(f"output cannot be written: {reason(error)}"))
    except MemoryError:
        return _failed(UserError("there is not enough memory for this input"))
    except Exception as error:
        if settings.debug:
            raise
        to_stderr(
            f"internal error: {type(error).__name__}: {error}\n"
            "This is a bug in drayman. Please report it with the command line you used;"
            " `drayman --debug ...` shows where it happened.",
        )
        return INTERNAL_ERROR


def _failed(error: click.ClickException) -> int:
    shown = StringIO()
    error.show(shown)
    try:
        to_stderr(shown.getvalue(), nl=False)
    except OSError:
        _discard(sys.stderr)  # only the exit status can report it
    return error.exit_code


def _discard(stream: TextIO | None) -> None:
    """Nothing more can be written: keep the interpreter from failing again when it flushes at exit."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

"""Options that several commands have: files to read and write, where a cluster is, and how long a scheduler waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from drayman.apiserver.protocol.totals import BODIES, REQUESTS, SESSIONS, WATCHES
from drayman.cli import files

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.FloatRange):
    """A number of seconds."""

    name = "number of seconds"


SECONDS: Final = Seconds(0)


def manifests_option(function: F) -> F:
    """`-f`, as `paths`."""
    return click.option(
        "-f",
        "--filename",
        "paths",
        type=files.PATH,
        metavar="FILE",
        multiple=True,
        required=True,
        help="Manifests: a file, a folder, or - for standard input. May be given several times.",
    )(function)


def results_option(function: F) -> F:
    """`--results`, the name of a file that is written."""
    return click.option(
        "--results",
        required=True,
        type=files.PATH,
        metavar="FILE",
        help="Where to write; - for stdout.",
    )(function)


def data_dir_option(function: F) -> F:
    """`--data-dir`, as `data_dir`, which is None where it is not given."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        default=None,
        metavar="DIR",
        help="Where the cluster keeps its state. Default: DRAYMAN_DATA_DIR, or drayman in the user's state directory.",
    )(function)


def prices_option(function: F) -> F:
    """`--prices`, as `prices`: the name of a file, or None. `cli.prices` reads it."""
    return click.option(
        "--prices",
        type=click.Path(readable=False),
        envvar="DRAYMAN_PRICES",
        metavar="FILE",
        help="Prices of nodes by instance type, besides those in labels. Default: DRAYMAN_PRICES.",
    )(function)


def limit_options(function: F) -> F:
    """Options that bound what all users of the API hold together."""
    for limit, name, text in (
        (BODIES, "MIB", "Memory for bodies and answers above 64 KiB, in MiB."),
        (SESSIONS, "NUMBER", "Commands in containers and forwarded ports that are open at a time."),
        (WATCHES, "NUMBER", "Watches and followed logs at a time."),
        (
            REQUESTS,
            "NUMBER",
            "Requests at a time. One user alone gets 45 per cent of each of these limits.",
        ),
    ):  # the first one listed is applied last
        function = click.option(
            limit.option,
            type=click.IntRange(min=10),
            default=limit.usual,
            show_default=True,
            metavar=name,
            help=text,
        )(function)
    return function


def waiting_options(function: F) -> F:
    """`--binding-timeout` and `--pod-max-backoff`: for how long a scheduler waits."""
    timeout = click.option(
        "--binding-timeout",
        type=Seconds(1),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="How long devices and volumes may take to be ready before a pod is bound.",
    )
    backoff = click.option(
        "--pod-max-backoff",
        type=Seconds(0.1),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="Longest wait after an error before a pod is tried again.",
    )
    return timeout(backoff(function))

"""What the commands that replay scenarios have in common: a file of scenarios in, a file of results out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.options import results_option

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


def scenario_options(function: F) -> F:
    """`--scenarios` and `--results`, each the name of a file."""
    option = click.option(
        "--scenarios",
        required=True,
        type=files.PATH,
        metavar="FILE",
        help="A .jsonl of scenarios; - for stdin.",
    )
    return option(results_option(function))


def read_scenarios(path: str, decode: Callable[[bytes], S], bad: type[Exception]) -> list[S]:
    """The scenarios of a file, one a line. `bad` is what `decode` raises; UserError then names the file and the line."""
    found = []
    for number, line in enumerate(files.read(path).splitlines(), 1):
        if line.strip():
            try:
                found.append(decode(line))
            except bad as error:
                raise UserError(f"{files.display_name(path)}:{number}: {error}") from error
    return found


def counted(number: int) -> str:
    return "1 scenario" if number == 1 else f"{number} scenarios"

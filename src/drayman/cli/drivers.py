"""`drayman driver`: begin a driver, and run one on a node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.connecting import Where
from drayman.cli.errors import UserError, reason
from drayman.cli.lazy import LazyGroup
from drayman.cli.output import to_stdout

if TYPE_CHECKING:
    from drayman.cluster.kube.connection import Connection

_EPILOG: Final = """\b
Examples:
  drayman driver new sensor.example.com       a driver and a test for it
  drayman driver run gpu.example.com --help   the options of a driver
"""


@click.group(cls=LazyGroup, lazy={
    "new": "drayman.cli.drivers:new",
    "run": "drayman.cli.drivers:run",
}, epilog=_EPILOG)  # fmt: skip
def driver() -> None:
    """Write DRA drivers, and run them on a node."""


@click.command(
    epilog="\b\nExamples:\n"
    "  drayman driver new sensor.example.com\n"
    "  drayman driver new sensor.example.com --to drivers\n"
)
@click.argument("name")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Where to write. Default: here.",
)
def new(name: str, folder: Path) -> None:
    """Write a driver that works, and a test for it.

    NAME is that of the driver, a DNS name such as sensor.example.com.
    """
    from drayman.drivers.kit.errors import KitError
    from drayman.drivers.kit.skeleton import skeleton

    try:
        made = skeleton(name)
    except KitError as error:
        raise UserError(str(error)) from error
    there = [str(folder / each) for each in made.files if (folder / each).exists()]
    if there:
        raise UserError(f"{' and '.join(there)}: there already; nothing was written")
    for each, text in made.files.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / each).write_text(text)
        except OSError as error:
            raise UserError(f"{folder / each}: cannot be written: {reason(error)}") from error
        to_stdout(f"wrote {folder / each}")
    to_stdout(f"test it:  cd {folder} && python -m pytest")
    to_stdout(f"run it:   drayman driver run {made.module}:{made.class_} --node NAME")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="",
    epilog="\b\nExamples:\n"
    "  drayman driver run gpu.example.com --node node-1 --gpus 4\n"
    "  drayman driver run sensor_driver:SensorDriver --node node-1\n"
    "  drayman driver run gpu.example.com --help\n",
)
@click.argument("driver")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def run(driver: str, options: tuple[str, ...]) -> None:
    """Run a driver on this node until it is told to end.

    DRIVER is the name of one that comes with drayman, or module:class. Its options follow; `--help` after DRIVER lists them.
    """
    from drayman.drivers.kit.command import command_of
    from drayman.drivers.known import UnknownDriverError, find_driver

    sys.path.insert(0, "")  # drivers are usually written where they are tried
    try:
        found = find_driver(driver)
    except UnknownDriverError as error:
        raise UserError(str(error)) from error
    command = command_of(found, _connection)
    try:
        command.main(list(options), prog_name=f"drayman driver run {driver}", standalone_mode=False)
    except click.UsageError:
        raise
    except click.ClickException as error:
        raise UserError(error.message) from error


def _connection(kubeconfig: Path | None, context: str) -> Connection:
    return Where(kubeconfig, None, context).connection()

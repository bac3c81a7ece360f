"""`drayman driver`: begin a driver, and what there is to know of those that come along; `driver_run` runs one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.errors import UserError, reason
from drayman.cli.lazy import LazyGroup
from drayman.cli.output import format_option, print_data, to_stdout

if TYPE_CHECKING:
    from drayman.drivers.kit.driver import Driver

_EPILOG: Final = """\b
Examples:
  drayman driver list                         those that come along
  drayman driver new sensor.example.com       a driver and a test for it
  drayman driver run gpu.example.com --help   the options of a driver
  drayman driver classes gpu.nvidia.com       the DeviceClasses of a driver
"""


@click.group(cls=LazyGroup, lazy={
    "list": "drayman.cli.drivers:list_",
    "classes": "drayman.cli.drivers:classes",
    "new": "drayman.cli.drivers:new",
    "run": "drayman.cli.driver_run:run",
}, epilog=_EPILOG)  # fmt: skip
def driver() -> None:
    """Write DRA drivers, and run them on a node."""


@click.command(
    "list",
    short_help="List the drivers that come with drayman.",
    epilog="\b\nExamples:\n"
    "  drayman driver list\n"
    "  drayman driver list -o json\n"
    "  drayman driver run gpu.example.com --help   the options of one\n",
)
@format_option
def list_(output_format: str | None) -> None:
    """List the drivers that come with drayman, with what they offer.

    `drayman driver run NAME` runs one, `drayman up --node --driver NAME` and `drayman node run --driver NAME` one beside a node.
    """
    from drayman.drivers.known import DRIVERS

    if output_format:
        rows = [{"name": name, "devices": each.devices} for name, each in DRIVERS.items()]
        print_data({"drivers": rows}, output_format)
        return
    width = max(map(len, DRIVERS))
    to_stdout(f"{'NAME':<{width}}  DEVICES")
    for name, each in DRIVERS.items():
        to_stdout(f"{name:<{width}}  {each.devices}")


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
    if "." not in name:  # nodes would take it
        raise UserError(
            f"{name!r} has no domain, which tells drivers of one name apart; call it {name}.example.com"
        )
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
    there_first = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    to_stdout(f"test it:  {there_first}python -m pytest")
    place = f"{made.module}:{made.class_}"
    to_stdout(f"classes:  drayman driver classes {place} | kubectl apply -f -")
    to_stdout(f"run it:   drayman driver run {place} --node NAME")
    to_stdout("          beside a node of drayman also with its root directory: --node-dir DIR")


@click.command(
    short_help="Print the DeviceClasses that come with a driver.",
    epilog="\b\nExamples:\n  drayman driver classes gpu.nvidia.com | kubectl apply -f -\n",
)
@click.argument("driver")
@format_option
def classes(driver: str, output_format: str | None) -> None:
    """Print the DeviceClasses that come with a driver, to be applied once for a cluster.

    DRIVER is the name of one that comes with drayman, or module:class. A driver of your own has a class of its name for all its devices.
    """
    from drayman.api.codec import to_dict
    from drayman.drivers.classes import classes_of

    items = [to_dict(item) for item in classes_of(driver_named(driver).name)]
    print_data({"apiVersion": "v1", "kind": "List", "items": items}, output_format or "yaml")


def driver_named(name: str) -> type[Driver]:
    """Raises UserError."""
    from drayman.drivers.known import UnknownDriverError, find_driver

    sys.path.insert(0, "")  # drivers are usually written where they are tried
    try:
        return find_driver(name)
    except UnknownDriverError as error:
        raise UserError(str(error)) from error
    except (ImportError, SyntaxError) as error:
        raise UserError(f"driver {name} cannot be imported: {error}") from error

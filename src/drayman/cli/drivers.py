"""`drayman driver`: begin a driver, and run one on a node."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from drayman.cli.connecting import Where
from drayman.cli.errors import UserError, reason
from drayman.cli.lazy import LazyGroup
from drayman.cli.output import format_option, print_data, say, to_stdout
from drayman.plugins.sockets import REGISTRY

if TYPE_CHECKING:
    from drayman.cluster.kube.connection import Connection
    from drayman.drivers.kit.driver import Driver

_EPILOG: Final = """\b
Examples:
  drayman driver new sensor.example.com       a driver and a test for it
  drayman driver run gpu.example.com --help   the options of a driver
  drayman driver classes gpu.nvidia.com       the DeviceClasses of a driver
"""


@click.group(cls=LazyGroup, lazy={
    "classes": "drayman.cli.drivers:classes",
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
    there_first = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    to_stdout(f"test it:  {there_first}python -m pytest")
    to_stdout(f"run it:   drayman driver run {made.module}:{made.class_} --node NAME")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="",
    epilog="\b\nExamples:\n"
    "  drayman driver run gpu.example.com --node node-1 --gpus 4\n"
    "  drayman driver run sensor_driver:SensorDriver --node node-1\n"
    "  drayman driver run gpu.example.com --node node-1 --node-dir DIR\n"
    "  drayman driver run gpu.example.com --help\n",
)
@click.argument("driver")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def run(driver: str, options: tuple[str, ...]) -> None:
    """Run a driver on this node until it is told to end.

    DRIVER is the name of one that comes with drayman, or module:class. Its options follow; `--help` after DRIVER lists them.
    """
    from drayman.drivers.kit.command import command_of

    command = command_of(driver_named(driver), _connection)
    _finds_nodes(command)
    command.epilog = _examples(driver)
    try:
        command.main(list(options), prog_name=f"drayman driver run {driver}", standalone_mode=False)
    except click.UsageError:
        raise
    except click.ClickException as error:
        raise UserError(error.message) from error


def _examples(driver: str) -> str:
    """Beside a kubelet, and beside nodes of drayman."""
    words = f"drayman driver run {driver} --node node-1"
    lines = (words, f"{words} --verbose", f"{words} --node-dir DIR")
    return "\b\nExamples:\n" + "".join(f"  {line}\n" for line in lines)


def _finds_nodes(command: click.Command) -> None:
    """Give the command of a driver an option for nodes of drayman, whose folders are not where kubelets have them."""
    run = command.callback
    assert run is not None

    def run_beside(node_dir: Path | None, **values: Any) -> None:
        if node_dir is not None:
            values |= _folders(command.name or "", node_dir.absolute(), values)
        elif values["registry_dir"] is None and not is_of_kubelet(REGISTRY):
            say(
                f"{REGISTRY.parent} is not the directory of a kubelet, so nobody finds the driver; beside a node of drayman,"
                " name its root directory with --node-dir"
            )
        run(**values)

    command.callback = run_beside
    option = click.Option(
        ["--node-dir"],
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="The root directory of the node of drayman that it runs beside; sets --plugin-dir, --registry-dir, --cdi-dir and --no-hooks.",
    )
    places = [each.name for each in command.params]
    command.params.insert(places.index("plugin_dir"), option)


def is_of_kubelet(registry: Path) -> bool:
    """Whether a kubelet has made a registry, and not a driver that waits for one.

    A kubelet keeps its pods beside it. A driver that runs in a pod sees of all that the registry alone, as a mount.
    """
    return registry.is_mount() or (registry.is_dir() and (registry.parent / "pods").is_dir())


def _folders(driver: str, root: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that follow from the root directory of a node, but for those that were given. Raises UserError."""
    from drayman.node.agent.running import AgentOptions

    node = AgentOptions("", root)
    if not node.registry_dir.is_dir():
        raise UserError(
            f"{root} is not the root directory of a node: there is no {node.registry_dir.name} in it;"
            " `drayman node run` says where its pods are, and `drayman up --node` has it at `node` in the data directory"
        )
    folders = {
        "plugin_dir": node.plugins_dir / driver,
        "registry_dir": node.registry_dir,
        "cdi_dir": node.cdi_dir,
    }
    found = {name: folder for name, folder in folders.items() if values[name] is None}
    source = click.get_current_context().get_parameter_source("runs_hooks")
    return found if source is ParameterSource.COMMANDLINE else {**found, "runs_hooks": False}


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


def _connection(kubeconfig: Path | None, context: str) -> Connection:
    return Where(kubeconfig, None, context).connection()

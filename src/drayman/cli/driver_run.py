"""`drayman driver run`: the command of a driver, as the kit makes it, which also finds nodes of drayman and the cluster that `up` runs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from drayman.cli.connecting import Where
from drayman.cli.drivers import driver_named
from drayman.cli.errors import UserError
from drayman.cli.node_root import folders_beside, refuse_root_of_another
from drayman.cli.output import log_to_stderr
from drayman.plugins.sockets import REGISTRY

if TYPE_CHECKING:
    from drayman.cluster.kube.connection import Connection

_CLUSTER: Final = (
    "The cluster. Default: that of KUBECONFIG, else the one that `drayman up` runs, else that of ~/.kube/config,"
    " else that of the pod's own account."
)


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

    DRIVER is the name of one that comes with drayman (`drayman driver list`), or module:class. Its options follow; `--help` after DRIVER
    lists them.
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


def _connection(kubeconfig: Path | None, context: str) -> Connection:
    return Where(kubeconfig, None, context).connection()


def _examples(driver: str) -> str:
    """Beside a kubelet, beside nodes of drayman, and with options that the driver alone has."""
    from drayman.drivers.known import DRIVERS

    words = f"drayman driver run {driver} --node node-1"
    own = DRIVERS[driver].examples if driver in DRIVERS else ()
    lines = (words, f"{words} --verbose", f"{words} --node-dir DIR", *(f"{words} {e}" for e in own))
    return "\b\nExamples:\n" + "".join(f"  {line}\n" for line in lines)


def _finds_nodes(command: click.Command) -> None:
    """Have the command of a driver find nodes of drayman, whose folders are not where kubelets have them, and log as other commands do."""
    run = command.callback
    assert run is not None

    def run_beside(node_dir: Path | None, **values: Any) -> None:
        if node_dir is not None:
            values |= _beside(command.name or "", node_dir.absolute(), values)
        elif values["registry_dir"] is None and not is_of_kubelet(REGISTRY):
            raise UserError(
                f"{REGISTRY.parent} is not the directory of a kubelet, so nobody finds the driver; beside a node of drayman,"
                " name its root directory with --node-dir, and of a kubelet elsewhere --registry-dir and --plugin-dir"
            )
        # The kit leaves a log alone that somebody writes already.
        log_to_stderr(logging.INFO if values["verbose"] else logging.WARNING)
        run(**values)

    command.callback = run_beside
    option = click.Option(
        ["--node-dir"],
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="The root directory of the node of drayman that it runs beside; sets --plugin-dir, --registry-dir, --cdi-dir and --no-hooks.",
    )
    places = [each.name for each in command.params]
    kubeconfig = command.params[places.index("kubeconfig")]
    assert isinstance(kubeconfig, click.Option)
    kubeconfig.help = _CLUSTER
    command.params.insert(places.index("plugin_dir"), option)


def is_of_kubelet(registry: Path) -> bool:
    """Whether a kubelet has made a registry, and not a driver that waits for one.

    A kubelet keeps its pods beside it. A driver that runs in a pod sees of all that the registry alone, as a mount.
    """
    return registry.is_mount() or (registry.is_dir() and (registry.parent / "pods").is_dir())


def _beside(driver: str, root: Path, given: dict[str, Any]) -> dict[str, Any]:
    """The options that follow from the root directory of a node, but for those that were given. Raises UserError."""
    found: dict[str, Any] = dict(folders_beside(root, driver, given))
    refuse_root_of_another(root, given["node"])
    source = click.get_current_context().get_parameter_source("runs_hooks")
    return found if source is ParameterSource.COMMANDLINE else {**found, "runs_hooks": False}

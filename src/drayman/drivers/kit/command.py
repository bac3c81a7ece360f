"""The command that runs a driver: `python -m your_driver --node NAME`, or `drayman driver run your_driver:YourDriver`."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from drayman.cluster import HttpClient
from drayman.cluster.errors import ClusterError
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.locating import find_connection
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import KitError
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.plugin import Plugin
from drayman.plugins.errors import PluginError

_PATH = click.Path(path_type=Path)


Connect = Callable[[Path | None, str], Connection]
"""From a kubeconfig and the name of a context to a cluster."""


def command_of(driver: type[Driver], connect: Connect = find_connection) -> click.Command:
    """The command line of a driver: the kit's options and its own."""

    def run(node: str, kubeconfig: Path | None, context: str, verbose: bool, **values: Any) -> None:
        own = {name: values.pop(name) for name in [each.name or "" for each in driver.options]}
        options = PluginOptions(
            **{name: value for name, value in values.items() if value is not None}
        )
        logging.basicConfig(
            level=logging.INFO if verbose else logging.WARNING,
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
        try:
            made = driver(node, **own)
            asyncio.run(_serve(made, connect(kubeconfig, context), options))
        except (KitError, PluginError, ClusterError, OSError) as error:
            raise click.ClickException(str(error)) from error

    return click.Command(
        driver.name,
        callback=run,
        params=[*_options(driver), *driver.options],
        help=f"Run the driver {driver.name} on this node until it is told to end.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def own_options(driver: type[Driver], words: Sequence[str]) -> dict[str, Any]:
    """The driver's own options from the words of a command line, for its constructor. Raises click.UsageError."""
    command = click.Command(driver.name, params=list(driver.options), add_help_option=False)
    return command.make_context(driver.name, list(words)).params


def _options(driver: type[Driver]) -> list[click.Parameter]:
    defaults = PluginOptions()
    return [
        click.Option(
            ["--node"],
            envvar="NODE_NAME",
            required=True,
            metavar="NAME",
            help="The node this is. Default: NODE_NAME.",
        ),
        click.Option(
            ["--kubeconfig"],
            type=_PATH,
            metavar="FILE",
            help="The cluster. Default: KUBECONFIG, else ~/.kube/config, else the pod's own account.",
        ),
        click.Option(
            ["--context"], default="", metavar="NAME", help="A context of the kubeconfig."
        ),
        click.Option(
            ["--plugin-dir"],
            type=_PATH,
            metavar="DIR",
            help=f"The driver's own folder. Default: {defaults.folder_of(driver.name)}.",
        ),
        click.Option(
            ["--registry-dir"],
            type=_PATH,
            metavar="DIR",
            help=f"Where the node looks for plugins. Default: {defaults.registry_dir}.",
        ),
        click.Option(
            ["--cdi-dir"],
            type=_PATH,
            metavar="DIR",
            help=f"Where the container runtime looks for CDI files. Default: {defaults.cdi_dir}.",
        ),
        click.Option(
            ["--hooks/--no-hooks", "runs_hooks"],
            default=True,
            help="Whether the container runtime runs hooks of CDI files. A node of drayman does not.",
        ),
        click.Option(
            ["--device-metadata"],
            is_flag=True,
            help="Give containers files with the attributes of their devices.",
        ),
        click.Option(
            ["--instance"],
            default="",
            envvar="POD_UID",
            metavar="NAME",
            help="Lets a newer instance start before this one ends. Default: POD_UID.",
        ),
        click.Option(
            ["--wipe-on-exit"], is_flag=True, help="Delete the driver's slices at the end."
        ),
        click.Option(
            ["--metrics-port"],
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Serve /metrics.",
        ),
        click.Option(["-v", "--verbose"], is_flag=True, help="Log what is done."),
    ]


async def _serve(driver: Driver, connection: Connection, options: PluginOptions) -> None:
    """Run until a signal arrives."""
    running = asyncio.current_task()
    assert running is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        async with (
            HttpClient(connection) as client,
            Plugin(driver, client, options) as plugin,
        ):
            click.echo(
                f"{driver.name} serves node {driver.node} on {plugin.server.sockets.services}"
            )
            await plugin.run()
    except asyncio.CancelledError:
        click.echo("stopped")


def main(driver: type[Driver]) -> None:
    """Run a driver as the program of this process."""
    command_of(driver).main(prog_name=f"python -m {Path(sys.argv[0]).stem}")

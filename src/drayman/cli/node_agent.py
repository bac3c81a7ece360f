"""`drayman node run` and `drayman node kubeconfig`: a real node of a cluster, on this machine."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from drayman.cli.connecting import Where, cluster_options
from drayman.cli.errors import UserError, reason
from drayman.cli.options import data_dir_option
from drayman.cli.output import date_log_lines, say, to_stdout
from drayman.questions.which_cluster import folder_of

if TYPE_CHECKING:
    from drayman.apiserver.instance.folder import Folder
    from drayman.cluster.kube.connection import Connection
    from drayman.drivers.kit.driver import Driver
    from drayman.node.agent.images import Images
    from drayman.node.agent.running import AgentOptions, NodeAgent

images_option = click.option(
    "--images",
    "images_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What images mean on this machine. Without it, `host` means its own programs, and pause images pause.",
)
driver_option = click.option(
    "--driver",
    "driver_names",
    multiple=True,
    metavar="NAME",
    help="A driver to run beside the node, such as gpu.example.com, or module:class. Others register themselves.",
)


@click.command(
    short_help="Run a node on this machine until Ctrl-C.",
    epilog="\b\nExamples:\n"
    "  drayman node run                   in the cluster that `drayman up` runs\n"
    "  drayman node run --driver gpu.example.com --name node-1\n"
    "  drayman node run --kubeconfig node-1.conf --name node-1 --images images.yaml\n",
)
@click.option("--name", metavar="NAME", help="The name of the node. Default: that of the machine.")
@click.option(
    "--root-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where pods, sockets of drivers and records are kept. Default: nodes/NAME in the data directory.",
)
@click.option("--address", default="", help="The address that others reach it at.")
@driver_option
@images_option
@cluster_options
def run(
    name: str | None,
    root_dir: Path | None,
    address: str,
    driver_names: tuple[str, ...],
    images_path: Path | None,
    where: Where,
) -> None:
    """Run a node on this machine until Ctrl-C: containers are processes, drivers prepare their devices.

    Without --kubeconfig it joins the cluster of the data directory; elsewhere it needs a file from `drayman node kubeconfig`.
    Containers run on when it ends, and the next one finds them.
    """
    node = name or machine_name()
    root = (root_dir or folder_of(where.data_dir).path / "nodes" / node).absolute()
    date_log_lines()
    from drayman.node.agent.machine import own_address
    from drayman.node.agent.running import AgentOptions

    images = read_images(images_path)
    drivers = find_drivers(driver_names, node)
    if where.kubeconfig is not None:
        connection, options = where.connection(), AgentOptions(node, root, address, images)
    else:
        options = AgentOptions(node, root, address or own_address(), images)
        connection, options = joined(folder_of(where.data_dir), options)
    asyncio.run(_run_until_signal(connection, options, drivers))


@click.command(
    short_help="Print a kubeconfig with which a machine joins as a node.",
    epilog="\b\nExamples:\n  drayman node kubeconfig node-1 > node-1.conf\n",
)
@click.argument("name")
@data_dir_option
def kubeconfig(name: str, data_dir: Path | None) -> None:
    """Print a kubeconfig with which `drayman node run --name NAME` joins the cluster of the data directory.

    It is valid for a year, and gives the rights of that node and no others.
    """
    to_stdout(_node_kubeconfig(folder_of(data_dir), name).decode().rstrip())


def machine_name() -> str:
    return socket.gethostname().lower()


def read_images(path: Path | None) -> Images:
    """Raises UserError."""
    from drayman.api.errors import DocumentError
    from drayman.node.agent.images import Images

    if path is None:
        return Images()
    try:
        return Images.read(str(path), path.read_bytes())
    except DocumentError as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}") from error


def find_drivers(names: Sequence[str], node: str) -> list[Driver]:
    """Raises UserError."""
    from drayman.drivers.known import UnknownDriverError, find_driver

    if names:
        sys.path.insert(0, "")  # drivers are usually written where they are tried
    try:
        return [find_driver(name)(node) for name in names]
    except UnknownDriverError as error:
        raise UserError(str(error)) from error


def _node_kubeconfig(folder: Folder, node: str) -> bytes:
    """Raises UserError."""
    from drayman.apiserver.instance.errors import InstanceError
    from drayman.apiserver.instance.node_access import node_kubeconfig

    running = folder.running()
    if running is None:
        raise UserError(f"no cluster runs on {folder.path}; start one with `drayman up`")
    try:
        return node_kubeconfig(folder, running.url, node, datetime.now(UTC))
    except InstanceError as error:
        raise UserError(str(error)) from error


def joined(folder: Folder, options: AgentOptions) -> tuple[Connection, AgentOptions]:
    """A node of the cluster that runs on a data directory: how it reaches the cluster, and the cluster it. Raises UserError."""
    from drayman.apiserver.instance.errors import InstanceError
    from drayman.apiserver.instance.node_access import write_node_certificates
    from drayman.apiserver.security.private_files import write_private
    from drayman.node.agent.serving import ServingCertificates

    root, path = options.root, options.root / "kubeconfig"
    content = _node_kubeconfig(folder, options.name)
    try:
        root.mkdir(parents=True, exist_ok=True)
        write_private(path, content)
        now = datetime.now(UTC)
        write_node_certificates(folder, root, options.name, options.address, now)
    except InstanceError as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{error.filename or root}: {reason(error)}") from error
    certificates = ServingCertificates(root / "tls.crt", root / "tls.key", root / "ca.crt")
    return Where(kubeconfig=path).connection(), replace(options, certificates=certificates)


@asynccontextmanager
async def running_node(
    connection: Connection, options: AgentOptions, drivers: Sequence[Driver]
) -> AsyncIterator[NodeAgent]:
    """A node and its drivers, until the context is left. Raises UserError if it cannot be started."""
    from drayman.cluster import HttpClient
    from drayman.cluster.errors import ClusterError
    from drayman.drivers.kit.errors import KitError
    from drayman.drivers.kit.options import PluginOptions
    from drayman.drivers.kit.plugin import Plugin
    from drayman.node.agent.registering import SimulatedNodeError
    from drayman.node.agent.running import AgentError, NodeAgent
    from drayman.plugins.errors import PluginError

    async with AsyncExitStack() as end:
        client = await end.enter_async_context(HttpClient(connection))
        agent = NodeAgent(client, options)
        try:
            await agent.register()
            for driver in drivers:
                plugin_options = PluginOptions(
                    plugin_dir=options.plugins_dir / driver.name,
                    registry_dir=options.registry_dir,
                    cdi_dir=options.cdi_dir,
                )
                await end.enter_async_context(Plugin(driver, client, plugin_options))
            await end.enter_async_context(agent)
        except (AgentError, ClusterError, KitError, PluginError, SimulatedNodeError) as error:
            raise UserError(str(error)) from error
        yield agent


async def _run_until_signal(
    connection: Connection, options: AgentOptions, drivers: Sequence[Driver]
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running_node(connection, options, drivers) as agent:
        to_stdout(f"node/{options.name} runs  (pods in {options.root})")
        sys.stdout.flush()
        await stop.wait()
        running = agent.running_containers
    left = f"; {running} containers run on" if running else ""
    say(f"stopped{left}")

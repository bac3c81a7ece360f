"""`drayman node run` and `drayman node kubeconfig`: a real node of a cluster, on this machine."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from drayman.cli.connecting import Where, talk
from drayman.cli.drivers import driver_named
from drayman.cli.errors import UserError, reason
from drayman.cli.node_root import record_node
from drayman.cli.options import data_dir_option
from drayman.cli.output import date_log_lines, say, to_stdout
from drayman.questions.which_cluster import folder_of
from drayman.reasons.wording import counted

if TYPE_CHECKING:
    from drayman.apiserver.instance.folder import Folder, Record
    from drayman.cluster import HttpClient
    from drayman.cluster.kube.connection import Connection
    from drayman.drivers.kit.driver import Driver
    from drayman.node.agent.images import Images
    from drayman.node.agent.running import AgentOptions, NodeAgent

_ASK_AGAIN_S: Final = 2.0
_REGISTER_S: Final = 15.0
"""How long drivers that run in the same process may take. They have said in the log by then that nobody registers them."""

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
    help="A driver to run beside the node, such as gpu.example.com, or module:class, with its options in quotes:"
    " 'gpu.example.com --gpus 4'. May be given several times. Others register themselves; `drayman driver list` names"
    " those that come along.",
)


@click.command(
    short_help="Run a node on this machine until Ctrl-C.",
    epilog="\b\nExamples:\n"
    "  drayman node run                   in the cluster that `drayman up` runs\n"
    "  drayman node run --driver 'gpu.example.com --gpus 4' --name node-1\n"
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
@click.option(
    "--pod-pids-limit",
    "pod_pids",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="How many processes and threads a pod may have. Default: as many as it likes.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="From `drayman node kubeconfig`: how to join a cluster elsewhere. Default: the cluster of the data directory;"
    " KUBECONFIG does not count.",
)
@click.option(
    "--context",
    default="",
    metavar="NAME",
    help="A context of the kubeconfig, in place of its current one.",
)
@data_dir_option
def run(
    name: str | None,
    root_dir: Path | None,
    address: str,
    driver_names: tuple[str, ...],
    images_path: Path | None,
    pod_pids: int | None,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Run a node on this machine until Ctrl-C: containers are processes, drivers prepare their devices.

    Without --kubeconfig it joins the cluster of the data directory; elsewhere it needs a file from `drayman node kubeconfig`.
    Containers run on when it ends, and the next one finds them. They do not see the data directory, the root directory and the
    kubeconfig, where the machine permits mount namespaces; elsewhere a warning is printed.
    """
    node = name or machine_name()
    refuse_impossible(node)
    _refuse_foreign(address)
    root = (root_dir or folder_of(data_dir).path / "nodes" / node).absolute()
    warn_of_exposure()
    date_log_lines()
    from drayman.cli.file_limits import raise_file_limit
    from drayman.node.agent.machine import own_address
    from drayman.node.agent.running import AgentOptions

    raise_file_limit()
    images = read_images(images_path)
    drivers = find_drivers(driver_names, node)
    secrets = [folder_of(data_dir).path, *([kubeconfig] if kubeconfig is not None else [])]
    options = AgentOptions(node, root, address, images, pod_pids=pod_pids, secrets=secrets)
    if kubeconfig is not None:
        connection = Where(kubeconfig, data_dir, context).connection()
    else:
        options = replace(options, address=address or own_address())
        connection = joined(folder_of(data_dir), options)
    asyncio.run(_run_until_signal(connection, options, drivers))


def _server_url(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        is_good = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise click.BadParameter(f"{text!r} is not like https://10.0.0.5:6443")
    return text


@click.command(
    short_help="Print a kubeconfig with which a machine joins as a node.",
    epilog="\b\nExamples:\n"
    "  drayman node kubeconfig node-1 --to node-1.conf\n"
    "  drayman node kubeconfig node-1 --server https://10.0.0.5:6443\n",
)
@click.argument("name")
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it there, for nobody else to read: it has the node's credentials. Default: print it.",
)
@click.option(
    "--server",
    metavar="URL",
    callback=_server_url,
    help="Where the machine of the node reaches the cluster. Default: where it listens.",
)
@data_dir_option
def kubeconfig(name: str, path: Path | None, server: str | None, data_dir: Path | None) -> None:
    """Print a kubeconfig with which `drayman node run --name NAME` joins the cluster of the data directory.

    It is valid for a year, and gives the rights of that node and no others.
    """
    refuse_impossible(name)
    folder = folder_of(data_dir)
    url = _running(folder).url
    talk(Where(data_dir=folder.path), lambda client: _refuse_simulated(client, name))
    if server is None and not _is_reachable(url):
        say(f"no other machine gets here by {url}; for nodes elsewhere:")
        say("  drayman up --host ADDRESS --expose    with an address that it reaches, or")
        say("  drayman node kubeconfig --server URL  with what leads here, as tunnels do")
    content = _node_kubeconfig(folder, name, server or url)
    if path is None:
        to_stdout(content.decode().rstrip())
        return
    _write_for_its_owner(path, content)
    to_stdout(f"wrote {path}")


async def _refuse_simulated(client: HttpClient, name: str) -> None:
    """Nobody else can run such a node. Raises UserError."""
    from drayman.cluster.errors import NotFoundError
    from drayman.cluster.resources import NODES
    from drayman.node.reporting import SIMULATED

    with suppress(NotFoundError):
        found = await client.get(NODES, name)
        if found.metadata.labels.get(SIMULATED) == "true":
            raise UserError(f"node {name} is simulated; choose another name, or delete it first")


def refuse_impossible(name: str) -> None:
    """Raises UserError, with a name that is near, for one that no node may have."""
    from drayman.api.formats import SUBDOMAIN_LENGTH, dns_subdomain_problems

    if not dns_subdomain_problems(name):
        return
    near = re.sub(r"[^a-z0-9.]+", "-", name.lower()[:SUBDOMAIN_LENGTH])
    near = re.sub(r"[-.]*\.[-.]*", ".", near).strip("-.") or "node-1"
    raise UserError(
        f"{name!r} cannot be the name of a node: it may have up to {SUBDOMAIN_LENGTH} of a-z, 0-9, '-' and '.', such as {near}"
    )


def _is_reachable(url: str) -> bool:
    """Whether other machines may come to a cluster by its address."""
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host != "localhost"
    return not (address.is_loopback or address.is_unspecified)


def machine_name() -> str:
    return socket.gethostname().lower()


def _refuse_foreign(address: str) -> None:
    """Before the node is registered: pods would go to one that ends when it cannot serve. Raises UserError."""
    if not address:
        return
    try:
        family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
        with socket.socket(family) as trial:
            trial.bind((address, 0))
    except ValueError:
        raise UserError(f"--address: {address!r} is not an IP address") from None
    except OSError as error:
        raise UserError(
            f"--address: this machine cannot serve at {address}: {reason(error)}"
        ) from error


def warn_of_exposure() -> None:
    """Print what containers on this machine can see that they should not."""
    from drayman.node.agent.processes.attempts import Isolation

    if exposed := Isolation.here().exposed:
        say(f"warning: {exposed}; run only pods that you trust")


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
    found = [_driver(name, node) for name in names]
    for name, count in Counter(driver.name for driver in found).items():
        if count > 1:
            raise UserError(
                f"--driver names {name} more than once, and a node has one driver of a name; name it once, with all of its options"
            )
    return found


def _driver(given: str, node: str) -> Driver:
    """A driver by its name, which its options may follow. Raises UserError."""
    from drayman.drivers.kit.command import own_options
    from drayman.drivers.kit.errors import KitError

    try:
        name, *words = shlex.split(given) or [given]
        driver = driver_named(name)
        return driver(node, **own_options(driver, words))
    except click.UsageError as error:
        raise UserError(f"--driver {given}: {error.format_message()}") from error
    except ValueError as error:
        raise UserError(f"--driver {given}: {error}") from error
    except KitError as error:
        raise UserError(str(error)) from error


def _running(folder: Folder) -> Record:
    """Raises UserError."""
    running = folder.running()
    if running is None:
        raise UserError(f"no cluster runs on {folder.path}; start one with `drayman up`")
    return running


def _node_kubeconfig(folder: Folder, node: str, url: str) -> bytes:
    """Raises UserError."""
    from drayman.apiserver.instance.errors import InstanceError
    from drayman.apiserver.instance.node_access import node_kubeconfig

    try:
        return node_kubeconfig(folder, url, node, datetime.now(UTC))
    except InstanceError as error:
        raise UserError(str(error)) from error


def joined(folder: Folder, options: AgentOptions) -> Connection:
    """How a node reaches the cluster that runs on a data directory. Raises UserError."""
    root, path = options.root, options.root / "kubeconfig"
    content = _node_kubeconfig(folder, options.name, _running(folder).url)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{error.filename or root}: {reason(error)}") from error
    _write_for_its_owner(path, content)
    return Where(kubeconfig=path).connection()


def _write_for_its_owner(path: Path, content: bytes) -> None:
    """Raises UserError."""
    from drayman.apiserver.security.private_files import write_private

    try:
        write_private(path, content)
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}") from error


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

    options = replace(options, authority=connection.trust.ca)
    if options.authority is None:
        say("logs and exec are not served: the kubeconfig names no certificate authority")
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
                    runs_hooks=False,
                )
                await end.enter_async_context(Plugin(driver, client, plugin_options))
            await end.enter_async_context(agent)
            record_node(options.root, options.name)  # which is this agent's alone from here on
            # A pod that came first would be told that there is no such driver. One that does not come says so in the log.
            with suppress(TimeoutError):
                async with asyncio.timeout(_REGISTER_S):
                    await agent.has_registered([driver.name for driver in drivers])
        except (AgentError, ClusterError, KitError, PluginError, SimulatedNodeError) as error:
            raise UserError(str(error)) from error
        yield agent


async def has_answered(connection: Connection, node: str, stop: asyncio.Event) -> bool:
    """Wait for a cluster that is away, as a kubelet does. Returns False if `stop` came first; what it answers is left to others."""
    from drayman.cluster import HttpClient
    from drayman.cluster.errors import (
        ClusterError,
        UnavailableError,
        UnreachableError,
        UntrustedError,
    )
    from drayman.cluster.resources import NODES

    is_told = False
    async with HttpClient(connection) as client:
        while not stop.is_set():
            try:
                await client.get(NODES, node)
            except ClusterError as error:
                is_away = isinstance(error, UnreachableError | UnavailableError)
                if not is_away or isinstance(error, UntrustedError):  # which time does not mend
                    return True
                if not is_told:
                    say(f"{error}; waiting for the cluster")
                is_told = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ASK_AGAIN_S):
                        await stop.wait()
            else:
                return True
    return False


async def _run_until_signal(
    connection: Connection, options: AgentOptions, drivers: Sequence[Driver]
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if not await has_answered(connection, options.name, stop):
        say("stopped before the cluster answered")
        return
    async with running_node(connection, options, drivers) as agent:
        to_stdout(f"node/{options.name} runs  (pods in {options.root})")
        sys.stdout.flush()
        await stop.wait()
        running = agent.running_containers
    say(f"stopped{running_on(running)}")


def running_on(containers: int) -> str:
    """How many containers the agent leaves behind, for the end of a sentence."""
    if not containers:
        return ""
    return f"; {counted(containers, 'container')} {'runs' if containers == 1 else 'run'} on"

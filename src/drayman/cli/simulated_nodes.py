"""`drayman node add` and `drayman node remove`: simulated nodes of a cluster that runs.

They are objects like any other, written with the rights of the person who asks. Where a process simulates nodes already, `drayman up` or an
earlier `drayman node add`, it follows them. On any other cluster this process simulates them, and removes them when it ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.completing import profile_names
from drayman.cli.connecting import (
    Where,
    announce,
    client_of,
    cluster_options,
    in_words,
    lasting_client_of,
    talk,
)
from drayman.cli.errors import UserError
from drayman.cli.nodes import simulated_node
from drayman.cli.output import date_log_lines, say, to_stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drayman.cluster import HttpClient
    from drayman.cluster.kube.connection import Connection
    from drayman.drivers.profiles import HardwareCluster, Wanted
    from drayman.node.simulated.model import SimulatedNode

_CHECK: Final = "/readyz/control-plane"
"""A path that only a server with simulated nodes beside it has."""
_LEASE: Final = "drayman-simulated-nodes"
"""Is held by the process that simulates the nodes of a cluster that does not do so itself."""
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


@click.command(
    short_help="Add simulated nodes to a cluster that runs.",
    epilog="\b\nExamples:\n"
    "  drayman node add dgx-h100=2\n"
    "  drayman node add dgx-h100-mig=1,cpu=4\n"
    "  drayman node add ./my-node.yaml=3     a profile of your own\n"
    "  drayman node add --kubeconfig prod.yaml dgx-h100=2\n",
)
@click.argument(
    "profiles", metavar="PROFILE[=N]...", nargs=-1, required=True, shell_complete=profile_names
)
@cluster_options
def add(profiles: tuple[str, ...], where: Where) -> None:
    """Add simulated nodes to a cluster, with their slices and what their drivers install.

    They are numbered after those that are there. `drayman profiles` lists the names. The cluster of `drayman up` simulates them itself,
    and they stay when it is restarted. On any other cluster this command simulates them until it is interrupted, and then removes
    them; device classes that it created stay.
    """
    from drayman.drivers.profiles import ProfileError, parse_profiles

    try:
        wanted = parse_profiles(profiles)
    except ProfileError as error:
        raise UserError(str(error)) from error
    connection = where.connection()
    with in_words(connection):
        asyncio.run(_add(connection, wanted))


async def _add(connection: Connection, wanted: tuple[Wanted, ...]) -> None:
    from drayman.cluster.resources import NODES
    from drayman.node.simulated.model import SimulatedNode
    from drayman.node.simulated.registering import register

    async with client_of(connection) as client:
        known = {node.metadata.name for node in (await client.list_all(NODES)).items}
        hardware = _new_hardware(wanted, known)
        announce(client)
        nodes = [SimulatedNode(each.node, each.slices) for each in hardware.nodes]
        if await _is_simulated(client):
            await register(client, nodes, hardware.classes, hardware.definitions)
            _say_added(nodes)
            return
    date_log_lines()
    async with lasting_client_of(connection) as client:
        await _simulate(client, nodes, hardware)


def _say_added(nodes: Sequence[SimulatedNode]) -> None:
    for each in nodes:
        to_stdout(f"node/{each.node.metadata.name} added")


def _new_hardware(wanted: tuple[Wanted, ...], known: set[str]) -> HardwareCluster:
    """Raises UserError."""
    from drayman.drivers.profiles import ProfileError, simulate

    try:
        return simulate(wanted, known)
    except ProfileError as error:
        raise UserError(str(error)) from error


async def _is_simulated(client: HttpClient) -> bool:
    """Whether a process simulates nodes of the cluster: its own, or one that holds the Lease for it."""
    from drayman.api.workloads import Lease
    from drayman.cluster.errors import NotFoundError
    from drayman.cluster.resources import typed
    from drayman.placement.schedulers import LEASE_NAMESPACE, Leases

    try:
        await client.read_path(_CHECK)
        return True
    except NotFoundError:
        pass  # not a cluster of `drayman up`
    try:
        lease = await client.get(typed(Lease), _LEASE, LEASE_NAMESPACE)
    except NotFoundError:
        return False
    now = time.time()
    return Leases((lease,), now).ends(lease) > now


async def _simulate(
    client: HttpClient, nodes: Sequence[SimulatedNode], hardware: HardwareCluster
) -> None:
    """Simulate the nodes until a signal arrives, and remove them. Raises UserError where another process begins to do so.

    Raises ClusterError if they cannot be registered; then nothing is left of them.
    """
    from drayman.cluster.errors import ClusterError, LeadershipLostError
    from drayman.cluster.leading import Election, LeaderElector
    from drayman.placement.schedulers import LEASE_NAMESPACE

    running = asyncio.current_task()
    assert running is not None
    loop = asyncio.get_running_loop()
    for number in _STOPPING:
        loop.add_signal_handler(number, running.cancel)
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
    election = Election(names=(_LEASE,), namespace=LEASE_NAMESPACE, identity=identity)

    async def work(_: frozenset[str]) -> None:
        await _run(client, nodes, hardware)

    try:
        await LeaderElector(client, election).lead(work)
    except asyncio.CancelledError:
        for number in _STOPPING:
            loop.remove_signal_handler(number)  # a second one ends the removal
        await _remove(client, await _simulated(client))
        say("stopped; the nodes are removed")
    except LeadershipLostError as error:
        raise UserError(f"the nodes are no longer simulated here: {error}") from error
    except ClusterError:
        with suppress(ClusterError):  # the first error says why
            await _remove(client, [each.node.metadata.name for each in nodes])
        raise


async def _run(
    client: HttpClient, nodes: Sequence[SimulatedNode], hardware: HardwareCluster
) -> None:
    from drayman.cluster.informers import Informers
    from drayman.node.simulated import SimulatedNodes

    informers = Informers(client)
    simulation = SimulatedNodes(
        client, informers, nodes, classes=hardware.classes, definitions=hardware.definitions
    )
    try:
        await simulation.start()
        _say_added(nodes)
        say("this process simulates them; Ctrl-C ends it and removes them")
        await asyncio.get_running_loop().create_future()
    finally:
        await simulation.stop()
        await informers.stop()


async def _simulated(client: HttpClient) -> list[str]:
    """All simulated nodes, those of later commands included."""
    from drayman.cluster.resources import NODES
    from drayman.node.reporting import SIMULATED

    found = (await client.list_all(NODES)).items
    return [each.metadata.name for each in found if each.metadata.labels.get(SIMULATED) == "true"]


async def _remove(client: HttpClient, names: Sequence[str]) -> None:
    """Delete nodes that still exist, with their leases. Their slices are collected as garbage."""
    from drayman.cluster.errors import NotFoundError
    from drayman.cluster.resources import LEASES, NODES
    from drayman.node.reporting import LEASE_NAMESPACE

    for name in names:
        with suppress(NotFoundError):  # another user removed it
            await client.delete(NODES, name)
        with suppress(NotFoundError):  # it was removed with the node
            await client.delete(LEASES, name, LEASE_NAMESPACE)


@click.command(
    short_help="Remove simulated nodes from a cluster that runs.",
    epilog="\b\nExamples:\n"
    "  drayman node drain dgx-h100-1         evict its pods first\n"
    "  drayman node remove dgx-h100-1\n"
    "  drayman node remove cpu-0 cpu-1\n",
)
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@cluster_options
def remove(names: tuple[str, ...], where: Where) -> None:
    """Remove simulated nodes, with their slices. Pods that are still there are lost with them, as when a machine is taken away.

    A node that `drayman up --profile` asks for comes back with the next start that asks for it.
    """

    async def work(client: HttpClient) -> None:
        for name in names:
            await simulated_node(client, name)
        announce(client)
        for name in names:
            await _remove(client, [name])
            to_stdout(f"node/{name} removed")

    talk(where, work)

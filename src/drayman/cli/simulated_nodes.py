"""`drayman node add` and `drayman node remove`: simulated nodes of a cluster that runs.

They are objects like any other, written with the rights of the person who asks; the process that simulates follows them, and finds
them again when it is restarted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from drayman.cli.completing import profile_names
from drayman.cli.connecting import Where, announce, cluster_options, talk
from drayman.cli.errors import UserError
from drayman.cli.nodes import simulated_node
from drayman.cli.output import to_stdout

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.drivers.profiles import HardwareCluster, Wanted

_CHECK: Final = "/readyz/control-plane"
"""A path that only a server with simulated nodes beside it has."""


@click.command(
    short_help="Add simulated nodes to a cluster that runs.",
    epilog="\b\nExamples:\n"
    "  drayman node add dgx-h100=2\n"
    "  drayman node add dgx-h100-mig=1,cpu=4\n"
    "  drayman node add ./my-node.yaml=3     a profile of your own\n",
)
@click.argument(
    "profiles", metavar="PROFILE[=N]...", nargs=-1, required=True, shell_complete=profile_names
)
@cluster_options
def add(profiles: tuple[str, ...], where: Where) -> None:
    """Add simulated nodes to the cluster that `drayman up` runs, with their slices and what their drivers install.

    They are numbered after those that are there, and stay when the cluster is restarted. `drayman profiles` lists the names.
    """
    from drayman.drivers.profiles import ProfileError, parse_profiles

    try:
        wanted = parse_profiles(profiles)
    except ProfileError as error:
        raise UserError(str(error)) from error
    talk(where, lambda client: _add(client, wanted))


async def _add(client: HttpClient, wanted: tuple[Wanted, ...]) -> None:
    from drayman.cluster.resources import NODES
    from drayman.node.simulated.model import SimulatedNode
    from drayman.node.simulated.registering import register

    await _refuse_unless_simulating(client)
    known = {node.metadata.name for node in (await client.list_all(NODES)).items}
    hardware = _new_hardware(wanted, known)
    announce(client)
    nodes = [SimulatedNode(each.node, each.slices) for each in hardware.nodes]
    await register(client, nodes, hardware.classes, hardware.definitions)
    for each in nodes:
        to_stdout(f"node/{each.node.metadata.name} added")


def _new_hardware(wanted: tuple[Wanted, ...], known: set[str]) -> HardwareCluster:
    """Raises UserError."""
    from drayman.drivers.profiles import ProfileError, simulate

    try:
        return simulate(wanted, known)
    except ProfileError as error:
        raise UserError(str(error)) from error


async def _refuse_unless_simulating(client: HttpClient) -> None:
    """Raises UserError: on any other cluster the nodes would be objects without anything behind them."""
    from drayman.cluster.errors import NotFoundError

    try:
        await client.read_path(_CHECK)
    except NotFoundError as error:
        raise UserError(
            f"{client.connection} simulates no nodes; start a cluster that does with `drayman up`"
        ) from error


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
        from drayman.cluster.errors import NotFoundError
        from drayman.cluster.resources import LEASES, NODES
        from drayman.node.reporting import LEASE_NAMESPACE

        for name in names:
            await simulated_node(client, name)
        announce(client)
        for name in names:
            await client.delete(NODES, name)
            try:
                await client.delete(LEASES, name, LEASE_NAMESPACE)
            except NotFoundError:
                pass  # it was removed with the node
            to_stdout(f"node/{name} removed")

    talk(where, work)

"""`drayman up --node`: this machine as a node of the cluster that it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drayman.cli.connecting import Where
from drayman.cli.errors import UserError
from drayman.cli.node_agent import find_drivers, joined, machine_name, running_node

if TYPE_CHECKING:
    from drayman.apiserver.instance import Options
    from drayman.apiserver.reaching.nodes import NodeApis
    from drayman.node.agent.images import Images


@dataclass(frozen=True, slots=True)
class NodeHere:
    """This machine as a node of the cluster."""

    images: Images
    drivers: tuple[str, ...]
    is_ephemeral: bool

    @asynccontextmanager
    async def running(self, options: Options, nodes: NodeApis) -> AsyncIterator[None]:
        """Raises UserError when it is entered."""
        from drayman.node.agent.machine import own_address
        from drayman.node.agent.running import AgentOptions, AtEnd

        name = machine_name()
        root = options.folder.path / "node"
        at_end = AtEnd.REMOVE if self.is_ephemeral else AtEnd.KILL
        address = options.host if options.is_loopback else own_address()
        secrets = [options.folder.path]
        if options.kubeconfig is not None:
            secrets.append(options.kubeconfig)
        agent = AgentOptions(name, root, address, self.images, at_end=at_end, secrets=secrets)
        connection = joined(options.folder, agent)
        drivers = find_drivers(self.drivers, name)
        await _install(options, [driver.name for driver in drivers])
        async with running_node(connection, agent, drivers) as here:
            with nodes.serving(name, here.port, here.api):
                yield


async def _install(options: Options, drivers: Sequence[str]) -> None:
    """Create the classes of drivers, unless they are there: a node's own rights do not suffice for it. Raises UserError."""
    from drayman.cluster import HttpClient
    from drayman.cluster.errors import AlreadyExistsError, ClusterError
    from drayman.cluster.resources import DEVICE_CLASSES
    from drayman.drivers.classes import classes_of

    async with HttpClient(Where(data_dir=options.folder.path).connection()) as client:
        for each in classes_of(*drivers):
            try:
                await client.create(DEVICE_CLASSES, each)
            except AlreadyExistsError:
                continue
            except ClusterError as error:
                raise UserError(f"DeviceClass {each.metadata.name}: {error}") from error

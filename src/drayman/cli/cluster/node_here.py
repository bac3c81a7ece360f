"""`drayman up --node`: this machine as a node of the cluster that it runs."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drayman.cli.node_agent import find_drivers, joined, machine_name, running_node

if TYPE_CHECKING:
    from drayman.apiserver.instance import Options
    from drayman.node.agent.images import Images


@dataclass(frozen=True, slots=True)
class NodeHere:
    """This machine as a node of the cluster."""

    images: Images
    drivers: tuple[str, ...]
    is_ephemeral: bool

    def running(self, options: Options) -> AbstractAsyncContextManager[object]:
        """Raises UserError when it is entered."""
        from drayman.node.agent.machine import own_address
        from drayman.node.agent.running import AgentOptions, AtEnd

        name = machine_name()
        root = options.folder.path / "node"
        at_end = AtEnd.REMOVE if self.is_ephemeral else AtEnd.KILL
        address = options.host if options.is_loopback else own_address()
        agent = AgentOptions(name, root, address, self.images, at_end=at_end)
        connection, agent = joined(options.folder, agent)
        return running_node(connection, agent, find_drivers(self.drivers, name))

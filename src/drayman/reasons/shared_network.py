"""Network interfaces that no pod gets on a node whose pods share its network, as they do on a node of Drayman's own agent.

Kubernetes knows nothing of that: the pod gets its node and its devices, and its containers are not created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drayman.api.core import Node
from drayman.api.node_identity import RUNTIME
from drayman.api.resource import AllocationResult
from drayman.driver_configs.network import DRIVER, interface_of
from drayman.inventory.identity import DeviceId
from drayman.placement.world import World


def unmovable(interfaces: Iterable[str]) -> str:
    """Why a container is not created that was to have network interfaces to itself."""
    names = ", ".join(interfaces)
    return f"network interface {names} cannot be moved: containers of this node share its network"


def unmovable_interfaces(
    world: World, node: str, allocations: Iterable[AllocationResult]
) -> tuple[str, ...]:
    """A sentence if a node will refuse interfaces that a pod there would have to itself."""
    known = world.state.nodes.get(node)
    if known is None or not _shares_network(known.node):
        return ()
    found = tuple(dict.fromkeys(_moved(world, allocations)))
    return (f"node {node}: {unmovable(found)}",) if found else ()


def _shares_network(node: Node) -> bool:
    """Simulated nodes and those of a kubelet name another runtime."""
    return node.status.node_info.container_runtime_version.startswith(RUNTIME)


def _moved(world: World, allocations: Iterable[AllocationResult]) -> Iterator[str]:
    """The interfaces that a driver would move: who may only look at one leaves it where it is."""
    for allocation in allocations:
        for result in allocation.devices.results:
            if result.driver != DRIVER or result.admin_access:
                continue
            published = world.published(DeviceId.of(result))
            interface = "" if published is None else interface_of(published[1])
            if interface:
                yield interface

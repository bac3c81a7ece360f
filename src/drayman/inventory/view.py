"""A node's devices together with what is held of them: everything a search reads.

A view is a snapshot. It never changes, and it is cheap: hardware, usage and taints are shared between views, and between nodes that see
the same devices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceToleration
from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount
from drayman.inventory.features import Features
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.inventory.pool import PoolState, ResolvedPool
from drayman.inventory.taints import Taints
from drayman.inventory.usage import CapacityGroup, Usage, UsageTracker


class NodeView:
    """One node as it is now."""

    __slots__ = ("_taints", "device_class", "hardware", "node", "problems", "time", "usage")

    def __init__(
        self,
        node: Node,
        usage: Usage,
        time: int,
        taints: Taints,
        classes: Callable[[str], DeviceClass | None],
        problems: tuple[ResolvedPool, ...],
    ) -> None:
        self.node = node
        self.hardware: NodeHardware = usage.hardware
        self.usage = usage
        self.time = time  # of the ledger
        self._taints = taints
        self.device_class = classes
        self.problems = problems

    @property
    def state(self) -> Hashable:
        """Stands for everything about the node that a search depends on, but for device classes.

        As long as it is the same, so are the answers; nodes that share devices and have no others have it in common.
        """
        return self.usage, self._taints, self.problems

    @property
    def features(self) -> Features:
        return self.hardware.features

    @property
    def invalid_pools(self) -> tuple[ResolvedPool, ...]:
        return tuple(pool for pool in self.problems if pool.state is PoolState.INVALID)

    def emptied(self) -> NodeView:
        """The same node with nothing held."""
        usage = self.hardware.derived(_nothing_held)
        return NodeView(self.node, usage, 0, self._taints, self.device_class, self.problems)

    def id_of(self, position: int) -> DeviceId:
        return self.hardware.records[position].id

    def ids_of(self, devices: int) -> tuple[DeviceId, ...]:
        return tuple(self.id_of(position) for position in positions(devices))

    @property
    def in_use(self) -> int:
        """The devices held whole."""
        return self.usage.in_use

    @property
    def shared(self) -> int:
        """The devices of which somebody holds a share."""
        return self.usage.shared

    @property
    def counters(self) -> tuple[tuple[Amount, ...], ...]:
        """What is left, by counter set."""
        return self.usage.counters

    @property
    def paid(self) -> int:
        """Shareable devices that are in use already: another share of them costs no counters."""
        return self.usage.paid

    @property
    def overcommitted(self) -> int:
        """Devices that nobody can get because a counter of their pool is used up beyond its limit."""
        return self.usage.overcommitted

    @property
    def capacity_groups(self) -> tuple[CapacityGroup, ...]:
        return self.usage.capacity_groups

    def remaining(self, position: int) -> tuple[Amount, ...]:
        """What is left of each capacity of a device."""
        return self.usage.remaining(position)

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """The devices whose taints, if they have any that block, are all tolerated."""
        if not self.features.device_taints:
            return self.hardware.everything
        return self._taints.tolerated(tolerations)


def _nothing_held(hardware: NodeHardware) -> Usage:
    return UsageTracker(hardware).nothing

"""A node's devices together with what is held of them: everything a search reads.

A view is a snapshot. It never changes, and it is cheap: hardware, usage and taints are shared between views, and between nodes that see
the same devices. What the node has for itself and what it sees together with others are two parts; they are put together only if
both are needed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceToleration
from drayman.inventory.bitsets import positions
from drayman.inventory.features import Features
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.inventory.pool import PoolState, ResolvedPool
from drayman.inventory.taints import Taints, Untainted
from drayman.inventory.usage import Usage, nothing_held


class NodeView:
    """One node as it is now."""

    __slots__ = (
        "_together",
        "device_class",
        "hardware",
        "left_out",
        "node",
        "parts",
        "problems",
        "taints",
        "time",
        "usage",
    )

    usage: Usage  # what is held of all the devices
    hardware: NodeHardware

    def __init__(
        self,
        node: Node,
        parts: tuple[Usage, ...],
        time: int,
        taints: tuple[Taints, ...],
        classes: Callable[[str], DeviceClass | None],
        problems: tuple[ResolvedPool, ...],
        together: Callable[[tuple[Usage, ...]], Usage],
    ) -> None:
        self.node = node
        self.parts = parts  # the node's own devices, and those that it sees together with others
        self.left_out: tuple[Usage, ...] = ()  # parts that the node has but this view does not show
        self.time = time  # of the ledger
        self.taints = taints  # of each part
        self.device_class = classes
        self.problems = problems  # of all the node's pools, shown or not
        self._together = together
        if len(parts) == 1:
            self.usage = parts[0]
            self.hardware = self.usage.hardware

    if not TYPE_CHECKING:  # the attributes are declared; nothing else is to be found here

        def __getattr__(self, name: str) -> object:
            """Called for attributes without a value: puts the parts together when the whole is first needed."""
            if name not in ("hardware", "usage"):
                raise AttributeError(name)
            self.usage = self._together(self.parts)
            self.hardware = self.usage.hardware
            return getattr(self, name)

    @property
    def state(self) -> Hashable:
        """Stands for everything about the node that a search depends on, except device classes.

        As long as it is the same, so are the answers; nodes that share devices and have no others share it.
        """
        return self.parts, self.taints, self.problems

    def showing(self, part: Usage) -> NodeView:
        """The same node with one part of its devices only."""
        index = self.parts.index(part)
        shown = self._with(part, self.taints[index], self.time)
        shown.left_out = self.parts[:index] + self.parts[index + 1 :]
        return shown

    def emptied(self) -> NodeView:
        """The same node with nothing held."""
        return self._with(self.hardware.derived(nothing_held), self._all_taints, 0)

    def untainted(self) -> NodeView:
        """The same node as if none of its devices had a taint."""
        taints = tuple([part.hardware.derived(_no_taints) for part in self.parts])
        return NodeView(
            self.node,
            self.parts,
            self.time,
            taints,
            self.device_class,
            self.problems,
            self._together,
        )

    def _with(self, usage: Usage, taints: Taints, time: int) -> NodeView:
        return NodeView(
            self.node, (usage,), time, (taints,), self.device_class, self.problems, self._together
        )

    @property
    def _all_taints(self) -> Taints:
        first = self.taints[0]
        if len(self.taints) == 1:
            return first
        if isinstance(first, Untainted):
            return self.hardware.derived(_no_taints)
        return self.hardware.taints(first.rules)

    @property
    def features(self) -> Features:
        return self.hardware.features

    @property
    def invalid_pools(self) -> tuple[ResolvedPool, ...]:
        return tuple(pool for pool in self.problems if pool.state is PoolState.INVALID)

    def id_of(self, position: int) -> DeviceId:
        return self.hardware.records[position].id

    def ids_of(self, devices: int) -> tuple[DeviceId, ...]:
        return tuple(self.id_of(position) for position in positions(devices))

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """The devices whose taints, if they have any that block, are all tolerated."""
        if not self.features.device_taints:
            return self.hardware.everything
        if len(self.taints) == 1:
            return self.taints[0].tolerated(tolerations)
        return self._all_taints.tolerated(tolerations)


def _no_taints(hardware: NodeHardware) -> Untainted:
    return Untainted(hardware.everything)

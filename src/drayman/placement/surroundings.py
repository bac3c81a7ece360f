"""What a placer has to know about a cluster.

A cluster state has all of it. So does the view of it as if it were unused (`trial.Emptied`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from drayman.inventory.allowance import Allowance
from drayman.inventory.view import NodeView
from drayman.placement.fit import NeighbourCheck, PodNeeds, StaticVerdicts, VolumeView
from drayman.placement.mapped_resources import MappedDevices
from drayman.placement.marks import Marks
from drayman.placement.mix import Mix
from drayman.placement.nodes import NodeState


class NeighbourView(Protocol):
    """What is known about the other pods."""

    def concerns(self, needs: PodNeeds) -> bool:
        """Whether it matters to this pod, or to a placed one, where it goes."""
        ...

    def prepare(self, needs: PodNeeds) -> NeighbourCheck: ...


class Surroundings(Protocol):
    """Nodes and what is on them, with the marks by which a placer finds out what has changed."""

    @property
    def nodes(self) -> Mapping[str, NodeState]: ...

    @property
    def neighbourhood(self) -> NeighbourView: ...

    @property
    def volumes(self) -> VolumeView: ...

    @property
    def mapped_devices(self) -> MappedDevices: ...

    @property
    def static_verdicts(self) -> StaticVerdicts: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def mix(self) -> Mix: ...

    @property
    def has_floating_devices(self) -> bool: ...

    @property
    def allowance(self) -> Allowance: ...

    @property
    def floating_taken(self) -> int: ...

    @property
    def floating_freed(self) -> int: ...

    @property
    def soft_taints(self) -> int: ...

    def view(self, node: NodeState) -> NodeView: ...

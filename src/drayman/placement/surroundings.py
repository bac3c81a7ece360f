"""What a placer has to know of a cluster.

A scheduler's state has all of it. So does a supposition (`supposing`): a cluster like the real one but for something that is thought away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from drayman.inventory.view import NodeView
from drayman.placement.fit import NeighbourCheck, PodNeeds, StaticVerdicts, VolumeView
from drayman.placement.mapped_resources import MappedDevices
from drayman.placement.state import NodeState


class Around(Protocol):
    """What is known of the pods around."""

    def concerns(self, needs: PodNeeds) -> bool:
        """Whether it matters to this pod, or to a placed one, where it goes."""
        ...

    def prepare(self, needs: PodNeeds) -> NeighbourCheck: ...


class Surroundings(Protocol):
    """Nodes and what is on them, with the marks by which a placer finds out what has changed."""

    @property
    def nodes(self) -> Mapping[str, NodeState]: ...

    @property
    def neighbourhood(self) -> Around: ...

    @property
    def volumes(self) -> VolumeView: ...

    @property
    def mapped_devices(self) -> MappedDevices: ...

    @property
    def static_verdicts(self) -> StaticVerdicts: ...

    @property
    def marks(self) -> Sequence[str]: ...

    @property
    def epoch(self) -> int: ...

    @property
    def floating_taken(self) -> int: ...

    @property
    def floating_freed(self) -> int: ...

    @property
    def soft_taints(self) -> int: ...

    def view(self, node: NodeState) -> NodeView: ...

"""The cluster as it would be if something were thought away: all that is in use, and beyond that all taints.

A supposition is looked at with the same placer as the cluster itself, so what it says is what a scheduler would do. It costs no copy: it
reads the real state through a filter, and follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from drayman.api.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from drayman.inventory.ledger import Ledger
from drayman.inventory.view import NodeView
from drayman.placement.fit import (
    Deserted,
    NodeFacts,
    NodeShape,
    NodeUsage,
    StaticVerdicts,
    VolumeView,
)
from drayman.placement.mapped_resources import MappedDevices
from drayman.placement.state import ClusterState, NodeState

_UNUSED: Final = NodeUsage()
_untainted: WeakKeyDictionary[NodeShape, NodeShape] = WeakKeyDictionary()


class Emptied:
    """A cluster without pods, on which nobody holds devices but the claims in a ledger.

    With `untainted`, nodes are neither tainted nor cordoned and devices are not tainted either.
    """

    def __init__(
        self,
        state: ClusterState,
        *,
        untainted: bool = False,
        ledger: Ledger,
    ) -> None:
        """`ledger` has what is still held. What a node shows is kept by ledger, so suppositions that agree share one."""
        self._state = state
        self._untainted = untainted
        self._ledger = ledger
        self.nodes: Mapping[str, NodeState] = _Nodes(state.nodes, untainted=untainted)
        self.neighbourhood = Deserted(state.neighbourhood)
        self.volumes: VolumeView = _IdleVolumes(state.volumes)

    @property
    def mapped_devices(self) -> MappedDevices:
        return self._state.mapped_devices

    @property
    def static_verdicts(self) -> StaticVerdicts:
        return self._state.static_verdicts

    @property
    def marks(self) -> Sequence[str]:
        return self._state.marks

    @property
    def epoch(self) -> int:
        return self._state.epoch

    # Devices that nobody has are neither taken nor given back.
    floating_taken: Final = 0
    floating_freed: Final = 0
    soft_taints: Final = 0

    def view(self, node: NodeState) -> NodeView:
        view = self._state.inventory.view(node.node, self._ledger)
        return view.untainted() if self._untainted else view


class _Nodes(Mapping[str, NodeState]):
    """Nodes without pods."""

    def __init__(self, nodes: Mapping[str, NodeState], *, untainted: bool) -> None:
        self._nodes = nodes
        self._untainted = untainted

    def __getitem__(self, name: str) -> NodeState:
        real = self._nodes[name]
        facts = _without_taints(real.facts) if self._untainted else real.facts
        return NodeState(real.node, facts, _UNUSED, real.index)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def _without_taints(facts: NodeFacts) -> NodeFacts:
    shape = facts.shape
    if not shape.taints and not shape.unschedulable:
        return facts
    bare = _untainted.get(shape)
    if bare is None:
        bare = _untainted[shape] = replace(shape, taints=(), unschedulable=False)
    return msgspec.structs.replace(facts, shape=bare)


class _IdleVolumes:
    """Volumes that no pod uses."""

    def __init__(self, volumes: VolumeView) -> None:
        self._volumes = volumes

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._volumes.claim(namespace, name)

    def volume(self, name: str) -> PersistentVolume | None:
        return self._volumes.volume(name)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._volumes.storage_class(name)

    def of_class(self, name: str) -> Iterable[PersistentVolume]:
        return self._volumes.of_class(name)

    def capacities(self, storage_class: StorageClass) -> Sequence[CSIStorageCapacity] | None:
        return self._volumes.capacities(storage_class)

    def in_use(self, namespace: str, name: str) -> bool:
        return False

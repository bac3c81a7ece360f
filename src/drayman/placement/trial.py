"""Hypothetical changes to a cluster: what if pods were gone, if others were added, if an object were different?

A trial changes the cluster state itself and puts everything back in the end. So everything that reads the state sees the change: sums,
ports, volumes, devices, affinity and spreading. The cost of a trial is proportional to what is changed in it.

Evicting all pods of a cluster for a question would cost a step per pod, and "would it fit if nothing were in use?" is asked about every pod
that is refused. That one case is a view instead (`Emptied`): it reads the real state without its users, and follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from drayman.allocator import Plan
from drayman.api.resource import ResourceClaim
from drayman.api.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from drayman.inventory.inventory import Inventory
from drayman.inventory.ledger import Holding, Ledger, holder_of
from drayman.inventory.undo import UndoLog
from drayman.inventory.view import NodeView
from drayman.placement.claim_book import ClaimBook, Released
from drayman.placement.claims import pods_holding
from drayman.placement.fit import (
    EmptyNeighbourhood,
    Neighbourhood,
    NodeFacts,
    NodeShape,
    NodeUsage,
    VolumeView,
)
from drayman.placement.mix import NO_MIX
from drayman.placement.nodes import Nodes, NodeState, PlacedPod
from drayman.placement.surroundings import Surroundings

_UNUSED: Final = NodeUsage()
_untainted: WeakKeyDictionary[NodeShape, NodeShape] = WeakKeyDictionary()


class _Evicted(Struct, frozen=True):
    pod: PlacedPod
    claims: tuple[ResourceClaim, ...]


class Supposed:
    """What the running trials have removed from a state."""

    def __init__(self) -> None:
        self.evicted: dict[str, _Evicted] = {}  # by uid of the pod
        self.freed: dict[str, tuple[ResourceClaim, Released]] = {}  # by holder


class Trial:
    """A context that undoes all changes made to a cluster state within it when it ends. None of them wakes a pod.

    Objects are added, changed and removed, and pods placed with their plans, by the methods of the state itself. The methods here are for
    what happens only in a trial. Trials can be nested: each undoes what was done since it began.
    """

    def __init__(self, log: UndoLog, nodes: Nodes, book: ClaimBook, supposed: Supposed) -> None:
        self._log = log
        self._nodes = nodes
        self._book = book
        self._supposed = supposed
        self._depth = self._begun = 0

    def __enter__(self) -> Trial:
        _ = self._book.mix  # what is known of it before the trial counts in it
        self._begun = self._log.size
        self._log.open()
        self._book.marks.begin_trial()
        self._depth = self._log.depth
        return self

    def __exit__(self, *_: object) -> None:
        if self._log.depth != self._depth:
            raise RuntimeError("a trial must not end before those within it")
        self._log.close()
        self._book.marks.end_trial()

    @property
    def steps(self) -> int:
        """How many steps it takes to undo everything since it began."""
        return self._log.size - self._begun

    @property
    def freed(self) -> tuple[ResourceClaim, ...]:
        """The claims whose devices are assumed to be free."""
        return tuple(claim for claim, _ in self._supposed.freed.values())

    def counts(self, uid: str) -> bool:
        """Whether a pod counts on a node."""
        return self._nodes.find(uid) is not None

    def has_evicted(self, uid: str) -> bool:
        """Whether a pod can be put back."""
        return uid in self._supposed.evicted

    def evict(self, uid: str, claims: Iterable[ResourceClaim] = ()) -> None:
        """Remove a pod that counts. Those of its claims that no other pod uses give back their devices.

        So pods that share a claim free it only together. Raises KeyError if the pod does not count.
        """
        gone = self._supposed.evicted
        evicted = _Evicted(self._nodes.displace(uid), tuple(claims))
        self._log.put(gone, uid, evicted)
        for claim in evicted.claims:
            users = pods_holding(claim)
            if users is not None and all(user.uid in gone for user in users):
                self.free(claim)

    def restore(self, uid: str) -> None:
        """Put back a pod that was evicted, with what it uses. Raises KeyError if it was not evicted."""
        evicted = self._supposed.evicted[uid]
        self._nodes.put_back(evicted.pod)
        self._log.pop(self._supposed.evicted, uid)
        for claim in evicted.claims:
            self.hold(claim)

    def free(self, claim: ResourceClaim) -> None:
        """Free the devices of a claim, though pods may use it."""
        released = self._book.release(holder_of(claim))
        if released is not None and released.holdings:
            self._log.put(self._supposed.freed, released.holder, (claim, released))

    def hold(self, claim: ResourceClaim) -> None:
        """Give a claim back its devices, if it was freed."""
        freed = self._log.pop(self._supposed.freed, holder_of(claim))
        if freed is not None:
            self._book.hold_again(freed[1])


class _Real(Surroundings, Protocol):
    """The cluster as it is."""

    @property
    def neighbourhood(self) -> Neighbourhood: ...

    @property
    def inventory(self) -> Inventory: ...


class Emptied:
    """A cluster without pods, in which only the given claims and other holders hold devices.

    With `untainted`, nodes are neither tainted nor cordoned nor spot, and devices are not tainted either.
    """

    # Devices that no claim holds are neither taken nor given back.
    floating_taken: Final = 0
    floating_freed: Final = 0
    soft_taints: Final = 0
    mix: Final = NO_MIX

    def __init__(
        self,
        real: _Real,
        held: Iterable[ResourceClaim],
        holders: Iterable[tuple[str, tuple[Holding, ...]]] = (),
        *,
        untainted: bool,
    ) -> None:
        self.marks = real.marks
        self.mapped_devices = real.mapped_devices
        self.static_verdicts = real.static_verdicts
        self.nodes: Mapping[str, NodeState] = _EmptyNodes(real.nodes, untainted=untainted)
        self.neighbourhood = EmptyNeighbourhood(real.neighbourhood)
        self.volumes: VolumeView = _IdleVolumes(real.volumes)
        self._log = UndoLog()
        self._ledger = Ledger(self._log)
        for claim in held:
            self._ledger.observe_claim(claim)
        for holder, holdings in holders:
            self._ledger.observe(holder, holdings)
        self._inventory = real.inventory
        self.allowance = real.inventory.allowance
        self.has_floating_devices = real.has_floating_devices
        self._untainted = untainted

    def view(self, node: NodeState) -> NodeView:
        view = self._inventory.view(node.node, self._ledger)
        return view.untainted() if self._untainted else view

    def assume_plan(self, plan: Plan) -> None:
        """Take the devices of a plan here, but not in the cluster. Raises LedgerConflictError."""
        self._ledger.commit(plan)

    def trial(self) -> AbstractContextManager[None]:
        """A context that gives back what was taken within it when it ends."""
        return self._log.undone()


class _EmptyNodes(Mapping[str, NodeState]):
    """Nodes without pods."""

    def __init__(self, nodes: Mapping[str, NodeState], *, untainted: bool) -> None:
        self._nodes = nodes
        self._untainted = untainted

    def __getitem__(self, name: str) -> NodeState:
        real = self._nodes[name]
        if not self._untainted:
            return NodeState(real.node, real.facts, _UNUSED, real.index, real.offer)
        offer = replace(real.offer, is_spot=False) if real.offer.is_spot else real.offer
        return NodeState(real.node, _without_taints(real.facts), _UNUSED, real.index, offer)

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
    return replace(facts, shape=bare)


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

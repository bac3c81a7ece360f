"""Pods that are thought away from a cluster, with the devices that nobody would hold then.

A claim gives back its devices when the last pod that uses it is gone, so pods that share a claim free it only together. Everything that
speaks of other pods sees that they are away: sums, ports, volumes, devices, affinity and spreading. What was kept about nodes stays
valid, because all of it is as before when the block ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.inventory.ledger import Holding, holder_of
from drayman.placement.fit import PodNeeds
from drayman.placement.state import ClusterState, NodeState


class _Away(Struct, frozen=True):
    node: NodeState
    needs: PodNeeds
    claims: tuple[ResourceClaim, ...]


class Absence:
    """A context in which pods and claims can be thought away and given back. On leaving it everybody is back."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._away: dict[str, _Away] = {}  # by uid of the pod
        self._freed: dict[str, tuple[ResourceClaim, tuple[Holding, ...]]] = {}  # by holder

    def __enter__(self) -> Absence:
        return self

    def __exit__(self, *_: object) -> None:
        for uid in tuple(self._away):
            self.give_back(uid)
        for holder in tuple(self._freed):
            self._hold(holder)

    @property
    def freed(self) -> tuple[ResourceClaim, ...]:
        """The claims whose devices are free while these pods are away."""
        return tuple(claim for claim, _ in self._freed.values())

    def take_away(self, pod: Pod, node: NodeState, claims: Iterable[ResourceClaim]) -> None:
        """The pod is not on the node. `claims` are those that it uses."""
        uid = pod.metadata.uid
        needs = node.usage.remove(uid)
        self._state.neighbourhood.remove(uid)
        self._state.volumes.remove_pod(needs)
        self._away[uid] = away = _Away(node, needs, tuple(claims))
        for claim in away.claims:
            if all(user.uid in self._away for user in claim.status.reserved_for):
                self.free(claim)

    def give_back(self, uid: str) -> None:
        """The pod is there again, with what it uses."""
        away = self._away.pop(uid)
        away.node.usage.add(away.needs)
        self._state.neighbourhood.add(away.needs, away.node.facts.name)
        self._state.volumes.add_pod(away.needs)
        for claim in away.claims:
            self._hold(holder_of(claim))

    def free(self, claim: ResourceClaim) -> None:
        """Nobody holds the devices of a claim, whoever uses it."""
        holder = holder_of(claim)
        held = self._state.ledger.holdings(holder)
        if held:
            self._state.ledger.forget(holder)
            self._freed[holder] = (claim, held)

    def _hold(self, holder: str) -> None:
        freed = self._freed.pop(holder, None)
        if freed is not None:
            self._state.ledger.observe(holder, freed[1])

"""Pods that use what another pod needs, and that can only be removed together.

A claim gives back its devices when the last pod that uses it is gone, so pods that share a claim are linked. One that is reserved for a
group of pods keeps them as long as the group exists, whichever of its pods go. A claim with devices that no pod uses stands alone. Pods
that would come back at once (those of daemon sets, and those that a node runs by itself), pods of the same controller as the one that
waits, which gains nothing from removing them, and those that the person asking may not see, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.meta import controller_of
from drayman.api.pods import is_finished, is_leaving, priority_of
from drayman.api.resource import ResourceClaim
from drayman.inventory.bitsets import positions
from drayman.placement.claims import pods_holding
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.placement.world import World

_LASTING: Final = ("DaemonSet", "Node")


class LinkedPods(Struct, frozen=True):
    """Pods that go together, and the claims that then give back their devices. A claim that no pod uses comes without pods."""

    pods: tuple[Pod, ...]
    claims: tuple[ResourceClaim, ...]

    def leave(self, trial: Trial) -> None:
        for pod in self.pods:
            trial.evict(pod.metadata.uid)
        for claim in self.claims:
            trial.free(claim)

    def come_back(self, trial: Trial) -> None:
        for pod in self.pods:
            trial.restore(pod.metadata.uid)
        for claim in self.claims:
            trial.hold(claim)

    @property
    def key(self) -> frozenset[str]:
        return frozenset(
            [pod.metadata.uid for pod in self.pods] + [c.metadata.uid for c in self.claims]
        )

    @property
    def priority(self) -> int:
        return max((priority_of(pod) for pod in self.pods), default=0)

    @property
    def devices(self) -> int:
        """How many devices they hold, entirely or in part."""
        return sum(len(claim.status.results) for claim in self.claims)

    @property
    def is_leaving(self) -> bool:
        """Whether all of it is already being deleted."""
        return bool(self.pods) and all(is_leaving(pod) for pod in self.pods)

    @property
    def age(self) -> str:
        """When the youngest started, as text that sorts by time."""
        times = [pod.status.start_time or pod.metadata.creation_timestamp for pod in self.pods]
        return max((time or "" for time in times), default="")


class PodIndex:
    """Finds the pods that use nodes and devices. What it looks things up in is made when first needed."""

    def __init__(self, world: World, pod: Pod) -> None:
        self._world = world
        self._own = pod
        self._found: dict[str, LinkedPods | None] = {}  # by uid of each pod and claim in it
        self._consumers: dict[str, list[Pod] | None] = {}  # by uid of the claim

    @property
    def _state(self) -> ClusterState:
        return self._world.state

    def on(self, node: str) -> list[Pod]:
        return self._by_node.get(node, [])

    def owned_by(self, kind: str, uid: str) -> list[Pod]:
        return self._by_owner.get((kind, uid), [])

    def linked_on(self, node: NodeState) -> list[LinkedPods]:
        """Those that run on a node or hold devices that it sees."""
        running = self.linked_to_any(self.on(node.facts.name))
        return _each_once((*running, *self._holding(node)))

    def linked_to_any(self, pods: Iterable[Pod]) -> list[LinkedPods]:
        """Those that the pods belong to, without pods that are not to be removed."""
        return _each_once(self._linked([pod], []) for pod in pods)

    def linked_to_claim(self, claim: ResourceClaim) -> LinkedPods | None:
        """The pods that use a claim; None if some of them are not to be removed."""
        return self._linked([], [claim])

    def _holding(self, node: NodeState) -> Iterator[LinkedPods | None]:
        """The holders of devices."""
        view = self._state.inventory.view(node.node, self._state.ledger)
        if view.hardware.is_vast:
            return
        for position in positions(view.usage.in_use | view.usage.shared):
            for holder in self._state.ledger.holders_of(view.id_of(position)):
                claim = self._claims.get(holder)
                if claim is not None:
                    yield self.linked_to_claim(claim)

    def _linked(self, pods: list[Pod], claims: list[ResourceClaim]) -> LinkedPods | None:
        """Everything that has to be removed together with a pod or a claim; None if some of it stays."""
        for uid in (*(pod.metadata.uid for pod in pods), *(c.metadata.uid for c in claims)):
            if uid in self._found:
                return self._found[uid]
        gone: dict[str, Pod] = {}
        released: dict[str, ResourceClaim] = {}
        stays = False
        while pods or claims:
            while claims:
                claim = claims.pop()
                if claim.metadata.uid not in released:
                    released[claim.metadata.uid] = claim
                    consumers = self._consumers_of(claim)
                    stays |= consumers is None
                    pods += consumers or ()
            if pods and (pod := pods.pop()).metadata.uid not in gone:
                gone[pod.metadata.uid] = pod
                stays |= self._stays(pod)
                claims += self._claims_of(pod)
        found = None if stays else LinkedPods(tuple(gone.values()), tuple(released.values()))
        self._found.update(dict.fromkeys((*gone, *released), found))
        return found

    def _consumers_of(self, claim: ResourceClaim) -> list[Pod] | None:
        """The pods that keep a claim; None if it cannot be freed by removing pods that are known."""
        uid = claim.metadata.uid
        if uid not in self._consumers:
            users = pods_holding(claim)
            is_known = users is not None and not self._state.is_under_way(claim)
            if users is None or not is_known or any(user.uid not in self._pods for user in users):
                self._consumers[uid] = None
            else:
                self._consumers[uid] = [self._pods[user.uid] for user in users]
        return self._consumers[uid]

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """The claims of a pod that have devices, and give them back once no pod uses them.

        Those reserved for it, whether or not it names them: claims have to lead to the same pods as pods to claims, or a pod would be
        in two groups. A pod and its claims may have been read at different moments.
        """
        return self._reserved.get(pod.metadata.uid, [])

    def _stays(self, pod: Pod) -> bool:
        if pod.metadata.uid == self._own.metadata.uid:
            return True
        owner, own = controller_of(pod.metadata), controller_of(self._own.metadata)
        if owner is None:
            return False
        return owner.kind in _LASTING or (own is not None and owner.uid == own.uid)

    @cached_property
    def _pods(self) -> dict[str, Pod]:
        """Those that count, by uid."""
        return {
            pod.metadata.uid: pod
            for pod in self._world.objects.pods
            if pod.spec.node_name and not is_finished(pod)
        }

    @cached_property
    def _by_node(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self._pods.values():
            found.setdefault(pod.spec.node_name, []).append(pod)
        return found

    @cached_property
    def _by_owner(self) -> dict[tuple[str, str], list[Pod]]:
        found: dict[tuple[str, str], list[Pod]] = {}
        for pod in self._pods.values():
            owner = controller_of(pod.metadata)
            if owner is not None:
                found.setdefault((owner.kind, owner.uid), []).append(pod)
        return found

    @cached_property
    def _claims(self) -> dict[str, ResourceClaim]:
        """Those with devices, by uid."""
        return {
            claim.metadata.uid: claim
            for claim in self._world.objects.claims
            if claim.status.allocation is not None
        }

    @cached_property
    def _reserved(self) -> dict[str, list[ResourceClaim]]:
        """The same by the uid of each pod that they are reserved for."""
        found: dict[str, list[ResourceClaim]] = {}
        for claim in self._claims.values():
            for user in pods_holding(claim) or ():
                found.setdefault(user.uid, []).append(claim)
        return found


def _each_once(found: Iterable[LinkedPods | None]) -> list[LinkedPods]:
    """Those that go. Equal ones are the same object."""
    return list({id(linked): linked for linked in found if linked is not None}.values())

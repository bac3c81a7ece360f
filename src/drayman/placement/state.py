"""The cluster as the scheduler knows it: what the API server has shown, plus what the scheduler has decided and not yet seen confirmed.

A decision counts from the moment it is made (`assume`), so that the next one is made on top of it, and is taken back if it cannot be
written (`forget`). Of a claim the newest version wins, wherever it came from; while a write of ours is under way for a claim, the
ledger keeps what we decided, whatever older versions are still to arrive.

Everything that may change an answer leaves a mark: the name of a node in `marks`, or a new `epoch` where any node may be concerned.
Whoever keeps answers (`placing`) reads the marks since it last looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from drayman.allocator import Plan
from drayman.api.core import Namespace, Node, Pod
from drayman.api.pods import is_finished, is_leaving, named_claims
from drayman.api.resource import (
    AllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.inventory.features import Features
from drayman.inventory.inventory import Inventory
from drayman.inventory.ledger import Ledger, holder_of, holdings_of
from drayman.inventory.view import NodeView
from drayman.placement.claims import EXTENDED_CLAIM
from drayman.placement.extended import ExtendedResources
from drayman.placement.fit import (
    Neighbourhood,
    NodeFacts,
    NodeShape,
    NodeUsage,
    PodNeeds,
    StaticVerdicts,
)
from drayman.placement.groups import Groups
from drayman.placement.mapped_resources import MappedDevices, requests_in_status
from drayman.placement.volumes import Volumes
from drayman.placement.wake import Wake

ClaimKey = tuple[str, str]
"""Namespace and name."""
_MOST_MARKS: Final = 200_000
_Results = tuple[DeviceRequestAllocationResult, ...]


class NodeState(Struct, eq=False):
    """A node with what runs on it."""

    node: Node
    facts: NodeFacts
    usage: NodeUsage
    index: int
    """The order of arrival: the last word between nodes that are equal."""


class ClusterState:
    """Nodes, pods, claims, devices. Belongs to one event loop."""

    def __init__(self, features: Features, wake: Callable[[Wake], None]) -> None:
        self._wake = wake
        self.nodes: dict[str, NodeState] = {}
        self.inventory = Inventory(features)
        self.ledger = Ledger()
        self.extended = ExtendedResources()
        self.neighbourhood = Neighbourhood()
        self.volumes = Volumes()
        self.groups = Groups()
        self.mapped_devices = MappedDevices()
        self.static_verdicts = StaticVerdicts()
        self.marks: list[str] = []
        self.epoch = 0
        self.floating_taken = 0
        """Counts what was taken of devices that several nodes can use."""
        self.floating_freed = 0
        self.has_floating_devices = False
        """Whether there ever were any: then devices of several nodes must not be added up."""
        self.soft_taints = 0
        """How many nodes have taints that pods would rather avoid."""
        self._closed = 0  # how many nodes are cordoned, or have taints that keep pods away
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        self._assumed: dict[str, ResourceClaim] = {}  # as our writes will leave them, by uid
        self._holding: dict[str, _Results] = {}  # by holder
        self._provisional: dict[ClaimKey, str] = {}  # holders of claims that are being created
        # By driver and pool, the only node that sees the pool; empty: several.
        self._home_of_pool: dict[tuple[str, str], str] = {}
        self._placed: dict[str, tuple[str, PodNeeds]] = {}  # pods that count, by uid
        self._homeless: dict[str, dict[str, PodNeeds]] = {}  # pods on nodes that are not known
        self._extended_claims: dict[str, ClaimKey] = {}  # by uid of the pod
        self._templates: dict[ClaimKey, ResourceClaimTemplate] = {}
        self._arrivals = 0

    # What the API server shows.

    def set_node(self, node: Node) -> None:
        name = node.metadata.name
        facts, known = NodeFacts.of(node), self.nodes.get(name)
        if known is None:
            self._arrivals += 1
            usage = NodeUsage()
            for needs in self._homeless.pop(name, {}).values():
                usage.add(needs)
            self.nodes[name] = NodeState(node, facts, usage, self._arrivals)
        else:
            self._count_taints(known.facts.shape, -1)
            is_same = (
                facts.static_key == known.facts.static_key and facts.labels == known.facts.labels
            )
            known.node, known.facts = node, facts
            if is_same:
                self._count_taints(facts.shape, 1)
                return
        self._count_taints(facts.shape, 1)
        self.neighbourhood.set_node(facts)
        self.mark(name)
        self._wake(Wake.NODES)

    def remove_node(self, name: str) -> None:
        known = self.nodes.pop(name, None)
        if known is None:
            return
        self._count_taints(known.facts.shape, -1)
        if known.usage.pods:
            self._homeless[name] = dict(known.usage.pods)
        self.neighbourhood.remove_node(name)
        self.mark(name)

    def set_namespace(self, namespace: Namespace) -> None:
        self.neighbourhood.set_namespace(namespace.metadata.name, namespace.metadata.labels)

    def remove_namespace(self, name: str) -> None:
        self.neighbourhood.remove_namespace(name)

    def set_placed_pod(self, pod: Pod) -> None:
        """A pod that has a node. Finished ones no longer count."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        if is_finished(pod):
            self.remove_pod(uid)
            return
        known = self._placed.get(uid)
        if known is not None and known[0] == node and not _changes_needs(known[1], pod):
            return
        if known is not None:
            self._displace(uid)
        self._place(needs_of(pod), node)
        if pod.spec.scheduling_group is not None:
            self.groups.place(pod)

    def remove_pod(self, uid: str) -> None:
        if uid in self._placed:
            self._displace(uid)
            self._wake(Wake.NODES)

    def set_claim(self, claim: ResourceClaim) -> bool:
        """Whether this version was news."""
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._claims.get(key)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            if _version(known) >= _version(claim):
                return False
        elif known is not None:
            self.remove_claim(known)
        self._claims[key] = claim
        if EXTENDED_CLAIM in claim.metadata.annotations:
            self._note_extended(claim)
        if claim.metadata.uid not in self._assumed:
            self._observe(claim)
        return True

    def remove_claim(self, claim: ResourceClaim) -> None:
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._claims.get(key)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            del self._claims[key]
            for owner in claim.metadata.owner_references:
                if self._extended_claims.get(owner.uid) == key:
                    del self._extended_claims[owner.uid]
            self._assumed.pop(claim.metadata.uid, None)
            self._free(holder_of(claim))

    def set_template(self, template: ResourceClaimTemplate) -> None:
        self._templates[template.metadata.namespace, template.metadata.name] = template

    def remove_template(self, template: ResourceClaimTemplate) -> None:
        self._templates.pop((template.metadata.namespace, template.metadata.name), None)

    def set_slice(self, slice_: ResourceSlice) -> None:
        self.inventory.apply_slice(slice_)
        self.mapped_devices.set_slice(slice_)
        self._slice_changed(slice_)

    def remove_slice(self, slice_: ResourceSlice) -> None:
        self.inventory.remove_slice(slice_.metadata.name)
        self.mapped_devices.remove_slice(slice_)
        self._slice_changed(slice_)

    def set_class(self, device_class: DeviceClass) -> None:
        self.inventory.apply_class(device_class)
        self.extended.apply(device_class)
        self._everything_changed()

    def remove_class(self, device_class: DeviceClass) -> None:
        self.inventory.remove_class(device_class.metadata.name)
        self.extended.remove(device_class.metadata.name)
        self._everything_changed()

    def set_taint_rule(self, rule: DeviceTaintRule) -> None:
        self.inventory.apply_taint_rule(rule)
        self._everything_changed()

    def remove_taint_rule(self, rule: DeviceTaintRule) -> None:
        self.inventory.remove_taint_rule(rule.metadata.name)
        self._everything_changed()

    # Reading.

    def view(self, node: NodeState) -> NodeView:
        """The devices of a node as they are now."""
        return self.inventory.view(node.node, self.ledger)

    @property
    def has_taints(self) -> bool:
        """Whether any node is cordoned, or it or a device has a taint that may keep pods away."""
        return self._closed > 0 or self.inventory.has_taints

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as it is, or as it will be once our writes are through."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            return None
        return self._assumed.get(claim.metadata.uid, claim)

    def find_template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        return self._templates.get((namespace, name))

    def known_claim(self, claim: ResourceClaim) -> ResourceClaim | None:
        """The claim as the server has last shown it; None if it is gone."""
        known = self._claims.get((claim.metadata.namespace, claim.metadata.name))
        return None if known is None or known.metadata.uid != claim.metadata.uid else known

    def latest_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it will be after all decisions so far."""
        return self._assumed.get(claim.metadata.uid, claim)

    def is_under_way(self, claim: ResourceClaim) -> bool:
        """Whether a write of ours for the claim has not been confirmed."""
        return claim.metadata.uid in self._assumed

    def allocated_claims(self) -> Iterator[ResourceClaim]:
        """The claims that have devices, as the server has last shown them."""
        return (claim for claim in self._claims.values() if claim.status.allocation is not None)

    def node_of(self, uid: str) -> str | None:
        """The node on which a pod counts."""
        placed = self._placed.get(uid)
        return None if placed is None else placed[0]

    def extended_claim_of(self, pod_uid: str) -> ResourceClaim | None:
        """The claim for the extended resources of a pod, if it exists."""
        key = self._extended_claims.get(pod_uid)
        return None if key is None else self.find_claim(*key)

    def claims_used_by(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """The claims of a pod that exist, with that for extended resources, and those too that are on their way out."""
        namespace = pod.metadata.namespace
        found = [self.find_claim(namespace, name) for name in named_claims(pod)]
        found.append(self.extended_claim_of(pod.metadata.uid))
        return tuple(claim for claim in found if claim is not None)

    # Deciding.

    def assume_pod(self, needs: PodNeeds, node: str) -> None:
        """The pod goes to the node."""
        self._place(needs, node)

    def assume_plan(self, plan: Plan) -> None:
        """The devices of a plan are taken. Raises LedgerConflictError."""
        self.ledger.commit(plan)
        for item in plan.claims:
            self._note_holding(holder_of(item.claim), item.allocation)

    def assume_claim(self, claim: ResourceClaim) -> None:
        """A write is about to make the claim this."""
        self._assumed[claim.metadata.uid] = claim

    def confirm_claim(self, claim: ResourceClaim) -> None:
        """The write is through; this is what the server made of it."""
        self._assumed.pop(claim.metadata.uid, None)
        if not self.set_claim(claim):
            self._observe_known(claim)

    def forget_claim(self, claim: ResourceClaim) -> None:
        """The write failed: the claim is what the server has last shown."""
        if self._assumed.pop(claim.metadata.uid, None) is not None:
            self._observe_known(claim)

    def assume_made(self, key: ClaimKey, holder: str) -> None:
        """A claim of this name is about to be created; until it exists, its devices are held under a provisional name."""
        self._provisional[key] = holder

    def adopt(self, holder: str, claim: ResourceClaim) -> None:
        """What was taken under a provisional name belongs to this claim, which now exists."""
        self._provisional.pop((claim.metadata.namespace, claim.metadata.name), None)
        if holder_of(claim) in self._holding:  # the server showed the claim before it answered
            self._free(holder)
        else:
            self._hand_over(holder, claim)

    def forget_made(self, key: ClaimKey, holder: str) -> None:
        """Give back what was taken for a claim that is not made after all."""
        self._provisional.pop(key, None)
        self._free(holder)

    def keep_room(self, needs: PodNeeds, node: str, devices: Sequence[AllocationResult]) -> None:
        """What a pod will get on a node counts as taken, though others may still have it."""
        self._place(needs, node)
        for number, allocation in enumerate(devices):
            holder = _promised(needs.uid, number)
            self.ledger.observe(holder, holdings_of(allocation))
            self._note_holding(holder, allocation)

    def give_up_room(self, uid: str, devices: int) -> None:
        """The inverse of `keep_room`. Wakes nobody."""
        self._displace(uid)
        for number in range(devices):
            self._take_back(_promised(uid, number))

    def room_is_free(self) -> None:
        """What was kept for a pod is there for everybody."""
        self._wake(Wake.ANYTHING)

    def mark(self, node: str) -> None:
        """An answer about this node may no longer hold."""
        self.marks.append(node)
        if len(self.marks) > _MOST_MARKS:
            self.marks.clear()
            self.epoch += 1

    # Inside.

    def _count_taints(self, shape: NodeShape, change: int) -> None:
        self.soft_taints += change * bool(shape.soft_taints)
        self._closed += change * bool(shape.unschedulable or shape.taints)

    def _note_extended(self, claim: ResourceClaim) -> None:
        for owner in claim.metadata.owner_references:
            if owner.controller and owner.kind == "Pod":
                key = (claim.metadata.namespace, claim.metadata.name)
                self._extended_claims[owner.uid] = key

    def _place(self, needs: PodNeeds, node: str) -> None:
        self._placed[needs.uid] = (node, needs)
        state = self.nodes.get(node)
        if state is None:
            self._homeless.setdefault(node, {})[needs.uid] = needs
        else:
            state.usage.add(needs)
            self.mark(node)
        self.neighbourhood.add(needs, node)
        self.volumes.add_pod(needs)

    def _displace(self, uid: str) -> None:
        node, needs = self._placed.pop(uid)
        state = self.nodes.get(node)
        if state is None:
            homeless = self._homeless.get(node, {})
            homeless.pop(uid, None)
            if not homeless:
                self._homeless.pop(node, None)
        else:
            state.usage.remove(uid)
            self.mark(node)
        self.neighbourhood.remove(uid)
        self.volumes.remove_pod(needs)
        self.groups.displace(uid)

    def _observe_known(self, claim: ResourceClaim) -> None:
        known = self._claims.get((claim.metadata.namespace, claim.metadata.name))
        if known is not None and known.metadata.uid == claim.metadata.uid:
            self._observe(known)
        else:
            self._free(holder_of(claim))

    def _observe(self, claim: ResourceClaim) -> None:
        holder, allocation = holder_of(claim), claim.status.allocation
        if allocation is None:
            self._free(holder)
            return
        held = self._holding.get(holder)
        if held is not None:
            if held == allocation.devices.results:
                return  # the echo of our own write, most of the time
            self._free(holder)
        elif self._is_made_by_us(claim, allocation):
            return
        self.ledger.observe(holder, holdings_of(allocation))
        self._note_holding(holder, allocation)

    def _is_made_by_us(self, claim: ResourceClaim, allocation: AllocationResult) -> bool:
        """Whether the server shows a claim that we are creating. Nothing is taken or freed by that, so nobody is woken."""
        if not self._provisional:
            return False
        key = (claim.metadata.namespace, claim.metadata.name)
        holder = self._provisional.get(key, "")
        if self._holding.get(holder) != allocation.devices.results:
            return False
        del self._provisional[key]
        self._hand_over(holder, claim)
        return True

    def _hand_over(self, holder: str, claim: ResourceClaim) -> None:
        held = self._holding.pop(holder, None)
        if held is not None:
            self.ledger.forget(holder)
            self._holding[holder_of(claim)] = held
            self.ledger.observe_claim(claim)

    def _note_holding(self, holder: str, allocation: AllocationResult) -> None:
        results = self._holding[holder] = allocation.devices.results
        for pool in _pools_of(results):
            node = self._home_of_pool.get(pool, "")
            if node:
                self.mark(node)
            else:
                self.floating_taken += 1

    def _free(self, holder: str) -> None:
        if self._take_back(holder):
            self._wake(Wake.DEVICES)

    def _take_back(self, holder: str) -> bool:
        """Whether there was anything that somebody could be glad of."""
        held = self._holding.pop(holder, None)
        self.ledger.forget(holder)
        if held is None:
            return False
        for pool in _pools_of(held):
            node = self._home_of_pool.get(pool, "")
            if node:
                self.mark(node)
            else:
                self.floating_freed += 1
        return True

    def _slice_changed(self, slice_: ResourceSlice) -> None:
        pool = (slice_.spec.driver, slice_.spec.pool.name)
        node = slice_.spec.node_name or ""
        home = self._home_of_pool.setdefault(pool, node)
        if home != node:
            # Seen from several nodes: whatever happens in it concerns all of them.
            self._home_of_pool[pool] = home = ""
        if not home:
            self.has_floating_devices = True
        if home and not slice_.spec.shared_counters:
            self.mark(home)
        else:
            self.epoch += 1
        self._wake(Wake.DEVICES)

    def _everything_changed(self) -> None:
        self.epoch += 1
        self._wake(Wake.ANYTHING)


def _promised(uid: str, number: int) -> str:
    """The holder of devices that are kept for a pod: under a name that no claim can have."""
    return f"<promised> {uid} {number}"


def _pools_of(results: _Results) -> Iterable[tuple[str, str]]:
    """The pools that an allocation takes from, each once."""
    if len(results) == 1:  # nearly always
        return ((results[0].driver, results[0].pool),)
    return {(result.driver, result.pool): None for result in results}


def needs_of(pod: Pod) -> PodNeeds:
    """What a pod asks of its node, with what its devices take of the node's own resources."""
    needs = PodNeeds.of(pod)
    statuses = pod.status.node_allocatable_resource_claim_statuses
    return needs.plus(requests_in_status(statuses)) if statuses else needs


def _version(claim: ResourceClaim) -> int:
    return int(claim.metadata.resource_version or 0)


def _changes_needs(needs: PodNeeds, pod: Pod) -> bool:
    """Whether a pod that is placed asks for something else now: labels can change, and containers be resized."""
    if needs.terminating != is_leaving(pod):
        return True
    return needs.labels != pod.metadata.labels or needs_of(pod).key != needs.key

"""The cluster as the scheduler knows it: what the API server has shown, plus what the scheduler has decided but not yet seen confirmed.

A decision counts from the moment it is made, so that the next one is made on top of it, and is taken back if it cannot be written.
Everything that may change an answer leaves a mark (`marks`). Any change to the state can be made in a trial (`trial`), which undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import KaiQueue
from drayman.api.jobs import Job
from drayman.api.pods import has_claims, is_finished, is_leaving
from drayman.api.resource import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from drayman.inventory.features import Features
from drayman.inventory.inventory import Inventory
from drayman.inventory.undo import UndoLog
from drayman.inventory.view import NodeView
from drayman.placement.claim_book import ClaimBook
from drayman.placement.claims import is_group
from drayman.placement.extended import ExtendedResources
from drayman.placement.fit import PodNeeds, StaticVerdicts
from drayman.placement.gangs.book import GroupObject, key_of_group
from drayman.placement.gpu_shares import GpuShares
from drayman.placement.hints import Change, NamespaceChange, PodChange
from drayman.placement.lost_claims import lost_claims_of
from drayman.placement.mapped_resources import MappedDevices
from drayman.placement.marks import Marks
from drayman.placement.nodes import Nodes, NodeState
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.placement.queueing.book import QueueBook
from drayman.placement.queueing.gpus import Gpus, counts_as_gpu
from drayman.placement.runs.book import RunBook
from drayman.placement.trial import Emptied, Supposed, Trial
from drayman.placement.wake import Wake

_PROMISED: Final = "<promised> "


class ClusterState(ClaimBook):
    """Nodes, pods, claims, devices. Belongs to one event loop."""

    def __init__(
        self,
        features: Features,
        wake: Callable[[Change], None],
        prices: PriceTable = NO_PRICES,
    ) -> None:
        log = UndoLog()

        def wake_unless_in_trial(change: Change) -> None:
            if not log.depth:
                wake(change)

        super().__init__(log, Marks(), wake_unless_in_trial)
        self._nodes = Nodes(log, self.marks, prices)
        self.nodes = self._nodes.by_name
        self.neighbourhood = self._nodes.neighbourhood
        self.volumes = self._nodes.volumes
        self.gangs = self._nodes.gangs
        self.topologies = self.gangs.topologies
        self.runs = RunBook(log)
        self.inventory = Inventory(features, log)
        self.allowance = self.inventory.allowance
        self.extended = ExtendedResources(log)
        self.mapped_devices = MappedDevices(log)
        gpus = Gpus(self.inventory, self.extended)
        self.gpu_shares = GpuShares(self.inventory, gpus)
        self.queues = QueueBook(
            log, self.gangs, gpus, self.gpu_shares.charge, self.find_claim, self.find_template
        )
        self._nodes.follow_with(self.queues)
        self.static_verdicts = StaticVerdicts()
        self._supposed = Supposed()

    # What the API server shows. Claims and their templates are in the book.

    def set_node(self, node: Node) -> None:
        if self._nodes.set(node):
            self._wake(Wake.NODES)

    def remove_node(self, name: str) -> None:
        if name in self.nodes:
            self._nodes.remove(name)
            self._wake(Wake.PODS)  # those on it no longer count

    def set_namespace(self, namespace: Namespace) -> None:
        name, labels = namespace.metadata.name, namespace.metadata.labels
        before = self.neighbourhood.namespace_labels(name)
        self.neighbourhood.set_namespace(name, labels)
        if labels != before:
            self._wake(NamespaceChange(name, before, labels))

    def remove_namespace(self, name: str) -> None:
        before = self.neighbourhood.namespace_labels(name)
        self.neighbourhood.remove_namespace(name)
        if before:
            self._wake(NamespaceChange(name, before, {}))

    def set_pod(self, pod: Pod) -> None:
        """A pod, with or without a node."""
        self.gangs.see(pod)
        self.queues.see(pod)
        self._starts.see(pod)
        if pod.spec.node_name:
            self.set_placed_pod(pod)

    def delete_pod(self, pod: Pod) -> None:
        """A pod no longer exists."""
        self.gangs.forget(pod)
        self._starts.forget(pod.metadata.uid)
        self.remove_pod(pod.metadata.uid)
        if self.queues.forget(pod.metadata.uid):
            self._wake(Wake.NODES)  # others may be entitled to more now

    def set_placed_pod(self, pod: Pod) -> None:
        """A pod that has a node. Finished ones no longer count."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        if is_finished(pod):
            self.runs.observe(pod)
            self.remove_pod(uid)
            return
        if self.runs.see(pod):
            self._wake(Wake.NODES)  # it may be known now when there will be room
        if has_claims(pod):
            for lost in lost_claims_of(pod):
                self.keep_for((uid,), lost)
        known = self._nodes.find(uid)
        if known is not None and known.node == node and not _changes_needs(known.needs, pod):
            return
        self._mixes.pod_changed()
        needs, before = PodNeeds.of(pod), None
        if known is not None:
            before = known.needs
            self._nodes.displace(uid)
        self._nodes.place(needs, node)
        self.gangs.place(pod, node)
        if known is not None and (
            known.node != node or needs.shape.leaves_room_of(known.needs.shape)
        ):
            self._wake(Wake.NODES)
        else:
            self._pod_changed(before, needs)

    def remove_pod(self, uid: str) -> None:
        self.runs.forget(uid)
        if self._nodes.find(uid) is not None:
            self._mixes.pod_changed()
            self._nodes.displace(uid)
            self._wake(Wake.NODES)
        if self._deprived or self._lost:
            self._pod_ended(uid)

    def set_job(self, job: Job) -> None:
        """What it says about its pods: that they are a gang, how long they run."""
        self.gangs.set_job(job)
        self.queues.job_changed(job.metadata.uid)
        if self.runs.set_job(job):
            self._wake(Wake.NODES)

    def remove_job(self, job: Job) -> None:
        self.gangs.remove_job(job)
        self.queues.job_changed(job.metadata.uid)
        self.runs.remove_job(job)

    def set_slice(self, slice_: ResourceSlice) -> None:
        self.inventory.apply_slice(slice_)
        self.mapped_devices.set_slice(slice_)
        self._slice_changed(slice_)

    def remove_slice(self, slice_: ResourceSlice) -> None:
        self.inventory.remove_slice(slice_.metadata.name)
        self.mapped_devices.remove_slice(slice_)
        self._slice_changed(slice_)

    def set_group(self, group: GroupObject) -> None:
        """A group of pods."""
        self.gangs.set_group(group)
        self.queues.group_changed(key_of_group(group))

    def remove_group(self, group: GroupObject) -> None:
        self.gangs.remove_group(group)
        self.queues.group_changed(key_of_group(group))

    def set_queue(self, queue: KaiQueue) -> None:
        if self.queues.set_queue(queue):
            self._wake(Wake.ANYTHING)

    def remove_queue(self, queue: KaiQueue) -> None:
        self.queues.remove_queue(queue.metadata.name)
        self._wake(Wake.ANYTHING)

    def set_class(self, device_class: DeviceClass) -> None:
        known = self.inventory.classes.get(device_class.metadata.name)
        self.inventory.apply_class(device_class)
        self.extended.apply(device_class)
        if counts_as_gpu(device_class) or (known is not None and counts_as_gpu(known)):
            self.queues.classes_changed()
        self._everything_changed()

    def remove_class(self, device_class: DeviceClass) -> None:
        self.inventory.remove_class(device_class.metadata.name)
        self.extended.remove(device_class.metadata.name)
        if counts_as_gpu(device_class):
            self.queues.classes_changed()
        self._everything_changed()

    def set_claim(self, claim: ResourceClaim) -> bool:
        """Take in a claim. Returns whether this version was new."""
        is_new = super().set_claim(claim)
        if is_new:
            self.queues.claim_changed(claim.metadata.namespace, claim.metadata.name)
        return is_new

    def remove_claim(self, claim: ResourceClaim) -> None:
        super().remove_claim(claim)
        self.queues.claim_changed(claim.metadata.namespace, claim.metadata.name)

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
        """Whether any node is cordoned or spot, or any node or device has a taint that may keep pods away."""
        return self._nodes.closed > 0 or self.inventory.has_taints

    @property
    def has_offers(self) -> bool:
        """Whether any node has a price or is spot, so that it matters what pods say about that."""
        return self._nodes.offers > 0

    @property
    def gpus(self) -> int:
        """How many GPUs the cluster has, by what counts as one in queues."""
        offered = self._nodes.extended.items()
        of_kubelets = sum(number for name, number in offered if self.queues.is_gpu(name))
        return of_kubelets + self.queues.gpus_in_pools()

    @property
    def soft_taints(self) -> int:
        """How many nodes have taints that pods would rather avoid."""
        return self._nodes.soft_taints

    @property
    def floating_taken(self) -> int:
        return self.marks.floating_taken

    @property
    def floating_freed(self) -> int:
        return self.marks.floating_freed

    def node_of(self, uid: str) -> str | None:
        """The node on which a pod counts."""
        placed = self._nodes.find(uid)
        return None if placed is None else placed.node

    def needs_of(self, uid: str) -> PodNeeds | None:
        """What a pod takes of the node on which it counts."""
        placed = self._nodes.find(uid)
        return None if placed is None else placed.needs

    # Trials.

    def trial(self) -> Trial:
        """A context that undoes all changes made to the state within it when it ends."""
        return Trial(self._log, self._nodes, self, self._supposed)

    def emptied(self, held: Iterable[ResourceClaim] = (), *, untainted: bool = False) -> Emptied:
        """The cluster as if it were unused, except for these claims, which keep their devices."""
        return Emptied(self, held, untainted=untainted)

    def without_pods(self) -> Callable[[], Emptied]:
        """Makes the cluster without its pods, in which all devices are held that are held now: also those that are kept for pods."""
        held = tuple(self.ledger.holders())
        return lambda: Emptied(self, (), held, untainted=False)

    def counts(self, uid: str) -> bool:
        """Whether a pod counts on a node."""
        return self._nodes.find(uid) is not None

    # Deciding.

    def assume_pod(self, needs: PodNeeds, node: str) -> None:
        """The pod goes to the node."""
        self._mixes.pod_changed()
        self._nodes.place(needs, node)
        self._pod_changed(None, needs)

    def keep_room(self, needs: PodNeeds, node: str, devices: Sequence[AllocationResult]) -> None:
        """Count what a pod will get on a node as taken, though others may still have it."""
        self._nodes.place(needs, node)
        for number, allocation in enumerate(devices):
            self.hold(promised_holder(needs.uid, number), allocation)

    def give_up_room(self, uid: str, devices: int) -> None:
        """The inverse of `keep_room`. Wakes no pods."""
        self._nodes.displace(uid)
        for number in range(devices):
            self.release(promised_holder(uid, number))

    def room_is_free(self) -> None:
        """What was kept for a pod is available to all pods."""
        self._wake(Wake.ANYTHING)

    # Internals.

    def _pod_changed(self, before: PodNeeds | None, after: PodNeeds) -> None:
        labels = self.neighbourhood.namespace_labels(after.namespace)
        self._wake(PodChange(before, after, labels))

    def _needs_of(self, uid: str) -> PodNeeds | None:
        placed = self._nodes.find(uid)
        return None if placed is None else placed.needs

    def users_of(self, claim: ResourceClaim) -> frozenset[str]:
        """The pods on nodes, by uid, for which a claim is reserved."""
        found: set[str] = set()
        for consumer in claim.status.reserved_for:
            if is_group(consumer, consumer.name):
                found |= self.gangs.placed_in((claim.metadata.namespace, consumer.name))
            elif self._nodes.find(consumer.uid) is not None:
                found.add(consumer.uid)
        return frozenset(found)

    def _slice_changed(self, slice_: ResourceSlice) -> None:
        home = self._home_of(slice_)
        if home and not slice_.spec.shared_counters:
            self.marks.node(home)
        else:
            self.marks.everything()
        self._wake(Wake.DEVICES)

    def _everything_changed(self) -> None:
        self.marks.everything()
        self._wake(Wake.ANYTHING)


def promised_holder(uid: str, number: int) -> str:
    """The holder name for devices that are kept for a pod: one that no claim can have."""
    return f"{_PROMISED}{uid} {number}"


def is_promise(holder: str) -> bool:
    """Whether a holder stands for devices that are kept for a pod and that others may still have."""
    return holder.startswith(_PROMISED)


def _changes_needs(needs: PodNeeds, pod: Pod) -> bool:
    """Whether a placed pod now asks for something else: labels can change, and containers can be resized."""
    if needs.terminating != is_leaving(pod):
        return True
    return needs.labels != pod.metadata.labels or PodNeeds.of(pod).key != needs.key

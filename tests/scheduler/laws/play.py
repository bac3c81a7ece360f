"""A cluster without I/O in which anything may happen in any order, and the scheduler's pure core in the middle of it.

The server is a few dictionaries with resource versions. What it shows reaches the scheduler later, in order for each kind and in any order
between kinds; what the scheduler decides is written later, all or nothing, and fails where somebody else was quicker. A cluster is
played from a list of moves, so that a failing case shrinks to the few moves that matter.
"""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import msgspec

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Namespace, Node, Pod
from drayman.api.pods import named_claims
from drayman.api.resource import (
    AllocatedDeviceStatus,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from drayman.api.times import timestamp_at
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from drayman.inventory.allowance import UnfinishedError
from drayman.inventory.features import Features
from drayman.placement.decision.outcomes import NoNode, Unfinished
from drayman.placement.decision.placements import Placement, take_back
from drayman.placement.nominations import Nominations
from drayman.placement.pauses import completed
from drayman.placement.placing import Placer
from drayman.placement.state import ClusterState
from drayman.quota.fitting.admitted_room import AdmittedRoom
from drayman.quota.shares.live import LiveShares
from drayman.quota.shares.reach import Reaching
from drayman.scheduler.binding import _sharing
from drayman.scheduler.cycle import Cycle, Refused
from drayman.scheduler.following import Follower
from drayman.scheduler.freeing import Freeing
from drayman.scheduler.keeping import RoomKeeper
from drayman.scheduler.occupants import Occupants
from drayman.scheduler.preempting import Preemptor
from drayman.scheduler.protection import Budgets
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit
from oracle.build import taint
from oracle.nodes import JsonObject
from oracle.selectors import GPU
from scheduler.laws import fleet as fleets
from scheduler.laws.fleet import APPS, GPU_RESOURCE, SHARED_CLAIMS, Fleet
from scheduler.laws.judge import misplaced, unreachable, wrong_devices
from scheduler.laws.watches import KINDS, Watches

BINDING_TIMEOUT_S = 600.0
NAMESPACE = fleets.NAMESPACES[0]
_LONGEST_SETTLING = 500
RULE: JsonObject = {
    "metadata": {"name": "rule"},
    "spec": {"deviceSelector": {"driver": GPU}, "taint": taint("health", "bad", "NoSchedule")},
}


class _Binder:
    """Stands where the binder stands: hears of pods that are gone while their devices are being made ready."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def claim_changed(self, claim: ResourceClaim) -> None:
        """Moves say when a driver has made up its mind."""

    def pod_gone(self, uid: str) -> None:
        self._play.stop_waiting(uid)


class Play:
    """One cluster, from its first node to its last pod."""

    def __init__(self, fleet: Fleet) -> None:
        self.now = 1_000_000.0
        self.queue = Queue()
        self.state = ClusterState(Features(), self.queue.wake)
        self.nominations = Nominations(self.state)
        self.cycle = Cycle(
            self.state,
            self.queue,
            lambda: self.now,
            policy=Policy.BEST,
            binding_timeout_s=BINDING_TIMEOUT_S,
            may_preempt=self._may_ask,
            nominations=self.nominations,
            rng=random.Random(0),
        )
        self.fleet = fleet
        self.version = 0
        self.namespaces: dict[str, JsonObject] = {}
        self.nodes: dict[str, JsonObject] = {}
        self.slices: dict[str, JsonObject] = {}
        self.classes: dict[str, JsonObject] = {}
        self.rules: dict[str, JsonObject] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.pods: dict[str, Pod] = {}
        self.entries: dict[str, QueuedUnit] = {}
        """Of pods that have been decided about, by uid."""
        self.refused: list[Refused] = []
        """Everything that was ever refused."""
        self.under_way: list[list[Placement]] = []
        self.unready: list[Placement] = []
        """Pods whose claims are written, and whose devices their drivers have still to make ready."""
        self.freeing: list[ResourceClaim] = []
        """Claims that are to give back devices in the wrong place."""
        self.asked: list[tuple[Pod, tuple[Pod, ...]]] = []
        """Who had others asked to go, and whom."""
        self.watches = Watches()
        self._follow()
        self._set_up()

    def _follow(self) -> None:
        handlers = Handlers(self.watches)  # type: ignore[arg-type]
        self._follower = Follower(
            handlers,
            self.state,
            self.queue,
            _Binder(self),  # type: ignore[arg-type]
            frozenset({"default-scheduler"}),
            lambda: None,
            self.nominations,
            RoomKeeper(self.nominations, lambda: 0.0),
            AdmittedRoom(self.state, self.nominations),
        )
        occupants = Occupants(handlers, self.state, self.nominations.expects_to_go)
        budgets = Budgets(self.watches.informer(DISRUPTION_BUDGETS).cache)
        placer = Placer(self.state, Policy.BEST)
        reaching = Reaching(self.state, LiveShares(self.state))
        self._preemptor = Preemptor(
            self.state, placer, self.nominations, occupants, budgets, reaching
        )
        self._freeing = Freeing(None, self.state)  # type: ignore[arg-type]
        self._follower.follow(lambda uid: any(p.uid == uid for p in self._decided()))

    def _may_ask(self, pod: Pod) -> bool:
        return self._preemptor.may_preempt(pod)

    def _decided(self) -> list[Placement]:
        """Decisions whose pods do not have their nodes yet."""
        return [*(p for group in self.under_way for p in group), *self.unready]

    def _set_up(self) -> None:
        for name in fleets.NAMESPACES:
            self.put_namespace({"metadata": {"name": name}})
        for node in self.fleet.nodes:
            self.put_node(node)
        for item in self.fleet.classes:
            self.put_class(item)
        for item in self.fleet.slices:
            self.put_slice(item)
        for name, item in zip(SHARED_CLAIMS, self.fleet.shared_claims, strict=True):
            self._make_claim(name, item, [])

    # The server.

    def put_namespace(self, namespace: JsonObject) -> None:
        self.namespaces[namespace["metadata"]["name"]] = namespace
        self._show(NAMESPACES, Namespace, namespace)

    def put_node(self, node: JsonObject) -> None:
        self.nodes[node["metadata"]["name"]] = node
        self._show(NODES, Node, node)

    def put_class(self, item: JsonObject) -> None:
        self.classes[item["metadata"]["name"]] = item
        self._show(DEVICE_CLASSES, DeviceClass, item)

    def put_slice(self, item: JsonObject) -> None:
        self.slices[item["metadata"]["name"]] = item
        self._show(RESOURCE_SLICES, ResourceSlice, item)

    def put_rule(self, rule: JsonObject) -> None:
        self.rules[rule["metadata"]["name"]] = rule
        self._show(DEVICE_TAINT_RULES, DeviceTaintRule, rule)

    def _show(self, resource: Resource[Any], kind: type[Any], value: JsonObject) -> None:
        self.watches.push(resource, Notice("MODIFIED", convert(kind, value)), value)

    def _take(self, resource: Resource[Any], kind: type[Any], value: JsonObject) -> None:
        self.watches.push(resource, Notice("DELETED", convert(kind, value)))

    def _put_claim(self, claim: ResourceClaim) -> ResourceClaim:
        self.version += 1
        metadata = msgspec.structs.replace(claim.metadata, resource_version=str(self.version))
        claim = msgspec.structs.replace(claim, metadata=metadata)
        self.claims[claim.metadata.name] = claim
        self.watches.push(RESOURCE_CLAIMS, Notice("MODIFIED", claim))
        return claim

    def _make_claim(self, name: str, item: JsonObject, owners: list[JsonObject]) -> None:
        self.version += 1
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"claim-{self.version}",
            "ownerReferences": owners,
        }
        self._put_claim(convert(ResourceClaim, {"metadata": metadata, "spec": item["spec"]}))

    def replace_claim(self, which: int) -> None:
        """A claim goes, and another of its name asks for what some claim of the fleet asks for."""
        asked = [*self.fleet.shared_claims, *(c for k in self.fleet.kinds for c in k.own_claims)]
        if self.claims and asked:
            name = list(self.claims)[which % len(self.claims)]
            self._remove_claim(name)
            self._make_claim(name, asked[which // 2 % len(asked)], [])

    def _remove_claim(self, name: str) -> None:
        self.watches.push(RESOURCE_CLAIMS, Notice("DELETED", self.claims.pop(name)))

    def _put_pod(self, pod: Pod) -> None:
        self.pods[pod.metadata.name] = pod
        self.watches.push(PODS, Notice("MODIFIED", pod))

    # Moves.

    def create_pod(self, which: int) -> None:
        wishes = self.fleet.kinds[which % len(self.fleet.kinds)]
        self.version += 1
        name, uid = f"pod-{self.version}", f"uid-{self.version}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        entries, statuses = [], []
        for number, item in enumerate(wishes.own_claims):
            claim = f"{name}-own-{number}"
            self._make_claim(claim, item, [owner])
            entries.append({"name": f"own-{number}", "resourceClaimTemplateName": "t"})
            statuses.append({"name": f"own-{number}", "resourceClaimName": claim})
        entries += [{"name": each, "resourceClaimName": each} for each in wishes.shared_claims]
        requests = {"cpu": str(wishes.cpu)} if wishes.cpu else {}
        if wishes.gpus:
            requests[GPU_RESOURCE] = str(wishes.gpus)
        spec: JsonObject = {
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            "resourceClaims": entries,
            "nodeSelector": {"zone": wishes.zone} if wishes.zone else {},
            "tolerations": [{"key": "lease", "operator": "Exists"}] if wishes.tolerates else [],
            "priority": wishes.priority,
            **wishes.near,
        }
        metadata: JsonObject = {"name": name, "namespace": wishes.namespace, "uid": uid}
        metadata["labels"] = {"app": wishes.app} if wishes.app else {}
        status = {"resourceClaimStatuses": statuses}
        self._put_pod(convert(Pod, {"metadata": metadata, "spec": spec, "status": status}))

    def place_by_hand(self, which: int) -> None:
        """A small pod is created that has its node from the beginning."""
        self.version += 1
        node = self.fleet.nodes[which % len(self.fleet.nodes)]["metadata"]["name"]
        metadata = {
            "name": f"pod-{self.version}",
            "uid": f"uid-{self.version}",
            "namespace": fleets.NAMESPACES[which // 2 % 2],
            "labels": {"app": APPS[which // 4 % 2]},
        }
        self._put_pod(convert(Pod, {"metadata": metadata, "spec": {"nodeName": node}}))

    def relabel_pod(self, which: int) -> None:
        """A pod that waits or runs gets the other label."""
        if self.pods:
            pod = self.pods[list(self.pods)[which % len(self.pods)]]
            app = APPS[pod.metadata.labels.get("app") == APPS[0]]
            metadata = msgspec.structs.replace(pod.metadata, labels={"app": app})
            self._put_pod(msgspec.structs.replace(pod, metadata=metadata))

    def shrink_pod(self, which: int) -> None:
        """A pod that waits or runs asks for nothing any more."""
        if self.pods:
            pod = self.pods[list(self.pods)[which % len(self.pods)]]
            spec = msgspec.structs.replace(pod.spec, containers=())
            self._put_pod(msgspec.structs.replace(pod, spec=spec))

    def label_namespace(self, which: int) -> None:
        """A namespace gets a label or loses it."""
        name = fleets.NAMESPACES[which % 2]
        labels = {} if self.namespaces[name]["metadata"].get("labels") else {"team": "t"}
        self.put_namespace({"metadata": {"name": name, "labels": labels}})

    def remove_pod(self, which: int) -> None:
        """A pod goes, and its claims are given back as the controller gives them back."""
        if self.pods:
            self._end(self.pods[list(self.pods)[which % len(self.pods)]])
            self.release()

    def let_go(self, which: int) -> None:
        """A pod that was asked to go is gone; its claims are not yet given back."""
        leaving = [pod for pod in self.pods.values() if pod.metadata.deletion_timestamp]
        if leaving:
            self._end(leaving[which % len(leaving)])

    def release(self, _: int = 0) -> None:
        """Claims whose users are gone are given back."""
        alive = {pod.metadata.uid for pod in self.pods.values()}
        for name, claim in tuple(self.claims.items()):
            owners = claim.metadata.owner_references
            if owners and all(owner.uid not in alive for owner in owners):
                self._remove_claim(name)
                continue
            users = claim.status.reserved_for
            kept = tuple(user for user in users if user.uid in alive)
            if kept == users:
                continue
            status = msgspec.structs.replace(claim.status, reserved_for=kept)
            self._put_claim(
                msgspec.structs.replace(claim, status=status if kept else ResourceClaimStatus())
            )

    def _end(self, pod: Pod) -> None:
        del self.pods[pod.metadata.name]
        self.watches.push(PODS, Notice("DELETED", pod))

    def _ask_to_go(self, victims: tuple[Pod, ...]) -> None:
        for victim in victims:
            pod = self.pods.get(victim.metadata.name)
            if pod is not None:
                deadline = timestamp_at(self.now + 30)
                metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=deadline)
                self._put_pod(msgspec.structs.replace(pod, metadata=metadata))

    def switch_node(self, which: int) -> None:
        """A node goes or comes back."""
        node = self.fleet.nodes[which % len(self.fleet.nodes)]
        if self.nodes.pop(node["metadata"]["name"], None) is None:
            self.put_node(node)
        else:
            self._take(NODES, Node, node)

    def cordon_node(self, which: int) -> None:
        node = deepcopy(self.fleet.nodes[which % len(self.fleet.nodes)])
        current = self.nodes.get(node["metadata"]["name"])
        if current is not None:
            if not current["spec"].get("unschedulable"):
                node["spec"]["unschedulable"] = True
            else:
                node["spec"].pop("unschedulable", None)
            self.put_node(node)

    def switch_slice(self, which: int) -> None:
        """A slice goes or comes back."""
        item = self.fleet.slices[which % len(self.fleet.slices)]
        if self.slices.pop(item["metadata"]["name"], None) is None:
            self.put_slice(item)
        else:
            self._take(RESOURCE_SLICES, ResourceSlice, item)

    def change_slice(self, which: int) -> None:
        """A slice loses a device, or its first device gets a taint, or it is again as it was."""
        item = deepcopy(self.fleet.slices[which % len(self.fleet.slices)])
        devices = item["spec"].get("devices")
        if devices and which % 3 == 0:
            devices.pop()
        elif devices and which % 3 == 1:
            devices[0]["taints"] = [taint("health", "bad", "NoSchedule")]
        self.put_slice(item)

    def switch_class(self, which: int) -> None:
        item = self.fleet.classes[which % len(self.fleet.classes)]
        if self.classes.pop(item["metadata"]["name"], None) is None:
            self.put_class(item)
        else:
            self._take(DEVICE_CLASSES, DeviceClass, item)

    def switch_rule(self, _: int) -> None:
        if self.rules.pop("rule", None) is None:
            self.put_rule(RULE)
        else:
            self._take(DEVICE_TAINT_RULES, DeviceTaintRule, RULE)

    def restore(self) -> None:
        """Hardware, classes and nodes are as they were at first, and no rule is left."""
        for node in self.fleet.nodes:
            self.put_node(node)
        for item in self.fleet.classes:
            self.put_class(item)
        for item in self.fleet.slices:
            self.put_slice(item)
        if self.rules:
            self.switch_rule(0)

    def deliver(self, which: int) -> None:
        self.watches.deliver(KINDS[which % len(KINDS)], 1 + which % 4)

    def deliver_all(self, _: int = 0) -> None:
        for kind in KINDS:
            self.watches.deliver(kind, 1_000_000)

    def decide(self, which: int) -> None:
        """A round of the scheduler; each decision is judged as it is made."""
        decided = self.cycle.decide(1 + which % 8)
        self.refused += decided.refused
        for refused in decided.refused:
            assert "internal error" not in _message(refused), refused
            if isinstance(refused.why, Unfinished) and refused.why.rest is not None:
                refused.why.rest()
                self.queue.wake_pods((refused.entry.key,))
            if isinstance(refused.why, NoNode):
                movable = self._freeing.movable(refused.why.demand, refused.why.not_found)
                if movable is None:
                    self._preempt(refused.entry, refused.why)
                else:
                    self.freeing.append(movable)
        self.entries.update((entry.key, entry) for entry, _ in decided.placed)
        groups = _sharing(decided.placements)
        before = self._decided()
        for number, placement in enumerate(decided.placements):
            self._judge(placement, [*before, *decided.placements[:number]])
        self.under_way += groups

    def _preempt(self, entry: QueuedUnit, why: NoNode) -> None:
        decision = completed(self._preemptor.decide(why.demand, why.not_found, self.now))
        if decision is not None and decision.nominations:
            self.cycle.retrying.awaits_others(entry, None)
            if decision.victims:
                self.asked.append((decision.pods[0], decision.victims))
                self._ask_to_go(decision.victims)

    def write(self, which: int) -> None:
        """Decisions that belong together reach the server."""
        if not self.under_way:
            return
        group = self.under_way.pop(which % len(self.under_way))
        if all(self._can_write(placement) for placement in group):
            self._confirm(group)
        else:
            for placement in group:
                self._undo(placement)

    def fail_write(self, which: int) -> None:
        if self.under_way:
            for placement in self.under_way.pop(which % len(self.under_way)):
                self._undo(placement)

    def free(self, which: int) -> None:
        """A claim gives back its devices, unless somebody has changed it meanwhile."""
        if not self.freeing:
            return
        claim = self.freeing.pop(which % len(self.freeing))
        known, current = self.state.known_claim(claim), self.claims.get(claim.metadata.name)
        if known is None or current is None or known.status != claim.status:
            return
        if known.metadata.resource_version == current.metadata.resource_version:
            emptied = msgspec.structs.replace(known, status=ResourceClaimStatus())
            self.state.confirm_claim(self._put_claim(emptied))

    def make_ready(self, which: int) -> None:
        """The driver says yes, and the pod gets its node."""
        self._hear_of_devices(which, "Ready")

    def fail_device(self, which: int) -> None:
        """The driver says no, and the pod is taken off its claims; the devices stay with them."""
        self._hear_of_devices(which, "Failed")

    def _hear_of_devices(self, which: int, condition: str) -> None:
        if not self.unready:
            return
        placement = self.unready.pop(which % len(self.unready))
        uid = placement.uid
        for name in named_claims(placement.pod):
            claim = self.claims.get(name)
            if claim is None or claim.status.allocation is None:
                continue
            said = _said_of(claim, condition)
            kept = claim.status.reserved_for
            if condition == "Failed":
                kept = tuple(user for user in kept if user.uid != uid)
            status = msgspec.structs.replace(claim.status, devices=said, reserved_for=kept)
            self.state.confirm_claim(self._put_claim(msgspec.structs.replace(claim, status=status)))
        if condition == "Ready" and self._is_pending(placement.pod):
            self._bind(placement)
        else:
            self._undo(placement)

    def stop_waiting(self, uid: str) -> None:
        """A pod is gone, so nobody waits for its devices."""
        for placement in [each for each in self.unready if each.uid == uid]:
            self.unready.remove(placement)
            self._undo(placement)

    def _is_pending(self, pod: Pod) -> bool:
        current = self.pods.get(pod.metadata.name)
        return current is not None and not current.spec.node_name

    def settle(self) -> None:
        """Until nothing happens any more by itself."""
        for _ in range(_LONGEST_SETTLING):
            while any(pod.metadata.deletion_timestamp for pod in self.pods.values()):
                self.let_go(0)
            self.release()
            self.deliver_all()
            while self.under_way or self.freeing:
                self.write(0)
                self.free(0)
            while self.unready:
                self.make_ready(0)
            self.deliver_all()
            due = self.queue.next_due()
            if due is not None:
                self.now = max(self.now, due)
            if not self.queue.is_any_due(self.now):
                return
            self.decide(7)
        raise AssertionError("the scheduler does not come to rest")

    def pass_time(self, which: int) -> None:
        self.now += which % 30

    def _can_write(self, placement: Placement) -> bool:
        if not self._is_pending(placement.pod):
            return False
        for claim in placement.claims:
            known = self.state.known_claim(claim)
            current = self.claims.get(claim.metadata.name)
            if (
                known is None
                or current is None
                or current.metadata.resource_version != known.metadata.resource_version
            ):
                return False
        return True

    def _confirm(self, group: list[Placement]) -> None:
        wanted = {claim.metadata.uid: claim for placement in group for claim in placement.claims}
        written = [self._put_claim(self.state.latest_claim(claim)) for claim in wanted.values()]
        for placement in group:
            for made in placement.made:
                uid = f"uid-of-{made.claim.metadata.name}"
                metadata = msgspec.structs.replace(made.claim.metadata, uid=uid)
                claim = self._put_claim(msgspec.structs.replace(made.claim, metadata=metadata))
                self.state.adopt(made.holder, claim)
                written.append(claim)
        for claim in written:
            self.state.confirm_claim(claim)
        self.cycle.retrying.settled(written)
        self._nothing_is_held_twice()
        by_key = {(c.metadata.namespace, c.metadata.name): c for c in written}
        for placement in (each.with_claims_made(by_key) for each in group):
            if placement.waits:
                self.unready.append(placement)
            else:
                self._bind(placement)

    def _bind(self, placement: Placement) -> None:
        self.nominations.withdraw(placement.uid)
        pod = self.pods[placement.pod.metadata.name]
        spec = msgspec.structs.replace(pod.spec, node_name=placement.node)
        self._put_pod(msgspec.structs.replace(pod, spec=spec))

    def _undo(self, placement: Placement) -> None:
        take_back(self.state, placement)
        self.cycle.retrying.settled(placement.claims)
        if self._follower.waits(placement.uid):
            self.nominations.renew(
                placement.uid, placement.node, placement.needs, placement.devices
            )
            self.queue.hold_back(self.entries[placement.uid], self.now)

    # Judging.

    def _judge(self, placement: Placement, before: list[Placement]) -> None:
        """Check a decision against what the scheduler had been shown, and against all that is given away."""
        values, pod = self.watches.values, placement.pod
        label = f"{pod.metadata.name} on {placement.node}"
        node = values["nodes"].get(placement.node)
        others = [p for p in self.pods.values() if p.spec.node_name == placement.node]
        others += [
            p.pod for p in before if p.node == placement.node and p.pod.metadata.name in self.pods
        ]
        why = misplaced(node, pod, others, by_devices=bool(placement.made))
        assert not why, f"{label}: {why}"
        assert node is not None
        for claim in placement.held:
            assert not unreachable(claim, node), f"{label}: {claim.metadata.name} is elsewhere"
        held = {claim.metadata.uid for claim in placement.held}
        new = [claim for claim in placement.claims if claim.metadata.uid not in held]
        new += [made.claim for made in placement.made]
        wrong = wrong_devices(
            node,
            new,
            self._holders(before),
            values["resourceslices"].values(),
            values["deviceclasses"].values(),
            values["devicetaintrules"].values(),
        )
        assert not wrong, f"{label}: {wrong}"

    def _holders(self, before: list[Placement]) -> list[ResourceClaim]:
        """Claims that have devices, on the server or by decisions that are not yet written."""
        found = {claim.metadata.uid: claim for claim in self.claims.values()}
        for placement in before:
            found |= {
                claim.metadata.uid: claim
                for claim in placement.claims
                if claim.metadata.uid in found
            }
            found |= {made.claim.metadata.name: made.claim for made in placement.made}
        return list(found.values())

    def _nothing_is_held_twice(self) -> None:
        held: dict[tuple[str, str, str], str] = {}
        for claim in self.claims.values():
            allocation = claim.status.allocation
            for entry in allocation.devices.results if allocation else ():
                if entry.share_id is None and not entry.admin_access:
                    key = (entry.driver, entry.pool, entry.device)
                    other = held.setdefault(key, claim.metadata.name)
                    assert other == claim.metadata.name, f"{key}: {other}, {claim.metadata.name}"


def _message(refused: Refused) -> str:
    """Why a pod waits, in as many parts as it takes."""
    while True:
        try:
            return refused.message
        except UnfinishedError:
            continue


def _said_of(claim: ResourceClaim, condition: str) -> tuple[AllocatedDeviceStatus, ...]:
    """What a driver writes about the devices of a claim."""
    allocation = claim.status.allocation
    said = [{"type": condition, "status": "True", "reason": "Said", "message": ""}]
    return tuple(
        convert(
            AllocatedDeviceStatus,
            {"driver": r.driver, "pool": r.pool, "device": r.device, "conditions": said},
        )
        for r in (allocation.devices.results if allocation else ())
    )

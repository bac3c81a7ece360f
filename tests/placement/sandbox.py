"""A small cluster to which anything can happen, in trials and outside of them."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import CustomObject, KaiPodGroup, KaiTopology, PluginPodGroup
from drayman.api.jobs import Job
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.inventory.features import Features
from drayman.inventory.ledger import holder_of
from drayman.placement.claims import EXTENDED_CLAIM
from drayman.placement.demand import Demand, Demands
from drayman.placement.fit import PodNeeds, VolumeChoice, volume_check
from drayman.placement.hints import Change
from drayman.placement.placing import Found, NotFound, Placer
from drayman.placement.prices import COST, PRICE, SPOT
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from oracle.build import (
    device,
    device_class,
    exactly,
    label_selector,
    partitioned,
    piece,
    shared,
    taint,
)
from placement.fit.storage import HOST, ZONE, capacity, claim, driver, storage_class, volume

DRIVER = "gpu.example.com"
HOSTS = ("n0", "n1", "n2", "n3")
EXTENDED = "example.com/gpu"
NAMESPACE = "default"
CustomT = TypeVar("CustomT", bound=CustomObject)


def make_node(number: int, *, variant: int = 0) -> Node:
    name = HOSTS[number % len(HOSTS)]
    zone = f"z{(number + (variant == 1)) % 2}"
    spec: dict[str, Any] = {}
    if variant == 2:
        spec["taints"] = [taint("t", effect="PreferNoSchedule"), taint("u")]
    if variant == 3:
        spec["unschedulable"] = True
    allocatable = {"cpu": "2" if variant == 4 else "4", "memory": "8Gi", "pods": "10"}
    terms = {1: {PRICE: "3"}, 4: {PRICE: "1", SPOT: "true"}}.get(variant, {})
    return convert(
        Node,
        {
            "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, **terms}},
            "spec": spec,
            "status": {"allocatable": allocatable},
        },
    )


def make_slices(number: int, *, variant: int = 0) -> list[ResourceSlice]:
    """The slices of one pool: of a node's own, of a fabric that several nodes reach, or of devices that share counters."""
    host = HOSTS[number % len(HOSTS)]
    kind = number % 6
    taints = [taint("broken")] if variant == 1 else None
    if kind == 4:
        names = ["f0", "f1"] if variant != 2 else ["f0"]
        scope = {"nodeSelector": label_selector(ZONE, "z0" if variant != 3 else "z1")}
        made = [
            piece([device(n, taints=taints) for n in names], pool="fabric", name="fabric", **scope)
        ]
    elif kind == 5:
        parts = [device(f"p{n}", spends={"s": {"c": 1 + n}}, taints=taints) for n in range(2)]
        made = partitioned(parts, {"s": {"c": 2 + (variant == 2)}}, pool="parts", nodeName="n0")
    else:
        devices = [device("d0", taints=taints), device("d1")]
        if variant != 2:
            devices.append(shared("s0", {"memory": {"value": "4"}}))
        if variant == 3:
            mapping = {"cpu": {"allocationMultiplier": "1"}}
            devices.append(device("m0", nodeAllocatableResourceMappings=mapping))
        made = [piece(devices, pool=host, name=host, nodeName=host)]
    return [convert(ResourceSlice, each) for each in made]


def make_class(number: int, *, variant: int = 0) -> DeviceClass:
    name = ("gpu", "big", "late")[number % 3]
    value = device_class(name)
    if variant == 1:
        value = device_class(name, 'device.driver == "other.example.com"')
    if bool(number % 3) != (variant == 2):
        value["spec"]["extendedResourceName"] = EXTENDED
    return convert(DeviceClass, value)


def make_rule(number: int) -> DeviceTaintRule:
    selector = {"driver": DRIVER, "pool": HOSTS[number % len(HOSTS)]}
    spec = {"deviceSelector": selector, "taint": taint("ruled")}
    return convert(DeviceTaintRule, {"metadata": {"name": f"rule-{number % 2}"}, "spec": spec})


def make_claim(number: int, version: int, *, variant: int = 0) -> ResourceClaim:
    """A claim that has a device, or none."""
    name = f"c{number % 4}"
    host = HOSTS[(number + variant) % 3]
    result: dict[str, Any] = {"request": "req", "driver": DRIVER, "pool": host, "device": "d0"}
    if variant == 2:
        result |= {"pool": "fabric", "device": "f0"}
    if variant == 3:
        amount = {"consumedCapacity": {"memory": "2"}, "shareID": f"share-{number % 4}"}
        result |= {"device": "s0", **amount}
    users = [{"resource": "pods", "name": f"p{n}", "uid": f"p{n}"} for n in (number % 4, 5)]
    status: dict[str, Any] = {}
    if variant != 4:
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "q5", "uid": "q5", "controller": True}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": name,
        "resourceVersion": str(version),
        "ownerReferences": [owner],
    }
    if number % 4 == 3:
        metadata["annotations"] = {EXTENDED_CLAIM: "true"}
    spec = {"devices": {"requests": [exactly()]}}
    return convert(ResourceClaim, {"metadata": metadata, "spec": spec, "status": status})


_ALIKE = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
_OF_A_TEAM = {**_ALIKE, "namespaceSelector": {"matchLabels": {"team": "1"}}}
_RULES: tuple[dict[str, Any], ...] = (
    {},
    {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_OF_A_TEAM]}
        }
    },
    {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **_ALIKE}]},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-0"}}]},
    {"schedulingGroup": {"podGroupName": "g"}},
)


def make_pod(name: str, rule: int, node: str = "", *, variant: int = 0) -> Pod:
    requests = {"cpu": "1"}
    if name == "q5":
        requests[EXTENDED] = "1"
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
    if rule == 0:
        container["ports"] = [{"containerPort": 80, "hostPort": 80 + variant % 2}]
    spec = {"nodeName": node, "containers": [container], **_RULES[rule % len(_RULES)]}
    labels = {"app": "x" if variant < 3 else "y"}
    said = {"q0": {COST: "low"}, "q2": {COST: "low", SPOT: "true"}, "q4": {SPOT: "true"}}
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": name,
        "labels": labels,
        "annotations": said.get(name, {}),
    }
    return convert(Pod, {"metadata": metadata, "spec": spec})


_MEMBERS: tuple[dict[str, Any], ...] = (
    {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    {"annotations": {"pod-group-name": "g"}},
    {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    },
    {
        "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
        ]
    },
    {"annotations": {"drayman.dev/gang": "2", "drayman.dev/gang-name": "g"}},
)


def make_member(number: int, *, variant: int = 0) -> Pod:
    name = f"gang-{number % 5}"
    spec: dict[str, Any] = {"containers": [{"name": "c"}]}
    if variant % 4 > 1:
        spec["nodeName"] = HOSTS[number % 4]
    phase = "Succeeded" if variant % 4 == 3 else "Pending"
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, **_MEMBERS[number % 5]}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def make_gang(type_: type[CustomT], spec: dict[str, Any]) -> CustomT:
    return convert(type_, {"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": spec})


def make_job(number: int) -> Job:
    stated = {"drayman.dev/gang": str(number % 3)} if number % 3 else {}
    metadata = {"name": "j", "namespace": NAMESPACE, "uid": "j", "annotations": stated}
    return convert(Job, {"metadata": metadata})


def make_topology(number: int) -> KaiTopology:
    levels = [{"nodeLabel": f"level-{n}"} for n in range(number % 3)]
    return convert(KaiTopology, {"metadata": {"name": "t"}, "spec": {"levels": levels}})


def wanted(name: str, count: int, cls: str = "gpu") -> ResourceClaim:
    spec = {"devices": {"requests": [exactly(count=count, cls=cls)]}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return convert(ResourceClaim, {"metadata": metadata, "spec": spec})


QUESTIONS: tuple[tuple[Pod, tuple[ResourceClaim, ...]], ...] = (
    (make_pod("q0", 0), (wanted("w0", 1),)),
    (make_pod("q1", 4), (wanted("w1", 2), wanted("v1", 1, "big"))),
    (make_pod("q2", 1), ()),
    (make_pod("q3", 2), (wanted("w3", 1),)),
    (make_pod("q4", 3), ()),
    (make_pod("q5", 0), ()),
)


class Sandbox:
    """The cluster, those who keep answers about it, and the trials that are under way.

    The moves take a number, from which everything about them follows: the same moves have the same effect on two sandboxes.
    """

    def __init__(self, more_nodes: int = 0) -> None:
        self.wakes: list[Change] = []
        self.state = ClusterState(Features(), self.wakes.append)
        self.kept: dict[Hashable, Placer] = {}
        self.trials: list[Trial] = []
        self._undoing: list[ExitStack] = []
        self._versions = 0
        self._demands = Demands(self.state, 600.0)
        for number in range(3):
            self.state.set_node(make_node(number))
        for number in (0, 1, 5):
            for each in make_slices(number):
                self.state.set_slice(each)
        for number in range(more_nodes):
            value = {"metadata": {"name": f"more-{number}", "labels": {ZONE: "z9"}}}
            self.state.set_node(convert(Node, value))
        for number in range(2):
            self.state.set_class(make_class(number))
            self.set_storage(number)
            self.set_disk(number)
        self.set_claim(0)
        self.set_claim(1)
        self.assume_claim(1)
        self.set_group(0)
        for number in (0, 2, 3, 4):  # none of them keeps others away, or no answers would be kept
            self.place_pod(number)
        for number in range(5):  # what is kept of pods with such labels is there from the start
            self.state.set_pod(make_member(number, variant=2))
            self.state.delete_pod(make_member(number))

    # Questions.

    def demand(self, number: int) -> Demand:
        pod, claims = QUESTIONS[number]
        return self._demands.of(pod, claims, 0.0)

    def answer(self, number: int) -> Found | NotFound:
        """What somebody says who keeps answers."""
        demand = self.demand(number)
        placer = self.kept.get(demand.key)
        if placer is None:
            placer = self.kept[demand.key] = Placer(self.state, Policy.BEST)
        return placer.find(demand)

    def fresh_answer(self, number: int) -> Found | NotFound:
        return Placer(self.state, Policy.BEST).find(self.demand(number))

    # Trials.

    def begin(self, _: int) -> None:
        undoing = ExitStack()
        self.trials.append(undoing.enter_context(self.state.trial()))
        undoing.callback(setattr, self, "_versions", self._versions)
        self._undoing.append(undoing)

    def end(self) -> None:
        self.trials.pop()
        self._undoing.pop().close()

    def evict(self, number: int) -> None:
        uid = f"p{number % 7}"
        if self.trials and self.state.node_of(uid) is not None:
            claims = [c for c in self._held() if uid in {u.uid for u in c.status.reserved_for}]
            self.trials[number % len(self.trials)].evict(uid, claims)

    def restore(self, number: int) -> None:
        uid = f"p{number % 7}"
        for trial in self.trials[-1 - number % 2 :]:
            if self.state.node_of(uid) is None:
                with suppress(KeyError):
                    trial.restore(uid)

    def free(self, number: int) -> None:
        held = self._held()
        if self.trials and held:
            self.trials[-1].free(held[number % len(held)])

    def hold(self, number: int) -> None:
        for trial in self.trials[-1:]:
            for each in trial.freed[: number % 3]:
                if not self.state.ledger.holdings(holder_of(each)):
                    trial.hold(each)

    def _held(self) -> list[ResourceClaim]:
        return sorted(self.state.allocated_claims(), key=lambda each: each.metadata.name)

    # Decisions.

    def assume(self, number: int) -> None:
        """A pod gets the node and the devices that are found for it."""
        number %= len(QUESTIONS)
        demand, found = self.demand(number), self.fresh_answer(number)
        pod = demand.pod
        if not isinstance(found, Found) or self.state.node_of(pod.metadata.uid) is not None:
            return
        if any(self.state.ledger.holdings(holder_of(c)) for c in found.wanted.claims):
            return
        if found.plan is not None:
            self.state.assume_plan(found.plan)
            for item in found.plan.claims:
                key = (NAMESPACE, item.claim.metadata.name)
                self.state.assume_made(key, holder_of(item.claim))
        if found.volumes is not None:
            self.state.volumes.take(found.volumes, found.node.facts.name)
        self.state.assume_pod(demand.needs, found.node.facts.name)
        self.state.gangs.place(pod, found.node.facts.name)

    def settle(self, number: int) -> None:
        """A pod does not get its node after all, and its claims are not made."""
        pod, claims = QUESTIONS[number % len(QUESTIONS)]
        self.state.remove_pod(pod.metadata.uid)
        for each in claims:
            self.state.forget_made((NAMESPACE, each.metadata.name), holder_of(each))

    def assume_claim(self, number: int) -> None:
        self.state.assume_claim(make_claim(number, 0, variant=number % 5))

    def confirm_claim(self, number: int) -> None:
        self.state.confirm_claim(make_claim(number, self._version(), variant=number % 5))

    def forget_claim(self, number: int) -> None:
        self.state.forget_claim(make_claim(number, 0))

    def keep_room(self, number: int) -> None:
        needs = PodNeeds.of(make_pod(f"kept-{number % 2}", 0))
        if self.state.node_of(needs.uid) is None:
            allocation = make_claim(number, 0).status.allocation
            assert allocation is not None
            self.state.keep_room(needs, HOSTS[number % 4], (allocation,))

    def give_up_room(self, number: int) -> None:
        if self.state.node_of(f"kept-{number % 2}") is not None:
            self.state.give_up_room(f"kept-{number % 2}", 1)

    # Objects that come, change and go.

    def set_node(self, number: int) -> None:
        self.state.set_node(make_node(number, variant=number % 5))

    def remove_node(self, number: int) -> None:
        self.state.remove_node(HOSTS[number % len(HOSTS)])

    def set_slice(self, number: int) -> None:
        for each in make_slices(number, variant=number % 4):
            self.state.set_slice(each)

    def remove_slice(self, number: int) -> None:
        self.state.remove_slice(make_slices(number)[0])

    def set_class(self, number: int) -> None:
        self.state.set_class(make_class(number, variant=number // 3 % 3))

    def remove_class(self, number: int) -> None:
        self.state.remove_class(make_class(number))

    def set_rule(self, number: int) -> None:
        self.state.set_taint_rule(make_rule(number))

    def remove_rule(self, number: int) -> None:
        self.state.remove_taint_rule(make_rule(number))

    def set_claim(self, number: int) -> None:
        self.state.set_claim(make_claim(number, self._version(), variant=number % 5))

    def remove_claim(self, number: int) -> None:
        self.state.remove_claim(make_claim(number, 0))

    def set_template(self, number: int) -> None:
        metadata = {"name": f"t{number % 2}", "namespace": NAMESPACE, "uid": str(number)}
        self.state.set_template(convert(ResourceClaimTemplate, {"metadata": metadata}))

    def remove_template(self, number: int) -> None:
        metadata = {"name": f"t{number % 2}", "namespace": NAMESPACE}
        self.state.remove_template(convert(ResourceClaimTemplate, {"metadata": metadata}))

    def place_pod(self, number: int) -> None:
        rule, host = number % 7, HOSTS[number % 4]
        self.state.set_placed_pod(make_pod(f"p{number % 7}", rule, host, variant=number % 5))

    def remove_pod(self, number: int) -> None:
        self.state.remove_pod(f"p{number % 7}")

    def set_group(self, number: int) -> None:
        metadata = {"name": "g", "namespace": NAMESPACE, "uid": str(number)}
        self.state.gangs.set_group(convert(PodGroup, {"metadata": metadata}))
        self.state.gangs.place(make_pod(f"member-{number % 3}", 4), HOSTS[number % 4])

    def see_member(self, number: int) -> None:
        """A pod of a gang, in one of several dialects, is shown: without a node, with one, or after it has succeeded."""
        self.state.set_pod(make_member(number, variant=number // 5))

    def forget_member(self, number: int) -> None:
        self.state.delete_pod(make_member(number))

    def place_member(self, number: int) -> None:
        """A member that waits gets a node by decision."""
        pod = make_member(number)
        if self.state.node_of(pod.metadata.uid) is None:
            self.state.assume_pod(PodNeeds.of(pod), HOSTS[number % 4])
            self.state.gangs.place(pod, HOSTS[number % 4])

    def displace_member(self, number: int) -> None:
        self.state.remove_pod(f"gang-{number % 5}")

    def set_gang(self, number: int) -> None:
        gangs, topologies = self.state.gangs, self.state.topologies
        gangs.set_group(make_gang(PluginPodGroup, {"minMember": number % 3}))
        gangs.set_group(make_gang(KaiPodGroup, {"minMember": number % 4}))
        self.state.set_job(make_job(number))
        topologies.set(make_topology(number))

    def remove_gang(self, number: int) -> None:
        if number % 2:
            self.state.gangs.remove_group(make_gang(PluginPodGroup, {}))
            self.state.remove_job(make_job(0))
        else:
            self.state.gangs.remove_group(make_gang(KaiPodGroup, {}))
            self.state.topologies.remove(make_topology(0))

    def remove_group(self, _: int) -> None:
        metadata = {"name": "g", "namespace": NAMESPACE}
        self.state.gangs.remove_group(convert(PodGroup, {"metadata": metadata}))

    def set_namespace(self, number: int) -> None:
        metadata = {"name": NAMESPACE, "labels": {"team": str(number % 2)}}
        self.state.set_namespace(convert(Namespace, {"metadata": metadata}))

    def remove_namespace(self, _: int) -> None:
        self.state.remove_namespace(NAMESPACE)

    def set_disk(self, number: int) -> None:
        volumes, version = self.state.volumes, str(self._version())
        volumes.set_volume(volume(f"v{number % 3}", host=HOSTS[number % 4], version=version))
        volumes.set_claim(claim(f"data-{number % 2}", version=version))

    def remove_disk(self, number: int) -> None:
        volumes = self.state.volumes
        volumes.remove_volume(volume(f"v{number % 3}"))
        if number % 2:
            volumes.remove_claim(claim(f"data-{number % 2}"))

    def take_disk(self, number: int) -> None:
        needs = PodNeeds.of(QUESTIONS[4][0])
        node = self.state.nodes.get(HOSTS[number % 4])
        if node is not None:
            chosen = volume_check(needs, self.state.volumes).choose(node.facts)
            if isinstance(chosen, VolumeChoice):
                self.state.volumes.take(chosen, node.facts.name)

    def set_storage(self, number: int) -> None:
        volumes = self.state.volumes
        volumes.set_class(storage_class(("local", "fast")[number % 2]))
        volumes.set_driver(driver("ebs", tells_capacity=bool(number % 3)))
        volumes.set_capacity(capacity(f"capacity-{number % 2}", f"z{number % 2}"))

    def remove_storage(self, number: int) -> None:
        volumes = self.state.volumes
        volumes.remove_class(storage_class(("local", "fast")[number % 2]))
        volumes.remove_driver(driver("ebs"))
        volumes.remove_capacity(capacity(f"capacity-{number % 2}", "z0"))

    def _version(self) -> int:
        self._versions += 1
        return self._versions

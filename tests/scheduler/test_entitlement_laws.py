"""The law of entitlement on random clusters with queues of KAI: a queue gets its share, and evictions come to an end."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.custom_groups import KaiPodGroup, KaiQueue
from drayman.api.times import timestamp_at
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.resources import PODS
from drayman.inventory.features import Features
from drayman.placement.decision.placements import Placement
from drayman.placement.joint.gangs import GangDecider
from drayman.placement.nominations import Nominations
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.state import ClusterState
from drayman.quota.shares.live import LiveShares
from drayman.scheduler.cycle import Cycle
from drayman.scheduler.giving_way import GivingWay
from drayman.scheduler.preempting import Preempted
from drayman.scheduler.queue import Queue
from drayman.scheduler.queue_turns import QueueTurns
from drayman.scheduler.unit import QueuedUnit

EXAMPLES = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 60
GPU = "example.com/gpu"
BEGIN = 1_800_000_000.0
MOST_ROUNDS = 200
NAMESPACE = "default"


@dataclass(frozen=True)
class Unit:
    """Pods of one queue that are alike: one on its own, or a gang that needs some of them."""

    name: str
    queue: str
    size: int
    pods: int = 1
    least: int = 0
    """0: the pods are on their own."""


@dataclass
class Cluster:
    """The parts of a scheduler that decide, and in place of the server what carries decisions out at once."""

    nodes: dict[str, int]
    quotas: dict[str, tuple[int, int]]
    """Of each queue: its quota, and its weight for what is left."""
    now: float = BEGIN
    unit_of: dict[str, Unit] = field(default_factory=dict)
    """By uid of each pod that exists."""
    node_of: dict[str, str] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.queue = Queue()
        self.state = ClusterState(Features(), self.queue.wake)
        self.nominations = Nominations(self.state)
        informers = Informers(None)  # type: ignore[arg-type]
        self.cache = informers.informer(PODS).cache
        self.shares = LiveShares(self.state)
        self.queue.arbiter = QueueTurns(self.state, self.shares)
        self.giving_way = GivingWay(
            self.state,
            self.nominations,
            self.queue,
            Handlers(informers),
            Policy.BEST,
            (lambda: self.now, lambda: self.now),
            self,
            self.shares,
        )
        self.cycle = Cycle(
            self.state,
            self.queue,
            lambda: self.now,
            wall_clock=lambda: self.now,
            policy=Policy.BEST,
            binding_timeout_s=600.0,
            may_preempt=self.giving_way.may_preempt,
            nominations=self.nominations,
            departures=self.giving_way.departures,
        )
        for name, size in self.nodes.items():
            allocatable = {GPU: str(size), "cpu": "64", "memory": "1Ti", "pods": "100"}
            node = {"metadata": {"name": name}, "status": {"allocatable": allocatable}}
            self.state.set_node(convert(Node, node))
        for name, (quota, weight) in self.quotas.items():
            gpu = {"quota": quota, "limit": -1, "overQuotaWeight": weight}
            metadata = {"name": name, "creationTimestamp": timestamp_at(BEGIN)}
            spec = {"resources": {"gpu": gpu}}
            self.state.set_queue(convert(KaiQueue, {"metadata": metadata, "spec": spec}))

    # Work comes and goes.

    def declare(self, unit: Unit) -> None:
        """The group of a gang."""
        if unit.least:
            metadata = {"name": unit.name, "namespace": NAMESPACE, "uid": unit.name}
            spec = {"minMember": unit.least, "queue": unit.queue}
            self.state.set_group(convert(KaiPodGroup, {"metadata": metadata, "spec": spec}))

    def add(self, unit: Unit, node: str = "") -> None:
        """A pod of a unit, on a node or waiting for one."""
        self.made += 1
        uid = f"{unit.name}-{self.made}"
        amounts = {"requests": {GPU: str(unit.size)}, "limits": {GPU: str(unit.size)}}
        metadata = {
            "name": uid,
            "namespace": NAMESPACE,
            "uid": uid,
            "labels": {"kai.scheduler/queue": unit.queue},
            "annotations": {"pod-group-name": unit.name} if unit.least else {},
            "creationTimestamp": timestamp_at(self.now - 3600 + self.made),
        }
        container = {"name": "main", "resources": amounts}
        pod = convert(Pod, {"metadata": metadata, "spec": {"containers": [container]}})
        self.unit_of[uid] = unit
        self.state.set_pod(pod)
        if node:
            self._bind(pod, node)
        else:
            gangs = self.state.gangs
            key = gangs.unit_of(pod)
            leaf = self.state.queues.leaf_of(uid)
            self.queue.add(pod, key, gangs.stated_priority(key), leaf)

    def _bind(self, pod: Pod, node: str) -> None:
        status = replace(pod.status, phase="Running", start_time=pod.metadata.creation_timestamp)
        bound = replace(pod, spec=replace(pod.spec, node_name=node), status=status)
        self.node_of[pod.metadata.uid] = node
        self.cache.put((NAMESPACE, pod.metadata.name), bound)
        self.state.set_pod(bound)

    def start(self, entry: QueuedUnit, placement: Placement) -> None:
        self._bind(placement.pod, placement.node)

    def evict(self, pod: Pod) -> None:
        """A pod goes at once, and another one like it comes."""
        uid = pod.metadata.uid
        unit = self.unit_of.pop(uid)
        del self.node_of[uid]
        self.cache.remove((NAMESPACE, pod.metadata.name))
        self.state.delete_pod(pod)
        self.evicted.append(uid)
        self.add(unit)

    def settle(self) -> None:
        """Decide until nothing is left to decide. There is an end to it."""
        for _ in range(MOST_ROUNDS):
            self.now += 1
            if not self.queue.is_any_due(self.now):
                due = self.queue.next_due()
                if due is None or due > self.now + 600:
                    return
                self.now = max(self.now, due)
            decisions = self.cycle.decide(64)
            for entry, placement in decisions.placed:
                self.start(entry, placement)
            for refused in decisions.refused:
                rest = self.giving_way.begin(refused)
                assert rest is None
        raise AssertionError(f"evictions without end: {self.evicted}")

    # What a scheduler has decisions carried out by.

    def deciding(self, now: float) -> GangDecider:
        return self.cycle.gangs.deciding(now)

    def reserved_before(self, entry: QueuedUnit) -> list[Reservation]:
        return []

    def preempted(self, decision: Preempted, now: float) -> None:
        for pod in decision.victims:
            self.evict(pod)

    def awaits_others(self, entry: QueuedUnit, until: float | None) -> None:
        self.cycle.retrying.awaits_others(entry, until)

    def put_off(self, uid: str) -> None:
        raise AssertionError(f"{uid} is to be tried again though nothing has changed")

    # What should come of it.

    def used(self, queue: str) -> int:
        return sum(
            self.unit_of[uid].size for uid in self.node_of if self.unit_of[uid].queue == queue
        )

    def has_room(self, unit: Unit, without: frozenset[str] = frozenset()) -> bool:
        """Whether all pods of a unit find room without some pods."""
        free = dict(self.nodes)
        for uid, node in self.node_of.items():
            if uid not in without:
                free[node] -= self.unit_of[uid].size
        return sum(each // unit.size for each in free.values()) >= unit.pods

    def can_start(self, unit: Unit) -> bool:
        """Whether there are pods that other queues owe, without which a unit has room and its queue stays within its share."""
        shares = self.shares.of_queues()
        wanted = self.used(unit.queue) + unit.size * unit.pods
        if wanted > shares[unit.queue]:
            return self.has_room(unit)
        bounds = {
            name: min(shares[name], quota) if wanted <= self.quotas[unit.queue][0] else shares[name]
            for name, (quota, _) in self.quotas.items()
        }
        others = [uid for uid in self.node_of if self.unit_of[uid].queue != unit.queue]
        return any(
            self.has_room(unit, frozenset(gone)) and self.are_owed(gone, bounds)
            for number in range(len(others) + 1)
            for gone in combinations(others, number)
        )

    def are_owed(self, gone: tuple[str, ...], bounds: dict[str, Any]) -> bool:
        """Whether queues with these bounds owe these pods, if the largest part goes last. Gangs keep their quorum, or go as a whole."""
        largest: dict[str, int] = {}
        for unit in {self.unit_of[uid] for uid in gone}:
            left = sum(self.unit_of[uid] == unit and uid not in gone for uid in self.node_of)
            if 0 < left < unit.least:
                return False
            part = unit.size * (unit.least if unit.least and not left else 1)
            largest[unit.queue] = max(largest.get(unit.queue, 0), part)
        for name, part in largest.items():
            owed = sum(self.unit_of[uid].size for uid in gone if self.unit_of[uid].queue == name)
            if self.used(name) - (owed - part) <= bounds[name]:
                return False
        return True


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Two or three nodes on which two queues run pods and gangs, some of which can shrink."""
    nodes = {f"n{number}": draw(st.integers(2, 6)) for number in range(draw(st.integers(2, 3)))}
    total = sum(nodes.values())
    own = draw(st.integers(1, total))
    first = draw(st.integers(0, total - own))
    weights = st.sampled_from([0, 1])
    quotas = {
        "b": (own, draw(weights)),
        "a": (first, draw(weights)),
        "c": (total - own - first, draw(weights)),
    }
    cluster = Cluster(nodes, quotas)
    free = dict(nodes)
    for number in range(draw(st.integers(3, 7))):
        size = draw(st.sampled_from([1, 1, 2, 3]))
        pods = draw(st.sampled_from([1, 1, 2, 3, 4]))
        least = draw(st.integers(1, pods)) if pods > 1 else 0
        owner = draw(st.sampled_from(["a", "c"] * 3 + ["b"]))
        places: list[str] = []
        for _ in range(pods):
            fitting = [name for name, left in free.items() if left >= size]
            if not fitting or len(cluster.node_of) + len(places) >= 10:
                break
            places.append(draw(st.sampled_from(fitting)))
            free[places[-1]] -= size
        if not places:
            continue
        if len(places) < pods:
            pods, least = len(places), min(least, len(places))
        unit = Unit(f"w{number}", owner, size, pods, least if pods > 1 else 0)
        cluster.declare(unit)
        for place in places:
            cluster.add(unit, place)
    return cluster


@settings(max_examples=EXAMPLES)
@given(clusters(), st.data())
def test_a_queue_gets_its_share_if_any_pods_that_others_owe_make_room(
    cluster: Cluster, data: st.DataObject
) -> None:
    """All sets of pods are compared. If none of those that queues owe makes room, all of them stay."""
    shapes = [(pods, size) for pods in (1, 2, 3) for size in range(1, 7)]
    left = cluster.quotas["b"][0] - cluster.used("b")
    shapes = [(pods, size) for pods, size in shapes if left / 2 <= pods * size <= left]
    if not shapes:
        return
    pods, size = data.draw(st.sampled_from(shapes))
    unit = Unit("entitled", "b", size, pods, pods if pods > 1 else 0)
    cluster.declare(unit)
    for _ in range(pods):
        cluster.add(unit)
    wanted = cluster.can_start(unit)
    running = len(cluster.node_of)
    cluster.settle()
    started = [uid for uid in cluster.node_of if cluster.unit_of[uid] == unit]
    assert len(started) == (pods if wanted else 0)
    assert len(cluster.evicted) <= (running * running if wanted else 0)

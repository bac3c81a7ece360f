"""A cluster in virtual time: work arrives, a real queue and real decisions start it, and it ends after its run time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.api.times import timestamp_at
from drayman.inventory.features import Features
from drayman.placement.decision.placements import Placement
from drayman.placement.nominations import Nominations
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.declaring import RUNTIME
from drayman.placement.state import ClusterState
from drayman.scheduler.cycle import Cycle
from drayman.scheduler.queue import Queue
from drayman.scheduler.reserving import Withdrawal
from oracle.build import device, device_class, exactly, piece

BEGIN = 1_800_000_000.0
NAMESPACE = "ml"


@dataclass(frozen=True)
class Work:
    """Pods that arrive together. More than one are a gang."""

    name: str
    arrives: int
    pods: int
    devices: int
    cpu: int
    runs: int
    declares: bool = True
    priority: int = 0
    late: int = 0
    """How much longer it runs than it declares."""
    least: int = 0
    """How many of the pods have to start together; 0: all of them."""


@dataclass
class Outcome:
    """What became of a unit."""

    started: float | None = None
    reserved: float | None = None
    """The first moment that was reserved for it while nothing that waited came before it."""


@dataclass
class Yard:
    """A cluster with these many devices and processors on each of its nodes."""

    nodes: list[tuple[int, int]]
    now: float = BEGIN
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    running: dict[str, tuple[Pod, str, Work, float]] = field(default_factory=dict)
    waiting: dict[str, Work] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    """What was last said to pods that wait, by name."""
    rounds: int = 0
    check: Callable[[Yard], None] = lambda _: None
    """Called whenever there is nothing left to decide."""
    look_s: float = 0.0
    """How much time passes with each look at the clock: with some, gangs that were refused rest before they are tried again."""
    lingering_s: float = 0.0
    """How long the devices of a pod stay with its claim after the pod has ended, with decisions in between."""
    withdrawn: list[tuple[float, Reservation, Withdrawal]] = field(default_factory=list)
    """Reservations that were withdrawn, when and why."""

    def __post_init__(self) -> None:
        self.queue = Queue()
        self.state = ClusterState(Features(), self.queue.wake)
        self.nominations = Nominations(self.state)
        self.cycle = Cycle(
            self.state,
            self.queue,
            self._clock,
            policy=Policy.BEST,
            binding_timeout_s=600.0,
            nominations=self.nominations,
        )
        self.cycle.reserving.withdrawn = lambda each, why: self.withdrawn.append(
            (self.now, each, why)
        )
        self.versions = 0
        self.ends: list[tuple[float, str]] = []
        self.state.set_class(convert(DeviceClass, device_class("gpu")))
        for number, (devices, cpu) in enumerate(self.nodes):
            name = f"n{number}"
            allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "20"}
            node = {"metadata": {"name": name}, "status": {"allocatable": allocatable}}
            self.state.set_node(convert(Node, node))
            if devices:
                made = [device(f"d{n}") for n in range(devices)]
                item = piece(made, pool=name, name=name, nodeName=name)
                self.state.set_slice(convert(ResourceSlice, item))

    def _clock(self) -> float:
        self.now += self.look_s
        return self.now

    def replay(self, works: list[Work]) -> None:
        """All of the work, to its end."""
        arrivals = sorted(works, key=lambda each: each.arrives)
        while arrivals or self.ends or self.waiting:
            moments = [self.ends[0][0]] if self.ends else []
            moments += [BEGIN + arrivals[0].arrives] if arrivals else []
            due = self.queue.next_due()
            if not moments and due is None:
                return  # what still waits will never fit
            moments += [] if due is None else [due]
            self.now = max(self.now, min(moments))
            while self.ends and self.ends[0][0] <= self.now:
                self.end(heapq.heappop(self.ends)[1])
            while arrivals and BEGIN + arrivals[0].arrives <= self.now:
                self.arrive(arrivals.pop(0))
            self.decide()
            self.check(self)

    def reservations(self) -> list[Reservation]:
        return self.cycle.reserving.standing

    def pod(self, work: Work, number: int) -> Pod:
        name = f"{work.name}-{number}"
        annotations = {RUNTIME: f"{work.runs}s"} if work.declares else {}
        if work.pods > 1:
            least = str(work.least or work.pods)
            gang = {"drayman.dev/gang": least, "drayman.dev/gang-name": work.name}
            annotations |= gang
        resources = {"requests": {"cpu": str(work.cpu)}}
        claims = [{"name": "c", "resourceClaimName": name}] if work.devices else []
        value = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": name,
                "annotations": annotations,
            },
            "spec": {
                "priority": work.priority,
                "containers": [{"name": "main", "resources": resources}],
                "resourceClaims": claims,
            },
        }
        return convert(Pod, value)

    def arrive(self, work: Work) -> None:
        """Work comes."""
        self.outcomes[work.name] = Outcome()
        self.waiting[work.name] = work
        pods = [self.pod(work, number) for number in range(work.pods)]
        for pod in pods:
            if work.devices:
                self._set_claim(self._claim(pod.metadata.name, work.devices))
            self.state.set_pod(pod)
        for pod in pods:
            self.queue.add(pod, self.state.gangs.key_of(pod))

    def _claim(self, name: str, devices: int) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"claim-{name}"},
            "spec": {"devices": {"requests": [exactly(count=devices)]}},
        }

    def _set_claim(self, value: dict[str, Any]) -> None:
        self.versions += 1
        value["metadata"]["resourceVersion"] = str(self.versions)
        self.state.set_claim(convert(ResourceClaim, value))

    def decide(self) -> None:
        """Decide about everything that is in line."""
        while self.queue.is_any_due(self.now):
            decisions = self.cycle.decide(64)
            self.rounds += 1
            for _, placement in decisions.placed:
                self._start(placement)
            for refused in decisions.refused:
                for pod in refused.entry.pods.values():
                    self.messages[pod.metadata.name] = refused.message
            self.cycle.reserving.advance(inf)
            self._note_reservations()

    def _note_reservations(self) -> None:
        first = min(self.waiting.values(), key=self._rank, default=None)
        for each in self.reservations():
            name = self._name_of(each)
            outcome = self.outcomes[name]
            if outcome.reserved is None and first is not None and first.name == name:
                outcome.reserved = each.at

    def _rank(self, work: Work) -> tuple[int, int]:
        pod = f"{work.name}-0"
        entry = self.queue.get(pod)
        assert entry is not None, pod
        return entry.rank

    def _name_of(self, reservation: Reservation) -> str:
        entry = self.queue.unit(reservation.key)
        assert entry is not None
        return entry.pod.metadata.name.rpartition("-")[0]

    def _start(self, placement: Placement) -> None:
        name = placement.pod.metadata.name
        unit = name.rpartition("-")[0]
        work = self.waiting.pop(unit, None) or self.running_work(unit)
        self.outcomes[unit].started = self.now
        self.messages.pop(name, None)
        for claim in placement.claims:
            self.versions += 1
            self.state.set_claim(_versioned(claim, self.versions))
            self.state.forget_claim(claim)
        self.cycle.retrying.settled(placement.claims)
        pod = _changed(placement.pod, placement.node, "Running", timestamp_at(self.now))
        self.state.set_pod(pod)
        end = int(self.now) + work.runs + work.late  # times of the API are whole seconds
        self.running[name] = (pod, placement.node, work, end)
        heapq.heappush(self.ends, (end, name))

    def withdraw(self, name: str) -> None:
        """Work that waits is deleted."""
        work = self.waiting.pop(name)
        for number in range(work.pods):
            pod = self.pod(work, number)
            self.queue.remove(pod.metadata.uid)
            self.state.delete_pod(pod)

    def settle(self, within_s: float = 1.0) -> None:
        """Let time pass until everybody who is to be tried again soon has been."""
        while (due := self.queue.next_due()) is not None and due < self.now + within_s:
            self.now = max(self.now, due)
            self.decide()

    def running_work(self, unit: str) -> Work:
        return next(work for _, _, work, _ in self.running.values() if work.name == unit)

    def end(self, name: str) -> None:
        """A pod that runs ends."""
        pod, node, work, _ = self.running.pop(name)
        self.state.set_pod(_changed(pod, node, "Succeeded", pod.status.start_time or ""))
        self.state.delete_pod(pod)
        if work.devices:
            if self.lingering_s:
                self.decide()
                self.settle(self.lingering_s)
                self.now += self.lingering_s
            self._set_claim(self._claim(name, work.devices))


def _versioned(claim: ResourceClaim, version: int) -> ResourceClaim:
    metadata = replace(claim.metadata, resource_version=str(version))
    return replace(claim, metadata=metadata)


def _changed(pod: Pod, node: str, phase: str, started: str) -> Pod:
    status = replace(pod.status, phase=phase, start_time=started)
    return replace(pod, spec=replace(pod.spec, node_name=node), status=status)

"""A cluster with queues, its admission and its scheduler, each with a state of its own that follows the same objects.

What a server would keep is in a few dictionaries. Controllers and kubelets are played by the moves: pods are created and deleted, claims
outlive their pods for a while, and a restart of the process reads everything again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.kueue_workload import Workload
from drayman.api.pods import is_leaving
from drayman.api.resource import DeviceTaintRule, ResourceClaim
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.quota.fitting.admitted_room import AdmittedRoom
from drayman.quota.fitting.fitter import Moved, Unfit
from drayman.quota.fitting.rooms import ROOM, Rooms
from drayman.workloads.queued import life
from drayman.workloads.queued.kinds import Ended
from quota.fitting.clusters import NAMESPACE, add_node, make_node, make_state, template, whole
from quota.fitting.hall import Hall
from quota.queues import queue

NODES = {"a": 4, "b": 4, "c": 2}
"""Devices, by node."""
LEFT = "2026-01-01T00:00:00Z"
_ROUNDS = 40


def fresh_state() -> ClusterState:
    state = make_state()
    for name, devices in NODES.items():
        add_node(state, make_node(name, 16), whole(name, ["small"] * devices))
    return state


@dataclass
class Job:
    """Pods of one workload, all alike."""

    name: str
    count: int
    template: str
    priority: int
    done: int = 0

    @property
    def key(self) -> str:
        return f"{NAMESPACE}/{self.name}"


class _Hall(Hall):
    """Shows the scheduler each workload as it is written."""

    room: AdmittedRoom | None = None

    def _show(self, key: str) -> None:
        super()._show(key)
        if self.room is not None:
            self.room.note_workload(self.workloads[key])


@dataclass
class History:
    """One cluster. Each move may be made at any time."""

    jobs: dict[str, Job] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    claims: dict[str, ResourceClaim] = field(default_factory=dict)
    cordoned: set[str] = field(default_factory=set)
    tainted: set[str] = field(default_factory=set)
    made: int = 0

    def __post_init__(self) -> None:
        self._start({}, pods_first=True)

    def _start(self, workloads: dict[str, Workload], *, pods_first: bool) -> None:
        admission, self.state = fresh_state(), fresh_state()
        self.hall = _Hall(admission, queue("q", 8, within="LowerPriority"))
        self.nominations = Nominations(self.state)
        self.hall.room = self.room = AdmittedRoom(self.state, self.nominations)
        self.decider = Decider(self.state, nominations=self.nominations)
        for name in NODES:
            self._show_node(name)
        for each in self.claims.values():
            self._show_claim(each)
        if pods_first:
            for pod in self.pods.values():
                self._show(pod)
        for workload in workloads.values():
            self.hall.submit(workload)
        if not pods_first:
            for pod in self.pods.values():
                self._show(pod)

    # What the server shows.

    def _states(self) -> tuple[ClusterState, ClusterState]:
        return self.hall.cluster, self.state

    def _show_node(self, name: str) -> None:
        node = make_node(name, 16)
        spec = replace(node.spec, unschedulable=name in self.cordoned)
        rule = {
            "metadata": {"name": name},
            "spec": {
                "deviceSelector": {"pool": name, "device": "d0"},
                "taint": {"key": "broken", "effect": "NoSchedule"},
            },
        }
        for state in self._states():
            state.set_node(replace(node, spec=spec))
            if name in self.tainted:
                state.set_taint_rule(convert(DeviceTaintRule, rule))
            else:
                state.remove_taint_rule(convert(DeviceTaintRule, rule))

    def _show_claim(self, claim: ResourceClaim) -> None:
        self.claims[claim.metadata.uid] = claim
        for state in self._states():
            state.set_claim(claim)
        self.hall.departing.see_claim(claim)
        self.room.note_claims()

    def _show(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.pods[uid] = pod
        for state in self._states():
            state.set_pod(pod)
        self.hall.rooms.see(pod)
        self.hall.departing.see(pod)
        if pod.spec.node_name:
            self.nominations.withdraw(uid)
            self.room.note_placed(pod)
        else:
            self.room.note_waiting(pod)

    def _remove(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        del self.pods[uid]
        self.nominations.withdraw(uid)
        for state in self._states():
            state.delete_pod(pod)
        self.hall.rooms.lose(pod)
        self.hall.departing.lose(pod)
        self.room.note_gone(pod)

    # Moves.

    def create(self, which: int) -> None:
        """Another Job of one to three pods with one or two devices each."""
        self.made += 1
        templates = ("one", "two", "one", "one")
        job = Job(f"w{self.made}", 1 + which % 3, templates[which % 4], (0, 0, 10)[which // 4 % 3])
        self.jobs[job.key] = job
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": f"job-{job.key}"}
        value = {
            "metadata": {
                "name": job.name,
                "namespace": NAMESPACE,
                "uid": job.name,
                "creationTimestamp": f"2026-01-01T00:{self.made // 60:02}:{self.made % 60:02}Z",
                "ownerReferences": [owner],
            },
            "spec": {
                "queueName": "q",
                "priority": job.priority,
                "active": True,
                "podSets": [
                    {"name": "main", "count": job.count, "template": template([job.template])}
                ],
            },
        }
        self.hall.submit(convert(Workload, value))

    def cycle(self, _: int = 0) -> None:
        """Admission: what gets quota has room, and what was preempted is stopped."""
        self.hall.settle()
        for key in self.hall.leaving():
            self._stop(key)

    def start(self, _: int = 0) -> None:
        """Job controllers note the pods that have ended for good, and create those that are missing."""
        for key, job in self.jobs.items():
            if not self._may_run(key):
                continue
            self._note_ended(job)
            staying = [pod for pod in self._of(key) if not is_leaving(pod)]
            for _ in range(job.count - job.done - len(staying)):
                self.made += 1
                self._show(_pod(job, f"{job.name}-{self.made}"))

    def schedule(self, which: int = 0) -> None:
        """The scheduler decides about some of the pods that wait, or all of them."""
        waiting = [
            pod for pod in self.pods.values() if not pod.spec.node_name and not is_leaving(pod)
        ]
        waiting.sort(key=lambda pod: -(pod.spec.priority or 0))
        for pod in waiting[: which % 3 or None]:
            self._bind(pod)

    def _bind(self, pod: Pod) -> None:
        outcome = self.decider.round(self.hall.now).decide(pod)
        if not isinstance(outcome, Placement):
            return
        for made in outcome.made:
            uid = f"{pod.metadata.uid}-{made.claim.metadata.name}"
            claim = replace(made.claim, metadata=replace(made.claim.metadata, uid=uid))
            self.state.adopt(made.holder, claim)
            self._show_claim(claim)
        spec = replace(pod.spec, node_name=outcome.node)
        status = replace(pod.status, resource_claim_statuses=outcome.generated, phase="Running")
        self._show(replace(pod, spec=spec, status=status))

    def run(self, _: int = 0) -> None:
        """What is admitted has its pods, as far as they find nodes."""
        self.cycle()
        self.start()
        self.schedule()

    def suspend(self, which: int) -> None:
        """The pods of a Job are being deleted. It keeps its quota, so others are to come for them."""
        self._stop(self._job(which))

    def lose(self, which: int) -> None:
        """A pod is being deleted."""
        pods = list(self.pods.values())
        if pods:
            self._leave(pods[which % len(pods)])

    def finish(self, which: int) -> None:
        """A pod that runs succeeds."""
        pods = [
            pod
            for pod in self.pods.values()
            if pod.spec.node_name and _key_of(pod) in self.jobs and not is_leaving(pod)
        ]
        if not pods:
            return
        pod = pods[which % len(pods)]
        job = self.jobs[_key_of(pod)]
        job.done += 1
        self._remove_ended(pod)
        self._note_ended(job)
        if job.done >= job.count:
            ended = Ended(succeeded=True, message="done")
            self.hall._write(
                job.key, life.finished(self.hall.status(job.key), ended, self.hall.now)
            )
            self.hall.quota.room_may_be_free()
            self._stop(job.key)

    def _note_ended(self, job: Job) -> None:
        status = life.reclaimed(self.hall.status(job.key), {"main": job.done} if job.done else {})
        self.hall._write(job.key, status)

    def _may_run(self, key: str) -> bool:
        status = self.hall.status(key)
        return (
            life.holds_quota(status)
            and not life.is_evicted(status)
            and not life.is_finished(status)
        )

    def _remove_ended(self, pod: Pod) -> None:
        self._show(replace(pod, status=replace(pod.status, phase="Succeeded")))
        self._remove(pod)

    def let_go(self, which: int = 0) -> None:
        """Pods that are being deleted are gone, some of them or all."""
        leaving = [pod for pod in self.pods.values() if is_leaving(pod)]
        for pod in leaving[: which % 3 or None]:
            self._remove(pod)

    def release(self, which: int = 0) -> None:
        """Claims of pods that are gone are gone, some of them or all."""
        unused = [
            claim
            for claim in self.claims.values()
            if not any(user.uid in self.pods for user in claim.status.reserved_for)
        ]
        for claim in unused[: which % 3 or None]:
            del self.claims[claim.metadata.uid]
            for state in self._states():
                state.remove_claim(claim)
            self.hall.departing.lose_claim(claim)

    def requeue(self, which: int) -> None:
        """A Job is evicted, and waits again when its pods are gone."""
        key = self._job(which)
        status = self.hall.status(key) if key else None
        if status is None or not life.holds_quota(status) or life.is_evicted(status):
            return
        self.hall._write(key, life.evicted(status, "Test", "", self.hall.now, generation=0))
        self._stop(key)

    def quota_back(self, _: int = 0) -> None:
        """What was evicted and has no pods any more gives up its quota."""
        for key in self.hall.leaving():
            if not self._of(key):
                status = self.hall.status(key)
                released = life.released(status, "PendingEvaluation", "", self.hall.now)
                self.hall._write(key, released)
                self.hall.quota.room_may_be_free()

    def delete(self, which: int) -> None:
        """A Job is deleted."""
        key = self._job(which)
        if key:
            self._delete(key)

    def _delete(self, key: str) -> None:
        self._stop(key)
        del self.jobs[key]
        workload = self.hall.workloads.pop(key)
        self.hall.quota.remove_workload(key)
        self.hall.rooms.forget(key)
        self.room.forget_workload(workload)
        self.hall.quota.room_may_be_free()

    def drain(self, which: int) -> None:
        """A node is cordoned and its pods are evicted; or it is open again."""
        name = sorted(NODES)[which % len(NODES)]
        self.cordoned ^= {name}
        self._show_node(name)
        if name in self.cordoned:
            for pod in [pod for pod in self.pods.values() if pod.spec.node_name == name]:
                self._leave(pod)

    def taint(self, which: int) -> None:
        """A device is broken, or is well again."""
        name = sorted(NODES)[which % len(NODES)]
        self.tainted ^= {name}
        self._show_node(name)

    def review(self, _: int = 0) -> None:
        """Room that is lost is found elsewhere, or its workload is evicted; what has moved is written down."""
        for key, text in self.hall.rooms.take_moved().items():
            self._note(key, text)
        for reservation in list(self.hall.rooms.book):
            with self.hall.cluster.trial() as trial:
                self.hall.departing.leave(trial)
                found = self.hall.rooms.fitter.review(reservation, self.hall.now)
            key = reservation.key
            if isinstance(found, Moved):
                self._note(key, self.hall.rooms.replace(found.reservation))
            elif isinstance(found, Unfit):
                self.requeue(sorted(self.jobs).index(key))

    def _note(self, key: str, text: str) -> None:
        workload = self.hall.workloads[key]
        metadata = replace(workload.metadata, annotations={ROOM: text})
        self.hall.workloads[key] = replace(workload, metadata=metadata)
        self.hall._show(key)

    def restart(self, which: int) -> None:
        """Everything is read again, in another order."""
        pods = list(self.pods.items())
        at = which % len(pods) if pods else 0
        self.pods = dict((*pods[at:], *pods[:at]))
        self._start(self.hall.workloads, pods_first=which % 2 == 0)

    # All of it.

    def quiesce(self) -> None:
        """Everything that can happen without a further cause happens."""
        for _ in range(_ROUNDS):
            before = self._shown()
            for move in (
                *(self.let_go, self.release, self.quota_back, self.review),
                *(self.cycle, self.start, self.schedule),
            ):
                move(0)
            if self._shown() == before:
                return
        raise AssertionError("never converges")

    def _shown(self) -> Any:
        return {uid: pod.spec.node_name for uid, pod in self.pods.items()}, dict(
            self.hall.workloads
        )

    def end(self) -> None:
        """Everything is deleted."""
        for key in list(self.jobs):
            self._delete(key)
        self.let_go()
        self.release()
        self.cordoned.clear()
        self.tainted.clear()
        for name in NODES:
            self._show_node(name)

    def waiting(self, key: str) -> int:
        """How many pods an admitted workload still needs a place for."""
        job = self.jobs[key]
        if not self._may_run(key):
            return 0
        bound = sum(bool(pod.spec.node_name) for pod in self._of(key))
        return max(0, job.count - job.done - bound)

    def reserved(self) -> Iterator[tuple[str, int]]:
        """How many places each of the two keeps for a workload."""
        promised = Counter(_key_of(each.pod) for each in self.nominations)
        for key in self.jobs:
            yield key, _counted(self.hall.rooms, key)
            yield key, _counted(self.room._rooms, key) + promised[key]

    def holders(self) -> Iterator[Counter[str]]:
        """How many hold each device, in each of the two states."""
        for state in self._states():
            yield Counter(str(each.device) for _, found in state.ledger.holders() for each in found)

    def _of(self, key: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if _key_of(pod) == key]

    def _job(self, which: int) -> str:
        keys = sorted(self.jobs)
        return keys[which % len(keys)] if keys else ""

    def _stop(self, key: str) -> None:
        for pod in self._of(key) if key else ():
            self._leave(pod)

    def _leave(self, pod: Pod) -> None:
        if not is_leaving(pod):
            metadata = replace(pod.metadata, deletion_timestamp=LEFT)
            self._show(replace(pod, metadata=metadata))


def _counted(rooms: Rooms, key: str) -> int:
    reservation = rooms.book.get(key)
    places = () if reservation is None else reservation.places
    return sum(map(rooms.book.counts, places))


def _key_of(pod: Pod) -> str:
    return f"{NAMESPACE}/{pod.metadata.owner_references[0].name}"


def _pod(job: Job, uid: str) -> Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": f"job-{job.key}"}
    metadata = {
        "name": uid,
        "namespace": NAMESPACE,
        "uid": uid,
        "labels": {"kueue.x-k8s.io/podset": "main"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    spec = {**template([job.template])["spec"], "priority": job.priority}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def next_places(state: ClusterState) -> list[str]:
    """Where the next pods go, with which devices, one after another."""
    decider = Decider(state)
    found = []
    for number, name in enumerate(("two", "two", "one", "two", "one")):
        spec = template([name])["spec"]
        metadata = {"name": f"next-{number}", "namespace": NAMESPACE, "uid": f"next-{number}"}
        pod = convert(Pod, {"metadata": metadata, "spec": spec})
        outcome = decider.round(0.0).decide(pod)
        assert isinstance(outcome, Placement), outcome
        devices = [result.device for each in outcome.devices for result in each.devices.results]
        found.append(f"{outcome.node} {devices}")
    return found

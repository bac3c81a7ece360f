"""A cluster with queues and a scheduler in one state, driven step by step: quota, room, pods that appear, are bound and go."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Namespace, Pod
from drayman.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, status_of
from drayman.api.kueue_workload import Workload, WorkloadStatus
from drayman.api.meta import ObjectMeta
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.quota.decisions import Decision, Preempted, Refused, Reserved
from drayman.quota.fitting.clearing import RoomClearing
from drayman.quota.fitting.departing import Departing
from drayman.quota.fitting.rooms import ROOM, Rooms
from drayman.quota.quota_and_room import Cycles
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from drayman.workloads.queued import life
from drayman.workloads.queued.bodies import status_body
from drayman.workloads.queued.kinds import Ended
from quota.fitting.clusters import NAMESPACE
from quota.queues import FLAVOR, Object, flavor

_KINDS = {
    "ResourceFlavor": ResourceFlavor,
    "Cohort": Cohort,
    "ClusterQueue": ClusterQueue,
    "LocalQueue": LocalQueue,
}
MOST_CYCLES = 200


def work(
    name: str, queue: str, template: Object, pods: int = 1, priority: int = 0, at: int = 0
) -> Workload:
    """A workload of some pods that are alike, made at some time."""
    value = {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:00:{at:02}Z",
        },
        "spec": {
            "queueName": queue,
            "priority": priority,
            "active": True,
            "podSets": [{"name": "main", "count": pods, "template": template}],
        },
    }
    return convert(Workload, value)


class Hall:
    """Everything happens when it is told to. Each step is a second."""

    def __init__(self, state: ClusterState, *objects: Object | list[Object], config: Any = None):
        self.cluster = state
        self.rooms = Rooms(state)
        self.departing = Departing(state)
        self.quota = QuotaState(settings_of(config), None)
        self.clearing = RoomClearing(
            self.rooms,
            self.departing,
            lambda: self.quota.books.flavors,
            lambda: self.now,
            lambda: self.quota,
        )
        self.quota.ask_for_room(self.clearing)
        self.workloads: dict[str, Workload] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.log: list[Decision] = []
        self.now = 1_800_000_000.0
        self._decider = Decider(state, nominations=Nominations(state))
        self._made = 0
        self.quota.set_namespace(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        for each in (flavor(FLAVOR), *objects):
            for value in each if isinstance(each, list) else [each]:
                self.put(value)

    def put(self, value: Object) -> None:
        made: Any = convert(_KINDS[value["kind"]], value)
        match value["kind"]:
            case "ResourceFlavor":
                self.quota.set_flavor(made)
            case "Cohort":
                self.quota.set_cohort(made)
            case "ClusterQueue":
                self.quota.set_cluster_queue(made, self.now)
            case _:
                self.quota.set_local_queue(made, self.now)

    def submit(self, workload: Workload) -> None:
        key = f"{NAMESPACE}/{workload.metadata.name}"
        self.workloads[key] = workload
        self._show(key)

    # Deciding.

    def settle(self) -> list[Decision]:
        """Cycles until nothing new comes of them. What was decided."""
        cycles = Cycles(self.quota)
        found: list[Decision] = []
        for _ in range(MOST_CYCLES):
            self.now += 1
            decisions = self.cycle(cycles)
            found += decisions
            if not decisions:
                self.log += found
                return found
        raise AssertionError(f"never comes to rest: {found[-6:]}")

    def cycle(self, cycles: Cycles | None = None) -> list[Decision]:
        """One of several cycles, or one alone, with what was decided carried out."""
        made = list((cycles or Cycles(self.quota)).run(self.now))
        for each in made:
            if each.room is not None:
                workload = self.workloads[each.key]
                metadata = replace(workload.metadata, annotations={ROOM: each.room})
                self.workloads[each.key] = replace(workload, metadata=metadata)
            self._carry_out(each.decision)
        return [each.decision for each in made]

    def _carry_out(self, decision: Decision) -> None:
        status = self.status(decision.key)
        match decision:
            case Reserved(key, admission):
                status = life.reserved(status, admission, self.now)
                self._write(key, life.admitted(status, self.now))
            case Preempted(key, _, reason, message):
                self._write(key, life.preempted(status, reason, message, self.now))
            case Refused(key, reason, message):
                self._write(key, life.refused(status, reason, message, (), self.now))

    def status(self, key: str) -> WorkloadStatus:
        return status_of(WorkloadStatus, self.workloads[key])

    def _write(self, key: str, status: WorkloadStatus) -> None:
        self.workloads[key] = replace(self.workloads[key], status=status_body(status))
        self._show(key)

    def _show(self, key: str) -> None:
        self.rooms.follow(self.workloads[key])
        self.quota.set_workload(self.workloads[key], self.now)

    # Pods.

    def admitted(self) -> set[str]:
        return {
            each.partition("/")[2]
            for each in self.workloads
            if life.holds_quota(self.status(each)) and not life.is_finished(self.status(each))
        }

    def leaving(self) -> list[str]:
        """The keys of those that were told to go and have not."""
        return [
            key
            for key in self.workloads
            if life.is_evicted(self.status(key)) and life.holds_quota(self.status(key))
        ]

    def start(self, name: str) -> None:
        """The pods of an admitted workload appear and are bound, each of them."""
        key = f"{NAMESPACE}/{name}"
        if key in self.pods:
            return
        reservation = self.rooms.book.get(key)
        assert reservation is not None
        self.pods[key] = []
        for expected in reservation.places:
            self._made += 1
            uid = f"{name}-{self._made}"
            labels = {"kueue.x-k8s.io/pod-group-name": name}
            metadata = ObjectMeta(name=uid, namespace=NAMESPACE, uid=uid, labels=labels)
            pod = Pod(metadata=metadata, spec=expected.pod.spec)
            place = self.rooms.see(pod)
            assert place is not None
            self.rooms.book.fulfil(uid)
            self._decider.nominations.keep(pod, place.node, place.allocations)
            self.pods[key].append(self._bound(pod))

    def _bound(self, pod: Pod) -> Pod:
        outcome = self._decider.round(self.now).decide(pod)
        assert isinstance(outcome, Placement), (pod.metadata.name, outcome)
        for made in outcome.made:
            uid = f"{pod.metadata.uid}-{made.claim.metadata.name}"
            claim = replace(made.claim, metadata=replace(made.claim.metadata, uid=uid))
            self.cluster.adopt(made.holder, claim)
            self.cluster.set_claim(claim)
        bound = replace(
            pod,
            spec=replace(pod.spec, node_name=outcome.node),
            status=replace(pod.status, resource_claim_statuses=outcome.generated, phase="Running"),
        )
        self.cluster.set_pod(bound)
        self.rooms.see(bound)
        return bound

    def stop(self, key: str) -> None:
        """All pods of a workload are gone, and their claims with them."""
        for pod in self.pods.pop(key, ()):
            claims = self.cluster.claims_used_by(pod)
            self.cluster.remove_pod(pod.metadata.uid)
            for seen in (self.rooms, self.departing):
                seen.lose(pod)
            for claim in claims:
                self.cluster.remove_claim(claim)
                self.departing.lose_claim(claim)

    def leave(self, key: str) -> None:
        """A workload that was told to go has gone, and waits again."""
        self.stop(key)
        self._write(key, life.released(self.status(key), "PendingEvaluation", "", self.now))
        self.quota.room_may_be_free()

    def finish(self, key: str) -> None:
        self.stop(key)
        ended = Ended(succeeded=True, message="done")
        self._write(key, life.finished(self.status(key), ended, self.now))
        self.quota.room_may_be_free()

    def rest(self) -> None:
        """Settle until nobody is leaving: whoever is told to go goes."""
        for _ in range(MOST_CYCLES):
            self.settle()
            leaving = self.leaving()
            if not leaving:
                return
            for key in leaving:
                self.leave(key)
        raise AssertionError(f"workloads drive each other out for ever: {self.log[-12:]}")

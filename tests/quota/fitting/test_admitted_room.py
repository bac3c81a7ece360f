"""Room of admitted workloads in the scheduler, whichever of its objects is seen first."""

from __future__ import annotations

from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.nominations import Nominations
from drayman.quota.fitting.admitted_room import AdmittedRoom
from drayman.quota.fitting.rooms import Rooms
from quota.fitting.clusters import content
from quota.fitting.test_rooms import admitted, make_cluster, make_pod, make_workload


def test_a_workload_that_is_seen_after_its_pod_was_placed() -> None:
    """Workloads and pods are watched apart. A pod may be seen, and decided about, before its Workload is; the server shows it without a
    node until its binding is written, and in that moment the Workload comes. The place belongs to a pod that has one: nothing is kept."""
    text = admitted(Rooms(make_cluster(2)))
    state = make_cluster(2)
    nominations = Nominations(state)
    room = AdmittedRoom(state, nominations)
    pods = [make_pod("p0"), make_pod("p1")]
    for pod in pods:
        room.note_waiting(pod)
        assert pod.metadata.uid not in nominations
        assert isinstance(Decider(state, nominations=nominations).round(0.0).decide(pod), Placement)
    before = content(state)
    room.note_workload(make_workload(room=text))
    assert not any(pod.metadata.uid in nominations for pod in pods)
    assert content(state) == before


def test_a_workload_that_is_seen_before_its_pod() -> None:
    """As a rule: the place passes from the book to a promise, and the pod has it."""
    text = admitted(Rooms(make_cluster(2)))
    state = make_cluster(2)
    nominations = Nominations(state)
    room = AdmittedRoom(state, nominations)
    room.note_workload(make_workload(room=text))
    pod = make_pod("p0")
    room.note_waiting(pod)
    assert pod.metadata.uid in nominations
    assert isinstance(Decider(state, nominations=nominations).round(0.0).decide(pod), Placement)

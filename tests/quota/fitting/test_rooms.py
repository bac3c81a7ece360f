"""Room of admitted workloads by the objects that a cluster shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Pod, PodStatus
from drayman.api.kueue_workload import Admission, Workload
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.rooms import ROOM, Rooms, workload_pods
from quota.fitting.clusters import (
    HOST,
    NAMESPACE,
    add_node,
    content,
    make_node,
    make_state,
    template,
    whole,
)

ADMISSION: dict[str, Any] = {
    "clusterQueue": "q",
    "podSetAssignments": [{"name": "main", "flavors": {}, "count": 2}],
}
TRUE = {
    "status": "True",
    "reason": "x",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def make_workload(
    name: str = "w",
    *,
    room: str = "",
    conditions: tuple[str, ...] = ("QuotaReserved", "Admitted"),
    admission: dict[str, Any] | None = None,
    reclaimable: int = 0,
    owner: str = "Job",
) -> Workload:
    made_for = {"apiVersion": "batch/v1", "kind": owner, "name": name, "uid": f"job-{name}"}
    status: dict[str, Any] = {"conditions": [{"type": each, **TRUE} for each in conditions]}
    if "QuotaReserved" in conditions:
        status["admission"] = admission or ADMISSION
    if reclaimable:
        status["reclaimablePods"] = [{"name": "main", "count": reclaimable}]
    return convert(
        Workload,
        {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": f"workload-{name}",
                "ownerReferences": [made_for],
                "annotations": {ROOM: room} if room else {},
            },
            "spec": {"podSets": [{"name": "main", "count": 2, "template": template(["one"])}]},
            "status": status,
        },
    )


def make_pod(uid: str, job: str = "w", node: str = "", phase: str = "Pending", **spec: Any) -> Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"job-{job}"}
    metadata = {
        "name": uid,
        "namespace": NAMESPACE,
        "uid": uid,
        "labels": {"kueue.x-k8s.io/podset": "main"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    made = {**template(["one"])["spec"], "nodeName": node, **spec}
    return convert(Pod, {"metadata": metadata, "spec": made, "status": {"phase": phase}})


def make_cluster(devices: int = 2) -> ClusterState:
    state = make_state()
    add_node(state, make_node("a"), whole("a", ["small"] * devices))
    return state


def admit(rooms: Rooms, workload: Workload, admission: Admission | None = None) -> str | Unfit:
    """Find and keep room for a workload."""
    found = rooms.find(workload, admission or convert(Admission, ADMISSION), {}, 0.0)
    return found if isinstance(found, Unfit) else rooms.keep(workload, found)


def admitted(rooms: Rooms, name: str = "w") -> str:
    text = admit(rooms, make_workload(name, conditions=()))
    assert isinstance(text, str), text
    return text


def test_what_one_keeps_others_keep_too() -> None:
    """The text that whoever admits gets is all that a scheduler needs to keep the same room."""
    quota, scheduler = make_cluster(), make_cluster()
    text = admitted(Rooms(quota))
    other = Rooms(scheduler)
    other.follow(make_workload(room=text))
    assert content(scheduler)[0]["ledger"] == content(quota)[0]["ledger"]
    assert isinstance(admit(other, make_workload("x", conditions=())), Unfit)


def test_a_workload_that_holds_nothing_keeps_nothing() -> None:
    """Room is given back when a workload is evicted, finished, without quota or gone, and kept when nothing changed."""
    for conditions in (("QuotaReserved", "Evicted"), ("QuotaReserved", "Finished"), ()):
        state = make_cluster()
        before = content(state)
        rooms = Rooms(state)
        text = admitted(rooms)
        kept = content(state)
        rooms.follow(make_workload(room=text))
        assert content(state) == kept
        rooms.follow(make_workload(room=text, conditions=conditions))
        assert content(state) == before
    rooms.follow(make_workload(room=text))
    assert content(state) == kept
    rooms.forget(f"{NAMESPACE}/w")
    assert content(state) == before


def test_pods_get_their_places() -> None:
    """Each pod of the workload's owner gets a place, which counts until the pod has a node; strangers get none."""
    state = make_cluster(3)
    before = content(state)
    rooms = Rooms(state)
    admitted(rooms)
    kept = content(state)
    assert rooms.see(make_pod("x", job="other")) is None
    places = [rooms.see(make_pod(uid)) for uid in ("p0", "p1", "p2")]
    assert [place is not None for place in places] == [True, True, False]
    assert rooms.see(make_pod("p0")) is places[0]
    assert content(state) == kept
    for uid in ("p0", "p1"):
        rooms.see(make_pod(uid, node="a"))
    assert content(state) == before


def test_room_is_not_kept_from_pods_that_nobody_can_tell_are_the_workloads() -> None:
    """A set of Jobs has others make its pods: there has to be room, but it is not held against them."""
    state = make_cluster()
    before = content(state)
    rooms = Rooms(state)
    wanted = make_workload(conditions=(), owner="JobSet")
    assert isinstance(admit(rooms, wanted), str)
    assert content(state) == before
    small = Rooms(make_cluster(1))
    assert isinstance(admit(small, wanted), Unfit)


def test_a_pod_that_is_lost_or_ends_is_replaced() -> None:
    """The place of a pod that is deleted, has failed or succeeded is kept for the next one."""
    state = make_cluster()
    before = content(state)
    rooms = Rooms(state)
    admitted(rooms)
    kept = content(state)
    for lost, phase in (("p0", ""), ("p1", "Failed"), ("p2", "Succeeded")):
        for uid in (lost, "other"):
            assert rooms.see(make_pod(uid, node="a")) is not None
        assert content(state) == before
        if phase:
            rooms.see(make_pod(lost, phase=phase))
        else:
            rooms.lose(make_pod(lost))
        rooms.lose(make_pod("other"))
        assert content(state) == kept


def test_pods_that_end_for_good_give_back_their_room() -> None:
    """What the workload says is reclaimable is kept no longer; what pods have stays theirs."""
    state = make_cluster()
    before = content(state)
    rooms = Rooms(state)
    text = admitted(rooms)
    for uid in ("p0", "p1"):
        rooms.see(make_pod(uid, node="a"))
    rooms.see(make_pod("p0", phase="Succeeded"))
    assert content(state) != before
    rooms.follow(make_workload(room=text, reclaimable=1))
    assert content(state) == before
    rooms.lose(make_pod("p1"))
    assert content(state) != before
    rooms.follow(make_workload(room=text, reclaimable=2))
    assert content(state) == before
    rooms.forget(f"{NAMESPACE}/w")
    assert content(state) == before


def test_pods_may_be_seen_before_their_workload() -> None:
    """After a restart, pods that have a node take a place, and those that wait are told theirs."""
    text = admitted(Rooms(make_cluster()))
    state = make_cluster()
    before = content(state)
    rooms = Rooms(state)
    assert rooms.see(make_pod("p0", node="a")) is None
    assert rooms.see(make_pod("p1")) is None
    told = rooms.follow(make_workload(room=text))
    assert {pod.metadata.uid for pod, _ in told} == {"p0", "p1"}
    rooms.see(make_pod("p1", node="a"))
    assert content(state) == before


def test_pods_that_ended_before_need_no_room() -> None:
    """Reclaimable pods are not looked for places."""
    rooms = Rooms(make_cluster(1))
    wanted = make_workload(conditions=(), reclaimable=1)
    assert isinstance(admit(rooms, wanted), str)


def test_text_that_cannot_be_read_keeps_nothing() -> None:
    """Whatever somebody writes into the annotation, nothing breaks."""
    state = make_cluster()
    before = content(state)
    rooms = Rooms(state)
    for text in ("{", "[]", '{"places": 1}', '{"places": [{"podSet": "x"}]}'):
        assert rooms.follow(make_workload(room=text)) == ()
    stray = '{"places":[{"podSet":"other","number":7,"node":"a"}]}'
    rooms.follow(make_workload(room=stray))
    assert content(state) == before
    twice = '{"podSet":"main","number":0,"node":"nowhere"}'
    rooms.follow(make_workload(room=f'{{"places":[{twice},{twice}]}}'))
    rooms.forget(f"{NAMESPACE}/w")
    assert content(state) == before


def fits_without(rooms: Rooms, wanted: Workload, admission: Admission, gone: Iterable[str]) -> bool:
    with rooms.trial_without(gone):
        pods = workload_pods(wanted, admission, {})
        return not isinstance(rooms.fitter.fit(pods, 0.0), Unfit)


def test_room_that_others_would_leave() -> None:
    """Who could go is found out by supposing it: what they keep, and what their pods use. Nothing changes by that."""
    state = make_cluster(2)
    rooms = Rooms(state)
    admitted(rooms)
    wanted, admission = make_workload("x", conditions=()), convert(Admission, ADMISSION)
    before = content(state)
    assert not fits_without(rooms, wanted, admission, ())
    assert fits_without(rooms, wanted, admission, [f"{NAMESPACE}/w"])
    assert content(state) == before
    # Once its pods are bound, it is they that would have to go.
    decider = Decider(state, nominations=Nominations(state))
    for uid in ("p0", "p1"):
        place = rooms.see(make_pod(uid))
        assert place is not None
        rooms.book.fulfil(uid)
        decider.nominations.keep(make_pod(uid), place.node, place.allocations)
        placement = decider.round(0.0).decide(make_pod(uid))
        assert isinstance(placement, Placement)
        for made in placement.made:
            claim = replace(made.claim, metadata=replace(made.claim.metadata, uid=f"claim-{uid}"))
            state.adopt(made.holder, claim)
            state.set_claim(claim)
        bound = replace(
            make_pod(uid, node="a"),
            status=PodStatus(resource_claim_statuses=placement.generated, phase="Running"),
        )
        state.set_pod(bound)
        rooms.see(bound)
    assert not fits_without(rooms, wanted, admission, ())
    assert fits_without(rooms, wanted, admission, [f"{NAMESPACE}/w"])
    assert not fits_without(rooms, wanted, admission, ())


def test_pods_of_a_topology_get_the_places_of_their_domains() -> None:
    """A pod that is held by a gate has no place yet; with its gate removed it has one on the host that it was assigned to."""
    state = make_cluster(1)
    add_node(state, make_node("b"), whole("b", ["small"]))
    rooms = Rooms(state)
    hosts = {"levels": [HOST], "slices": []}
    values = {"individual": {"roots": ["a", "b"]}}
    hosts["slices"] = [
        {"domainCount": 2, "valuesPerLevel": [values], "podCounts": {"universal": 1}}
    ]
    assigned = {**ADMISSION["podSetAssignments"][0], "topologyAssignment": hosts}
    admission = convert(Admission, {"clusterQueue": "q", "podSetAssignments": [assigned]})
    assert isinstance(admit(rooms, make_workload(conditions=()), admission), str)
    gates = [{"name": "kueue.x-k8s.io/topology"}]
    for uid in ("p0", "p1"):
        assert rooms.see(make_pod(uid, schedulingGates=gates)) is None
    for uid, host in (("p0", "b"), ("p1", "a")):
        place = rooms.see(make_pod(uid, nodeSelector={HOST: host}))
        assert place is not None
        assert place.node == host


def test_a_larger_slice_needs_room_for_the_difference() -> None:
    """One of its two pods is there already. Nothing is kept: that pod would take it."""
    state = make_cluster(1)
    before = content(state)
    larger = make_workload(conditions=())
    larger.metadata.annotations["drayman.dev/pods-there"] = "1"
    found = admit(Rooms(state), larger)
    assert isinstance(found, str)
    assert content(state) == before

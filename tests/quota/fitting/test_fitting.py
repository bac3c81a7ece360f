"""Room for workloads: found, kept, handed over, given back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from drayman.api import codec
from drayman.api.codec import convert
from drayman.api.core import Taint
from drayman.api.resource import DeviceTaintRule, ResourceClaim
from drayman.placement.state import ClusterState
from drayman.quota.demands import Placement
from drayman.quota.fitting.book import RoomBook
from drayman.quota.fitting.expecting import WorkloadPods
from drayman.quota.fitting.fitter import Fitter, Intact, Moved, Unfit
from drayman.quota.fitting.reservation import RoomRecord, RoomReservation, record_of, restored
from oracle.build import exactly
from quota.fitting.clusters import (
    HOST,
    add_node,
    content,
    make_node,
    make_state,
    pod_set,
    real_pods,
    template,
    whole,
    workload,
)


class Stage:
    def __init__(self, **nodes: int) -> None:
        """Nodes with so many devices each."""
        self.state: ClusterState = make_state()
        for name, devices in nodes.items():
            add_node(self.state, make_node(name), whole(name, ["small"] * devices))
        self.book = RoomBook(self.state)
        self.fitter = Fitter(self.state, self.book)

    def fit(self, wanted: WorkloadPods) -> RoomReservation | Unfit:
        return self.fitter.fit(wanted, 0.0)

    def admitted(self, wanted: WorkloadPods) -> RoomReservation:
        found = self.fit(wanted)
        assert isinstance(found, RoomReservation), found
        self.book.keep(found)
        return found

    def review(self, reservation: RoomReservation) -> Intact | Moved | Unfit:
        return self.fitter.review(reservation, 0.0)


def test_what_is_admitted_is_not_offered_again() -> None:
    """The devices of a workload whose pods do not exist yet are taken."""
    stage = Stage(a=2, b=1)
    stage.admitted(workload("w0", pod_set(1, template(["two"]))))
    refusal = stage.fit(workload("w1", pod_set(1, template(["two"]))))
    assert isinstance(refusal, Unfit)
    assert refusal.message.startswith("there is no room for the pod of pod set 'main': 0/2 nodes")
    assert isinstance(stage.fit(workload("w2", pod_set(1, template(["one"])))), RoomReservation)


def test_a_refusal_says_how_far_it_gets() -> None:
    """How many pods find room, and what the next one lacks."""
    stage = Stage(a=2, b=1)
    refusal = stage.fit(workload("w", pod_set(4, template(["one"]))))
    assert isinstance(refusal, Unfit)
    assert refusal.placed == 3
    assert "room for 3 of 4 pods" in refusal.message
    assert "cannot allocate all claims" in refusal.message


def test_pods_are_placed_together_where_one_after_the_other_fails() -> None:
    """Small pods that come first would take the node that the large one needs."""
    stage = Stage(a=0, b=0)
    stage.state.set_node(make_node("a", 3))
    stage.state.set_node(make_node("b", 4))
    small, large = (
        pod_set(3, template(cpu=1), name="small"),
        pod_set(1, template(cpu=4), name="large"),
    )
    found = stage.fit(workload("w", small, large))
    assert isinstance(found, RoomReservation)
    assert {place.pod_set: place.node for place in found.places} == {"small": "a", "large": "b"}


def test_pods_of_a_topology_go_to_their_domains() -> None:
    """Each pod goes to the host that the assignment has for it."""
    stage = Stage(a=4, b=4)
    placement = Placement((HOST,), ((("a",), 1), (("b",), 2)))
    found = stage.admitted(workload("w", pod_set(3, template(["one"]), placement=placement)))
    assert [place.node for place in found.places] == ["a", "b", "b"]


def test_a_missing_template_is_named() -> None:
    """What a pod lacks before nodes are looked at is the reason."""
    refusal = Stage(a=1).fit(workload("w", pod_set(1, template(["absent"]))))
    assert isinstance(refusal, Unfit)
    assert "absent" in refusal.message


def test_release_restores_the_state() -> None:
    """After all of a workload's room is given back the state is as it was."""
    stage = Stage(a=2, b=2)
    before = content(stage.state)
    found = stage.admitted(workload("w", pod_set(2, template(["two"]))))
    assert content(stage.state) != before
    stage.book.release(found.key)
    assert content(stage.state) == before
    stage.book.release(found.key)
    assert content(stage.state) == before


def test_room_passes_to_the_pod_and_back() -> None:
    """A pod gets one place, always the same; when it is bound the place does not count; when it is gone it counts again."""
    stage = Stage(a=2)
    empty = content(stage.state)
    wanted = workload("w", pod_set(2, template(["one"])))
    stage.admitted(wanted)
    kept = content(stage.state)
    pods = [pod for _, pod in real_pods(wanted)]
    places = [stage.book.hand_over(wanted.key, "main", pod) for pod in pods]
    assert None not in places
    assert len({place.uid for place in places if place is not None}) == 2
    assert stage.book.hand_over(wanted.key, "main", pods[0]) is places[0]
    third = replace(pods[0], metadata=replace(pods[0].metadata, uid="third", name="third"))
    assert stage.book.hand_over(wanted.key, "main", third) is None
    assert stage.book.hand_over(wanted.key, "other", third) is None
    for pod in pods:
        stage.book.fulfil(pod.metadata.uid)
    assert content(stage.state) == empty
    for pod in pods:
        stage.book.vacate(pod.metadata.uid)
    assert content(stage.state) == kept
    assert stage.book.hand_over(wanted.key, "main", third) is not None


def test_a_reservation_survives_a_restart() -> None:
    """What is written down with the admission, and read again, counts the same."""
    stage = Stage(a=2, b=2)
    wanted = workload("w", pod_set(2, template(["two"])))
    record = codec.decode(RoomRecord, codec.encode(record_of(stage.admitted(wanted))))
    again = Stage(a=2, b=2)
    again.book.keep(restored(wanted, record, again.state.mapped_devices))
    assert isinstance(again.fit(workload("other", pod_set(1, template(["one"])))), Unfit)
    kept = [
        (p.node, p.needs.shape, p.devices[0].devices.results)
        for p in again.book.get(wanted.key).places
    ]  # type: ignore[union-attr]
    first = [
        (p.node, p.needs.shape, p.devices[0].devices.results)
        for p in stage.book.get(wanted.key).places
    ]  # type: ignore[union-attr]
    assert kept == first


def test_a_shared_claim_gets_its_devices_once() -> None:
    """Pods of several workloads that use one claim go where its devices are, and it is free after the last of them."""
    stage = Stage(a=1, b=1)
    metadata = {"name": "both", "namespace": "default", "uid": "both"}
    claim = {"metadata": metadata, "spec": {"devices": {"requests": [exactly()]}}}
    stage.state.set_claim(convert(ResourceClaim, claim))
    before = content(stage.state)
    first = stage.admitted(workload("w0", pod_set(2, template(["=both"]))))
    second = stage.admitted(workload("w1", pod_set(1, template(["=both"]))))
    assert len(first.nodes | second.nodes) == 1
    assert isinstance(stage.fit(workload("w2", pod_set(1, template(["one"])))), RoomReservation)
    assert isinstance(stage.fit(workload("w2", pod_set(1, template(["two"])))), Unfit)
    stage.book.release(first.key)
    assert isinstance(stage.fit(workload("w2", pod_set(2, template(["one"])))), Unfit)
    stage.book.release(second.key)
    assert content(stage.state) == before


def test_room_that_is_still_there_is_intact() -> None:
    """A change elsewhere matters to nobody."""
    stage = Stage(a=2, b=2)
    found = stage.admitted(workload("w", pod_set(1, template(["two"]))))
    other = ({"a", "b"} - found.nodes).pop()
    before = content(stage.state)
    assert isinstance(stage.review(found), Intact)
    assert content(stage.state) == before
    stage.state.remove_node(other)
    assert isinstance(stage.review(found), Intact)


@pytest.mark.parametrize("loss", ["node", "slice", "taint", "cordon", "device"])
def test_room_that_is_lost_is_found_elsewhere_or_not_at_all(loss: str) -> None:
    """Where other room is, the reservation moves; where none is left, it says why."""
    stage = Stage(a=2, b=2)
    found = stage.admitted(workload("w", pod_set(1, template(["two"]))))
    for words in ("moved", "unfit"):
        (node,) = stage.book.get(found.key).nodes  # type: ignore[union-attr]
        reason = _lose(stage.state, node, loss)
        result = stage.review(stage.book.get(found.key))  # type: ignore[arg-type]
        if words == "moved":
            assert isinstance(result, Moved)
            assert reason in result.reason
            stage.book.replace(result.reservation)
            assert stage.book.get(found.key).nodes == {"a", "b"} - {node}  # type: ignore[union-attr]
            assert isinstance(stage.review(result.reservation), Intact)
        else:
            assert isinstance(result, Unfit)
            assert reason in result.message
    stage.book.release(found.key)


def _lose(state: ClusterState, node: str, how: str) -> str:
    match how:
        case "node":
            state.remove_node(node)
            return f"node {node} is gone"
        case "slice":
            state.remove_slice(whole(node, ["small"] * 2)[0])
            return f"device d0 of pool {node} on node {node} is gone"
        case "device":
            rule = {
                "metadata": {"name": node},
                "spec": {
                    "deviceSelector": {"pool": node, "device": "d1"},
                    "taint": {"key": "broken", "effect": "NoExecute"},
                },
            }
            state.set_taint_rule(convert(DeviceTaintRule, rule))
            return f"device d1 of pool {node} on node {node} is tainted"
        case "taint":
            taints = (Taint(key="down", effect="NoExecute"),)
            before = state.nodes[node].node
            state.set_node(replace(before, spec=replace(before.spec, taints=taints)))
            return f"node {node}: node(s) had untolerated taint"
        case _:
            before = state.nodes[node].node
            state.set_node(replace(before, spec=replace(before.spec, unschedulable=True)))
            return f"node {node}: node(s) were unschedulable"


def test_a_node_that_shrank_loses_what_does_not_fit_any_more() -> None:
    """Of several places on one node, those that still fit stay."""
    stage = Stage(a=0, b=0)
    stage.state.remove_node("b")
    found = stage.admitted(workload("w", pod_set(4)))
    stage.state.set_node(make_node("a", 3))
    stage.state.set_node(make_node("b", 1))
    result = stage.review(found)
    assert isinstance(result, Moved)
    assert [place.node for place in result.reservation.places] == ["a", "a", "a", "b"]
    assert "Insufficient cpu" in result.reason


def test_names_that_run_together_are_kept_apart() -> None:
    """Pod set `b-c` of workload `a` and pod set `c` of workload `a-b` are two things."""
    stage = Stage(a=2)
    first = stage.admitted(workload("a", pod_set(1, template(["one"]), name="b-c")))
    second = stage.admitted(workload("a-b", pod_set(1, template(["one"]), name="c")))
    assert isinstance(stage.fit(workload("w", pod_set(1, template(["one"])))), Unfit)
    for reservation in (first, second):
        stage.book.release(reservation.key)
    assert isinstance(stage.fit(workload("w", pod_set(1, template(["two"])))), RoomReservation)


def test_refusals_hold_until_something_changes() -> None:
    """Workloads that are alike are refused alike, whatever their names, and none of them once there is room, a claim template or a node."""
    stage = Stage(a=2)
    held = stage.admitted(workload("w", pod_set(2, template(["one"]))))
    refusals = [stage.fit(workload(f"w{n}", pod_set(2, template(["one"])))) for n in range(3)]
    assert isinstance(refusals[0], Unfit)
    assert refusals[0] == refusals[1] == refusals[2]
    other = stage.fit(workload("w4", pod_set(3, template(["one"]))))
    assert isinstance(other, Unfit)
    assert "room for 0 of 3 pods" in other.message
    stage.book.release(held.key)
    assert isinstance(stage.fit(workload("w1", pod_set(2, template(["one"])))), RoomReservation)
    assert isinstance(stage.fit(workload("w4", pod_set(3, template(["one"])))), Unfit)
    add_node(stage.state, make_node("b"), whole("b", ["small"]))
    assert isinstance(stage.fit(workload("w4", pod_set(3, template(["one"])))), RoomReservation)

"""Stated alignments in decisions: what a pod, a claim or a class states decides about devices and nodes, and is noted on the claim."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drayman.api.alignment import ALIGN, ALIGNMENT
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.alignment import note_on
from drayman.placement.claims import without_devices
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import NoNode
from drayman.placement.decision.placements import Placement
from drayman.placement.refusing import DevicesVerdict
from drayman.placement.state import ClusterState
from oracle.build import device, device_class, exactly, first_available, piece
from oracle.selectors import GPU, NIC, ONLY_GPU, ONLY_NIC

ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"


class Hall:
    """Nodes with GPUs and network cards, and decisions about pods."""

    def __init__(self) -> None:
        self.state = ClusterState(Features(), lambda _: None)
        self.round = Decider(self.state).round(0.0)
        for name, only in (("gpu", ONLY_GPU), ("nic", ONLY_NIC)):
            self.state.set_class(convert(DeviceClass, device_class(name, only)))

    def node(self, name: str, gpus: dict[str, Any], nics: dict[str, Any]) -> Hall:
        """Devices by name, with what they are at: a root, a NUMA node, or a driver's own name for the latter."""
        status = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
        self.state.set_node(convert(Node, {"metadata": {"name": name}, "status": status}))
        for driver, found in ((GPU, gpus), (NIC, nics)):
            devices = [device(each, attrs=attrs) for each, attrs in found.items()]
            made = piece(devices, driver=driver, pool=name, name=f"{name}-{driver}", nodeName=name)
            self.state.set_slice(convert(ResourceSlice, made))
        return self

    def claim(self, name: str, *requests: Any, align: str = "", config: Any = None) -> Hall:
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        if align:
            metadata["annotations"] = {ALIGN: align}
        devices = {"requests": list(requests), "config": config or []}
        value = {"metadata": metadata, "spec": {"devices": devices}}
        self.state.set_claim(convert(ResourceClaim, value))
        return self

    def decide(self, *claims: str, align: str | None = None) -> Any:
        name = f"of-{'-'.join(claims)}"
        metadata = {"name": name, "namespace": "default", "uid": name}
        if align is not None:
            metadata["annotations"] = {ALIGN: align}  # type: ignore[assignment]
        entries = [{"name": name, "resourceClaimName": name} for name in claims]
        pod = convert(Pod, {"metadata": metadata, "spec": {"resourceClaims": entries}})
        return self.round.decide(pod)

    def given(self, *claims: str, align: str | None = None) -> set[str]:
        """The devices that a pod with these claims gets."""
        outcome = self.decide(*claims, align=align)
        assert isinstance(outcome, Placement)
        return {result.device for claim in outcome.claims for result in claim.status.results}

    def refused(self, *claims: str, align: str | None = None) -> str:
        """Why no node takes such a pod."""
        outcome = self.decide(*claims, align=align)
        assert isinstance(outcome, NoNode)
        found = set()
        for verdict in outcome.not_found.verdicts.values():
            assert isinstance(verdict, DevicesVerdict)
            found |= {shortage.detail for shortage in verdict.shortages}
            if verdict.flaw is not None:
                found.add(verdict.flaw.why)
        return " ".join(found)


def at(root: str = "", numa: int | None = None, **others: Any) -> dict[str, Any]:
    attrs: dict[str, Any] = dict(others)
    if root:
        attrs[ROOT] = root
    if numa is not None:
        attrs[NUMA] = numa
    return attrs


def two_claims(hall: Hall) -> Hall:
    """A GPU and a network card, in a claim each: no constraint of a claim could tie them."""
    return hall.claim("g", exactly("gpu", cls="gpu")).claim("n", exactly("nic", cls="nic"))


def test_a_pod_aligns_requests_of_different_claims() -> None:
    """The pod that states it is refused where it cannot be; without the statement it is placed."""
    apart = Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r1", 1)})
    assert two_claims(apart).given("g", "n") == {"g0", "n0"}
    apart = Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r1", 1)})
    assert "aligned at numaNode" in two_claims(apart).refused("g", "n", align="numaNode")
    apart = Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r1", 1)})
    assert two_claims(apart).given("g", "n", align="numaNode > any") == {"g0", "n0"}


def test_drivers_may_name_the_same_fact_differently() -> None:
    """matchAttribute compares one name; a level is compared whatever it is called."""
    hall = Hall().node(
        "n0",
        {"g0": {"numaNodeID": 0}, "g1": at(numa=1)},
        {"n0": {"dra.net/numaNode": 1}, "n1": {"dra.net/numaNode": 1}},
    )
    assert two_claims(hall).given("g", "n", align="numaNode") == {"g1", "n0"}


def test_a_node_that_reaches_a_better_level_is_preferred() -> None:
    """Levels decide between nodes before anything else about devices does."""
    hall = Hall()
    hall.node("a", {"a-g": at("r0", 0)}, {"a-n": at("r1", 0)})
    hall.node("b", {"b-g": at("r0", 0)}, {"b-n": at("r0", 0)})
    assert two_claims(hall).given("g", "n", align="pcieRoot > numaNode > any") == {"b-g", "b-n"}


def test_groups_are_aligned_each_for_itself() -> None:
    """Two pairs, each at a root of its own: what the requests of one group have does not bind the other."""
    hall = Hall().node(
        "n0",
        {"g0": at("r0", 0), "g1": at("r1", 1)},
        {"n0": at("r1", 1), "n1": at("r0", 0)},
    )
    hall.claim(
        "c",
        exactly("g1", cls="gpu"),
        exactly("n1", cls="nic"),
        exactly("g2", cls="gpu"),
        exactly("n2", cls="nic"),
        align="g1, n1: one pcieRoot; g2, n2: one pcieRoot",
    )
    outcome = hall.decide("c")
    assert isinstance(outcome, Placement)
    found = {r.request: r.device for r in outcome.claims[0].status.results}
    assert {(found["g1"], found["n1"]), (found["g2"], found["n2"])} == {("g0", "n1"), ("g1", "n0")}


def test_configuration_of_a_claim_states_the_same() -> None:
    """Addressed to the driver `drayman.dev`, for the requests that it names."""
    hall = Hall().node("n0", {"g0": at("r0", 0), "g1": at("r1", 1)}, {"n0": at("r1", 1)})
    hall.claim(
        "c", exactly("gpu", cls="gpu"), exactly("nic", cls="nic"), config=[policy("pcieRoot")]
    )
    assert hall.given("c") == {"g1", "n0"}


def policy(*levels: str) -> dict[str, Any]:
    parameters = {"apiVersion": "drayman.dev/v1alpha1", "kind": "AlignmentPolicy"}
    opaque = {"driver": "drayman.dev", "parameters": {**parameters, "levels": list(levels)}}
    return {"opaque": opaque}


def test_a_class_states_it_for_claims_that_do_not() -> None:
    """The default of an administrator: a claim that says something itself overrides it."""
    hall = Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r1", 1)})
    hall.state.set_class(
        convert(DeviceClass, device_class("gpu", ONLY_GPU, config=[policy("numaNode")]))
    )
    requests = exactly("gpu", cls="gpu"), exactly("nic", cls="nic")
    assert "aligned at numaNode" in hall.claim("c", *requests).refused("c")
    assert hall.claim("d", *requests, align="numaNode > any").given("d") == {"g0", "n0"}


def test_another_alternative_is_served_if_the_first_cannot_be_aligned() -> None:
    """What is required holds for each alternative; the first that can be served so is taken."""
    hall = Hall().node("n0", {"g0": at("r0", 0), "g1": at("r1", 1)}, {"n0": at("r1", 1)})
    wanted = first_available("gpus", exactly("two", 2, "gpu"), exactly("one", 1, "gpu"))
    hall.claim("c", wanted, exactly("nic", cls="nic"), align="one numaNode")
    assert hall.given("c") == {"g1", "n0"}


def test_what_a_claim_has_already_counts() -> None:
    """A pod that joins the users of a GPU gets the card beside it, or waits if that is required and taken."""
    hall = Hall().node(
        "n0",
        {"g0": at("r0", 0), "g1": at("r1", 1)},
        {"n0": at("r0", 0), "n1": at("r1", 1), "n2": at("r1", 1)},
    )
    hall.claim("g", exactly("gpu", cls="gpu"), config=[policy("any")])
    hall.claim("n", exactly("nic", cls="nic")).claim("m", exactly("nic", cls="nic"))
    hall.claim("first", exactly("gpu", cls="gpu"))
    assert hall.given("first") == {"g0"}
    assert hall.given("g") == {"g1"}
    assert "n1" in hall.given("g", "n", align="pcieRoot > any")
    assert "n2" in hall.given("g", "m", align="g, m: pcieRoot")
    hall.claim("x", exactly("nic", cls="nic"))
    assert "aligned at pcieRoot" in hall.refused("g", "x", align="g/gpu, x: pcieRoot")


def test_what_was_reached_is_noted_on_the_claim() -> None:
    """Level, score and the levels that were asked for; a claim without a statement gets no annotation."""
    hall = Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r1", 0)})
    two_claims(hall).claim("x", exactly("nic", cls="nic"))
    outcome = hall.decide("g", "n", align="pcieRoot > numaNode > any")
    assert isinstance(outcome, Placement)
    for claim in outcome.claims:
        (note,) = note_on(claim)
        assert (note.level, note.score, note.wanted_by) == ("numaNode", 50, "pod")
        assert json.loads(claim.metadata.annotations[ALIGNMENT])[0]["levels"] == (
            "pcieRoot > numaNode > any"
        )
        assert ALIGNMENT not in without_devices(claim).metadata.annotations
    plain = Hall().node("n0", {"g0": at("r0", 0)}, {}).claim("g", exactly("gpu", cls="gpu"))
    (claim,) = plain.decide("g").claims
    assert claim.metadata.annotations == {}


@pytest.mark.parametrize(
    ("align", "why"),
    [
        ("numa", "annotation drayman.dev/align has 'numa', which is not a level"),
        ("x: any", "names x, which is not one of its claims"),
        ("g/nic: any", "names g/nic, and the claim has no such request"),
    ],
)
def test_a_statement_that_makes_no_sense_keeps_the_pod_from_all_nodes(align: str, why: str) -> None:
    """An API server that knows nothing of it accepts any text; the pod says what is wrong with it."""
    hall = two_claims(Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r0", 0)}))
    assert why in hall.refused("g", "n", align=align)


def test_pods_that_state_different_things_do_not_share_answers() -> None:
    """Copies of a pod share what was worked out; a pod that differs in its annotation alone is not a copy."""
    hall = Hall().node("n0", {"g0": at("r0", 0)}, {"n0": at("r1", 1)})
    two_claims(hall)
    assert isinstance(hall.decide("g", "n", align="numaNode"), NoNode)
    assert isinstance(hall.decide("g", "n", align="numaNode > any"), Placement)


def test_an_invalid_note_of_another_program_is_ignored() -> None:
    """The annotation is ours, but anything may be written into it."""
    allocation = {"devices": {"results": []}}
    for text in ("pcieRoot", "[]", '[{"levels": "nowhere"}]', "{"):
        metadata = {"name": "c", "annotations": {ALIGNMENT: text}}
        value = {"metadata": metadata, "status": {"allocation": allocation}}
        assert note_on(convert(ResourceClaim, value)) == ()


def test_gpus_stay_within_an_nvlink_group_and_leave_whole_ones_free() -> None:
    """Unasked: six free GPUs of one group and two of another are not eight; a pair goes to the group that is broken already."""
    group = "drayman.dev/nvlinkGroup"
    left = {f"l{n}": at(f"r{n}", 0, **{group: "left"}) for n in range(4)}
    right = {f"r{n}": at(f"r{n + 4}", 0, **{group: "right"}) for n in range(4)}
    hall = Hall().node("n0", left | right, {})
    hall.claim("one", exactly("gpu", 1, "gpu"))
    first = hall.given("one")
    hall.claim("three", exactly("gpu", 3, "gpu"))
    three = hall.given("three")
    assert {name[0] for name in first | three} == {"l"}
    hall.claim("four", exactly("gpu", 4, "gpu"))
    assert hall.given("four") == set(right)

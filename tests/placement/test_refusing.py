"""What is kept of the reasons why the devices of a node do not serve a pod."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.allocator import Defect, Exhausted, Fault, Finality, Plan, Policy, Scope
from drayman.allocator import RejectionReason as Step
from drayman.placement.refusing import (
    DevicesVerdict,
    Flaw,
    claim_marker,
    decisive,
    devices_verdict,
    name_claims,
)
from oracle.build import (
    capacity,
    claim,
    device,
    everything,
    exactly,
    in_use,
    partitioned,
    piece,
    problem,
    shared,
    taint,
)
from oracle.nodes import JsonObject
from oracle.selectors import MODEL_A, MODEL_A_GUARDED
from oracle.strategies_hardware import NUMA
from oracle.subject import ask, claims_of

A = {"model": "a"}
B = {"model": "b"}


def refused(of: JsonObject) -> DevicesVerdict:
    """The verdict on a pod with the claims of a problem."""
    outcome = ask(of, Policy.BEST)
    assert not isinstance(outcome, Plan), "the claims can be served"
    verdict = devices_verdict(outcome, claims_of(of))
    assert isinstance(verdict, DevicesVerdict)
    assert verdict.reasons == ("cannot allocate all claims",)
    return verdict


def gpus(*names: str, **fields: Any) -> JsonObject:
    return piece([device(name, **fields) for name in names])


Numbers = tuple[int, str, int, int, int, dict[Step, int], Step]
"""Claim, request, wanted, matching, free, what was lost to which test, and what is wrong with the rest."""

CASES: dict[str, tuple[JsonObject, Finality, Numbers]] = {
    "too few": (
        problem([gpus("d0")], claim(exactly("mine", 2))),
        Finality.NEVER,
        (0, "mine", 2, 1, 1, {}, Step.COUNT),
    ),
    "another class": (
        problem([gpus("d0", "d1")], claim(exactly("mine", 1, "nic"))),
        Finality.NEVER,
        (0, "mine", 1, 0, 0, {}, Step.COUNT),
    ),
    "in use": (
        problem([gpus("d0", "d1")], claim(exactly("mine", 2)), allocated=in_use("d0")),
        Finality.NOT_NOW,
        (0, "mine", 2, 2, 1, {Step.IN_USE: 1}, Step.COUNT),
    ),
    "tainted": (
        problem([gpus("d0", taints=[taint("lease")])], claim(exactly("mine"))),
        Finality.NEVER,
        (0, "mine", 1, 1, 0, {Step.TAINTED: 1}, Step.COUNT),
    ),
    "too small": (
        problem(
            [piece([shared("d0", {"memory": capacity(4)})])],
            claim(exactly("mine", asks={"memory": 8})),
        ),
        Finality.NEVER,
        (0, "mine", 1, 1, 0, {Step.CAPACITY: 1}, Step.COUNT),
    ),
    "no counters": (
        problem(
            partitioned([device("d0", spends={"card": {"units": 3}})], {"card": {"units": 2}}),
            claim(exactly("mine")),
        ),
        Finality.NEVER,
        (0, "mine", 1, 1, 0, {Step.COUNTERS: 1}, Step.COUNT),
    ),
    "counters that others have used": (
        problem(
            partitioned(
                [device(n, spends={"card": {"units": 1}}) for n in ("d0", "d1")],
                {"card": {"units": 1}},
            ),
            claim(exactly("mine")),
            allocated=in_use("d0"),
        ),
        Finality.NOT_NOW,
        (0, "mine", 1, 2, 0, {Step.IN_USE: 1, Step.COUNTERS: 1}, Step.COUNT),
    ),
    "several tests": (
        problem(
            [piece([*(device(n, attrs=A) for n in ("d0", "d1")), device("d2", attrs=B)])],
            claim(exactly("mine", 2, select=[MODEL_A_GUARDED])),
            allocated=in_use("d0"),
        ),
        Finality.NOT_NOW,
        (0, "mine", 2, 2, 1, {Step.IN_USE: 1}, Step.COUNT),
    ),
    "constraint": (
        problem(
            [piece([device("d0", attrs={NUMA: 0}), device("d1", attrs={NUMA: 1})])],
            claim(exactly("mine", 2), match=[NUMA]),
        ),
        Finality.NEVER,
        (0, "mine", 2, 2, 2, {}, Step.CONSTRAINT),
    ),
    "all of none": (
        problem([gpus("d0")], claim(everything("mine", "nic"))),
        Finality.NEVER,
        (0, "mine", 0, 0, 0, {}, Step.COUNT),
    ),
    "no devices at all": (
        problem([], claim(exactly("mine"))),
        Finality.NEVER,
        (0, "mine", 1, 0, 0, {}, Step.NO_DEVICES),
    ),
    "the second claim": (
        problem([gpus("d0", "d1")], claim(exactly("one")), claim(exactly("other", 3))),
        Finality.NEVER,
        (1, "other", 3, 2, 2, {}, Step.COUNT),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_says_where_the_devices_went(name: str) -> None:
    """How final it is, and of the request at fault how many match, how many are lost to what, and how many are left."""
    of, kind, expected = CASES[name]
    verdict = refused(of)
    (found,) = decisive(verdict.shortages)
    numbers = (found.claim, found.request, found.wanted, found.matching, found.free)
    assert (verdict.kind, *numbers) == (kind, *expected[:5])
    assert (dict(found.lost), found.lacks) == expected[5:]
    assert all(found.lost_to(test) == number for test, number in expected[5].items())


def test_requests_that_compete_are_all_at_fault() -> None:
    """Each could be served by itself: none is to blame more than the others."""
    made = problem([gpus("d0", "d1")], claim(exactly("one"), exactly("other", 2)))
    lacking = decisive(refused(made).shortages)
    assert [(s.request, s.lacks) for s in lacking] == [
        ("one", Step.COMBINATION),
        ("other", Step.COMBINATION),
    ]


def test_more_than_a_claim_may_have() -> None:
    """Asked for too much, however many devices there are."""
    made = problem([gpus(*(f"d{n}" for n in range(40)))], claim(exactly("mine", 33)))
    why = "needs 33 devices, a claim may have 32"
    assert refused(made).flaw == Flaw(Defect.TOO_MANY, 0, "", why)


def test_a_selector_that_fails_is_named() -> None:
    """An expression that cannot be evaluated is told with claim and request, and without the device: nodes share it."""
    flaw = refused(problem([gpus("d0")], claim(exactly("mine", select=[MODEL_A])))).flaw
    assert flaw is not None
    assert (flaw.defect, flaw.claim, flaw.request) == (Defect.SELECTOR, 0, "mine")
    assert "model" in flaw.why
    assert "d0" not in flaw.why


def test_a_pool_that_is_broken_does_not_hide_what_is_short() -> None:
    """The fault of the node is told, and what would be said without it."""
    made = problem(
        [gpus("d0"), piece(["x", "x"], pool="broken")],
        claim(exactly("mine")),
        allocated=in_use("d0"),
    )
    verdict = refused(made)
    assert verdict.flaw is not None
    assert verdict.flaw.defect is Defect.POOL
    assert (verdict.kind, verdict.is_temporary) == (Finality.NOT_NOW, True)
    assert [s.lost for s in verdict.shortages] == [((Step.IN_USE, 1),)]


def test_copies_of_a_pod_share_a_verdict() -> None:
    """The verdict does not depend on the names of claims."""
    first = problem([gpus("d0")], claim(exactly("mine", 2)))
    renamed = {
        **first,
        "claims": [{**first["claims"][0], "metadata": {"name": "x", "namespace": "y"}}],
    }
    assert refused(first) is refused(renamed)


def test_markers_stand_for_the_names_of_claims() -> None:
    """A text is shared by copies of a pod; each reads the names of its own claims."""
    claims = claims_of(problem([], claim(exactly("r")), claim(exactly("r"))))
    text = f"Claim {claim_marker(1)}, claim {claim_marker(2)}"
    assert name_claims(text, claims) == "Claim claim-1, claim of extended resources"


def test_a_name_that_begins_like_another() -> None:
    """A fault about claim c-2 is not told of claim c."""
    made = problem([gpus("d0")], claim(exactly("r")), claim(exactly("r")))
    for item, name in zip(made["claims"], ("c", "c-2"), strict=True):
        item["metadata"]["name"] = name
    verdict = devices_verdict(Fault("claim default/c-2: no", Scope.FATAL), claims_of(made))
    assert isinstance(verdict, DevicesVerdict)
    assert verdict.flaw is not None
    assert name_claims(verdict.flaw.why, claims_of(made)) == "claim c-2: no"


def test_the_rejections_of_a_claim_without_a_namespace_are_its_own() -> None:
    """A claim that has no namespace has one name in rejections and in verdicts, so its shortage is not reported of the first claim."""
    made = problem([gpus("d0")], claim(exactly("r")), claim(exactly("r", 2)))
    for item in made["claims"]:
        del item["metadata"]["namespace"]
    assert [(shortage.claim, shortage.wanted) for shortage in refused(made).shortages] == [(1, 2)]


def test_a_search_that_gave_up_says_so() -> None:
    """Nobody knows whether the claims could be served, and leaving pods would not help."""
    verdict = devices_verdict(Exhausted(1000), ())
    assert "given up after 1000 steps" in verdict.reasons[0]
    assert not verdict.resolvable


def test_only_a_lack_of_devices_may_be_resolved_by_preemption() -> None:
    """Devices in use may be given back; a broken selector stays broken."""
    lack = problem([gpus("d0")], claim(exactly("r")), allocated=in_use("d0"))
    outcome = ask(lack, Policy.BEST)
    assert not isinstance(outcome, Plan)
    assert devices_verdict(outcome, claims_of(lack)).resolvable
    broken = problem([gpus("d0")], claim(exactly("r", select=[MODEL_A])))
    outcome = ask(broken, Policy.BEST)
    assert not isinstance(outcome, Plan)
    assert not devices_verdict(outcome, claims_of(broken)).resolvable
    never = problem([gpus("d0")], claim(exactly("r", 2)))
    outcome = ask(never, Policy.BEST)
    assert not isinstance(outcome, Plan)
    assert not devices_verdict(outcome, claims_of(never)).resolvable, "there is one device at most"


@pytest.mark.parametrize(("used", "missing"), [(("d0",), 1), (("d0", "d1"), 2)])
def test_fewer_devices_than_are_missing_change_nothing(used: tuple[str, ...], missing: int) -> None:
    """A request for all three devices of a node lacks as many as are in use."""
    asked = problem([gpus("d0", "d1", "d2")], claim(exactly("r", 3)), allocated=in_use(*used))
    outcome = ask(asked, Policy.BEST)
    assert not isinstance(outcome, Plan)
    verdict = devices_verdict(outcome, claims_of(asked))
    assert isinstance(verdict, DevicesVerdict)
    assert verdict.least_missing == missing

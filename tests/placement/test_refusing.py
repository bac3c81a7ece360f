"""The words in which a pod is told why the devices of a node do not serve it."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.allocator import Exhausted, Fault, Plan, Policy
from drayman.placement.refusing import devices_verdict, name_claims
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


def told(of: JsonObject) -> str:
    """What a pod with the claims of a problem would read."""
    outcome = ask(of, Policy.BEST)
    assert not isinstance(outcome, Plan), "the claims can be served"
    verdict = devices_verdict(outcome, claims_of(of))
    assert not verdict.fits
    (text,) = verdict.reasons
    return name_claims(text, claims_of(of))


def gpus(*names: str, **fields: Any) -> JsonObject:
    return piece([device(name, **fields) for name in names])


CASES: dict[str, tuple[JsonObject, str]] = {
    "too few": (
        problem([gpus("d0")], claim(exactly("mine", 2))),
        "claim claim-0, request mine: 1 of 2 left",
    ),
    "another class": (
        problem([gpus("d0", "d1")], claim(exactly("mine", 1, "nic"))),
        "request mine: 2 not of the class and 0 of 1 left",
    ),
    "not selected": (
        problem(
            [piece([device("d0", attrs={"model": "b"}), device("d1", attrs={"model": "b"})])],
            claim(exactly("mine", select=[MODEL_A_GUARDED])),
        ),
        "request mine: 2 not selected and 0 of 1 left",
    ),
    "in use": (
        problem([gpus("d0", "d1")], claim(exactly("mine", 2)), allocated=in_use("d0")),
        "request mine: 1 in use and 1 of 2 left",
    ),
    "tainted": (
        problem([gpus("d0", taints=[taint("lease")])], claim(exactly("mine"))),
        "request mine: 1 tainted and 0 of 1 left",
    ),
    "too small": (
        problem(
            [piece([shared("d0", {"memory": capacity(4)})])],
            claim(exactly("mine", asks={"memory": 8})),
        ),
        "request mine: 1 without enough capacity and 0 of 1 left",
    ),
    "no counters": (
        problem(
            partitioned([device("d0", spends={"card": {"units": 3}})], {"card": {"units": 2}}),
            claim(exactly("mine")),
        ),
        "request mine: 1 without counters left and 0 of 1 left",
    ),
    "several steps": (
        problem(
            [
                piece(
                    [
                        device("d0", attrs=A),
                        device("d1", attrs=A),
                        device("d2", attrs={"model": "b"}),
                    ]
                )
            ],
            claim(exactly("mine", 2, select=[MODEL_A_GUARDED])),
            allocated=in_use("d0"),
        ),
        "request mine: 1 not selected, 1 in use and 1 of 2 left",
    ),
    "constraint": (
        problem(
            [piece([device("d0", attrs={NUMA: 0}), device("d1", attrs={NUMA: 1})])],
            claim(exactly("mine", 2), match=[NUMA]),
        ),
        "claim claim-0, request mine",
    ),
    "all of none": (problem([gpus("d0")], claim(everything("mine", "nic"))), "request mine"),
    "the second claim": (
        problem([gpus("d0", "d1")], claim(exactly("one")), claim(exactly("other", 2))),
        "claim-1, request other",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_says_where_the_devices_went(name: str) -> None:
    """Claim, request, how many devices fell out at each step, and how many were left of those wanted."""
    of, words = CASES[name]
    text = told(of)
    assert text.startswith("cannot allocate all claims: ")
    assert words in text


def test_more_than_a_claim_may_have() -> None:
    """Asked for too much, however many devices there are."""
    text = told(problem([gpus(*(f"d{n}" for n in range(40)))], claim(exactly("mine", 33))))
    assert text == "claim claim-0 needs 33 devices, a claim may have 32"


def test_a_selector_that_fails_is_named() -> None:
    """An expression that cannot be evaluated is told with claim and request."""
    text = told(problem([gpus("d0")], claim(exactly("mine", select=[MODEL_A]))))
    assert "claim claim-0" in text
    assert "mine" in text
    assert "model" in text


def test_copies_of_a_pod_share_a_verdict_and_read_their_own_names() -> None:
    """The verdict does not depend on the names of claims; the text for each pod does."""
    first = problem([gpus("d0")], claim(exactly("mine", 2)))
    renamed = {
        **first,
        "claims": [{**first["claims"][0], "metadata": {"name": "x", "namespace": "y"}}],
    }
    verdicts = []
    for of in (first, renamed):
        outcome = ask(of, Policy.BEST)
        assert not isinstance(outcome, Plan)
        verdicts.append(devices_verdict(outcome, claims_of(of)))
    assert verdicts[0] is verdicts[1]
    assert "claim x, request mine" in name_claims(verdicts[0].reasons[0], claims_of(renamed))


def test_a_name_that_begins_like_another() -> None:
    """A fault about claim c-2 is not told of claim c."""
    made = problem([gpus("d0")], claim(exactly("r")), claim(exactly("r")))
    for item, name in zip(made["claims"], ("c", "c-2"), strict=True):
        item["metadata"]["name"] = name
    scope: Any = None
    verdict = devices_verdict(Fault("claim default/c-2, request r: no", scope), claims_of(made))
    assert name_claims(verdict.reasons[0], claims_of(made)) == "claim c-2, request r: no"


def test_the_claim_of_extended_resources_has_no_name() -> None:
    """It does not exist while the pod waits."""
    made = problem([gpus("d0")], claim(exactly("r", 2)))
    outcome = ask(made, Policy.BEST)
    assert not isinstance(outcome, Plan)
    verdict = devices_verdict(outcome, claims_of(made))
    assert "claim of extended resources" in name_claims(verdict.reasons[0], [])


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

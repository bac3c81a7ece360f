"""Questions: claims worked out once and asked for others of the same template, on any node, at any time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from drayman.allocator import Plan, Question, search
from drayman.api.codec import convert, to_dict
from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.inventory import Ledger
from oracle.build import claim, device, device_class, exactly, piece, problem
from oracle.nodes import JsonObject
from oracle.strategies import problems
from oracle.subject import BEST, FIRST_FIT, claims_of, inventory_of, ledger_of, node_of


def renamed(claims: list[ResourceClaim]) -> list[ResourceClaim]:
    return [
        msgspec.structs.replace(
            each, metadata=msgspec.structs.replace(each.metadata, name=f"{each.metadata.name}-next")
        )
        for each in claims
    ]


def answer(outcome: object) -> object:
    if isinstance(outcome, Plan):
        return [(each.claim.metadata.name, to_dict(each.allocation)) for each in outcome.claims]
    return repr(outcome)


@given(asked=problems())
def test_a_question_asked_for_other_claims_is_their_own_question(asked: JsonObject) -> None:
    """Claims that differ in name get the answer they would get if nobody had asked before."""
    inventory, ledger, node = inventory_of(asked), ledger_of(asked), node_of(asked)
    claims = claims_of(asked)
    question = Question(claims)
    search(inventory.view(node, ledger), question)
    others = renamed(claims)
    for policy in (FIRST_FIT, BEST):
        view = inventory.view(node, ledger)
        reused = search(view, question.asked_for(others), policy=policy)
        assert answer(reused) == answer(search(view, others, policy=policy))


def test_a_question_is_not_asked_for_claims_that_want_something_else() -> None:
    """Other specs, another order or another number of claims are another question."""
    one, two = claims_of(problem([], claim(exactly()), claim(exactly(count=2))))
    question = Question([one, two])
    for others in ([two, one], [one], [one, two, two]):
        with pytest.raises(ValueError, match="something else"):
            question.asked_for(others)


def test_a_question_notices_that_a_class_has_changed() -> None:
    """Selectors are those of the class as it is when the question is put."""
    asked = problem([piece([device("a", attrs={"model": "x"}), device("b")])], claim(exactly()))
    inventory, node = inventory_of(asked), node_of(asked)
    question = Question(claims_of(asked))
    before = search(inventory.view(node, Ledger()), question)
    picky = device_class("gpu", 'device.driver == "gpu.example.com" && !("model" in device.attributes["gpu.example.com"])')  # fmt: skip
    inventory.apply_class(convert(DeviceClass, picky))
    after = search(inventory.view(node, Ledger()), question)
    assert isinstance(before, Plan)
    assert isinstance(after, Plan)
    chosen = [plan.claims[0].allocation.devices.results[0].device for plan in (before, after)]
    assert chosen == ["a", "b"]

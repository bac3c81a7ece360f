"""A search that leaves out what its selectors do not want gives the answers of a search that looks at every device of the node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event, given

from drayman.allocator import Plan, Question, Refusal, search, signature
from drayman.allocator.problem.focus import focused
from drayman.api.codec import to_dict
from drayman.inventory import NodeView, hardware
from oracle.nodes import JsonObject
from oracle.strategies_split import split_problems
from oracle.subject import BEST, FIRST_FIT, claims_of, inventory_of, ledger_of, node_of

POLICIES = pytest.mark.parametrize("policy", [FIRST_FIT, BEST], ids=["first-fit", "best"])


@pytest.fixture(autouse=True, scope="module", params=["as it is", "two pools are many"])
def many_pools(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small problems are treated as they are, and like those with thousands of pools."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(hardware, "_MANY_POOLS", 2)
        yield


def view_of(asked: JsonObject) -> NodeView:
    return inventory_of(asked).view(node_of(asked), ledger_of(asked))


def in_one_piece(view: NodeView) -> NodeView:
    """The same node with nothing to leave out."""
    taints = view.hardware.taints(view.taints[0].rules)
    return NodeView(
        view.node,
        (view.usage,),
        view.time,
        (taints,),
        view.device_class,
        view.problems,
        lambda parts: parts[0],
    )


def answer(view: NodeView, asked: JsonObject, policy: Any) -> Any:
    """Everything about an outcome but the number of steps."""
    outcome = search(view, claims_of(asked), policy=policy)
    if isinstance(outcome, Plan):
        given = [to_dict(item.allocation) for item in outcome.claims]
        return given, outcome.basis, outcome.quality, outcome.preference_score, outcome.warnings
    if isinstance(outcome, Refusal):
        return _reasons(outcome)
    beneath = getattr(outcome, "refusal", None)
    return {
        **_fields(outcome),
        "steps": None,
        "refusal": None if beneath is None else _reasons(beneath),
    }


def _reasons(refusal: Refusal) -> Any:
    return refusal.kind, refusal.rejections, refusal.warnings


def _fields(outcome: Any) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in type(outcome).__dataclass_fields__}


@POLICIES
@given(asked=split_problems())
def test_what_is_left_out_changes_no_answer(policy: Any, asked: JsonObject) -> None:
    """Devices, quality, warnings and errors are the same, and so are kind and reasons of a refusal, device by device."""
    view = view_of(asked)
    left_out = focused(view, Question(claims_of(asked))).left_out
    event("left out" if left_out else "both parts" if len(view.parts) > 1 else "one part")
    assert answer(view, asked, policy) == answer(in_one_piece(view), asked, policy)


@given(asked=split_problems(), other=split_problems())
def test_equal_signatures_mean_equal_answers(asked: JsonObject, other: JsonObject) -> None:
    """Of two states of a node with the same slices, equal signatures promise the same outcome, counts and quality."""
    inventory, node, wanted = inventory_of(asked), node_of(asked), claims_of(asked)
    one = inventory.view(node, ledger_of(asked))
    two = inventory.view(node, ledger_of({**asked, "allocated": _held_in(asked, other)}))
    if signature(one, wanted) == signature(two, wanted):
        for policy in (FIRST_FIT, BEST):
            first, second = (_counted(search(v, wanted, policy=policy)) for v in (one, two))
            assert first == second


def _held_in(asked: JsonObject, other: JsonObject) -> JsonObject:
    """The holdings of the problem but for those of a driver, which the other one has a say in."""
    kept = other["slices"][0]["spec"]["driver"]
    return {
        kind: [entry for entry in entries if entry["driver"] == kept]
        for kind, entries in asked["allocated"].items()
    }


def _counted(outcome: Any) -> Any:
    if isinstance(outcome, Plan):
        return outcome.quality
    if isinstance(outcome, Refusal):
        return outcome.kind, [
            (r.request, r.reason, r.count, r.remaining) for r in outcome.rejections
        ]
    return type(outcome)

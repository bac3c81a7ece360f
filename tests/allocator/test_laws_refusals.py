"""Laws of refusals: the three kinds say what would have to change, and the rejections are facts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given

from drayman.allocator import Finality, Plan, Refusal
from oracle.first_fit import Fatal, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import problems
from oracle.subject import BEST, FIRST_FIT, ask

NOTHING: JsonObject = {"devices": [], "sharedDevices": [], "aggregatedCapacity": []}
POLICIES = pytest.mark.parametrize("policy", [FIRST_FIT, BEST], ids=["first-fit", "best"])


def refusal(problem: JsonObject, policy: Any) -> Refusal:
    """The refusal of a problem without errors; problems that are not refused are left out."""
    model = Model(problem)
    assume(
        not any(choice.failing for c in model.claims for r in c.requests for choice in r.choices)
    )
    try:
        prepare(model)
    except Fatal:
        assume(False)
    outcome = ask(problem, policy)
    assume(isinstance(outcome, Refusal))
    assert isinstance(outcome, Refusal)
    return outcome


@POLICIES
@given(problem=problems())
def test_never_stays_refused_on_the_emptied_node(policy: Any, problem: JsonObject) -> None:
    """Giving everything back helps exactly where the refusal does not say never."""
    refused = refusal(problem, policy)
    emptied = ask({**problem, "allocated": NOTHING}, policy)
    assert isinstance(emptied, Plan) == (refused.kind is not Finality.NEVER), refused


@POLICIES
@given(problem=problems())
def test_rejections_name_devices_of_the_node_and_add_up(policy: Any, problem: JsonObject) -> None:
    """Every rejection is about a request that was asked and devices that the node has."""
    refused = refusal(problem, policy)
    names = {choice.name for c in Model(problem).claims for r in c.requests for choice in r.choices}
    known = {tuple(device) for device in problem["devices"]}
    assert refused.rejections
    for rejection in refused.rejections:
        assert rejection.request in names
        assert {tuple(device) for device in rejection.devices} <= known
        assert rejection.remaining >= 0

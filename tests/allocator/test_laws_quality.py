"""The quality of a plan is its cost by the documented rules, whatever policy has made the plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drayman.allocator import Plan
from oracle.best import cost_of
from oracle.brute import Enumerator, TooLarge
from oracle.build import claim, device, exactly, first_available, piece, problem
from oracle.first_fit import Fatal, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import placed_problems, problems
from oracle.subject import BEST, FIRST_FIT, ask

POLICIES = st.sampled_from([FIRST_FIT, BEST])


def entries_of(plan: Plan) -> list[tuple[int, str, tuple[str, str, str]]]:
    return sorted(
        (number, entry.request, (entry.driver, entry.pool, entry.device))
        for number, item in enumerate(plan.claims)
        for entry in item.allocation.devices.results
    )


def expected_quality(asked: JsonObject, plan: Plan) -> Any:
    """What the rules say about the allocation of the plan, found among all valid ones."""
    model = Model(asked)
    prepare(model)
    wanted = entries_of(plan)
    for placement in Enumerator(model, 30_000).placements():
        found = [(e.claim, e.choice.name, model.devices[e.device].id) for e in placement.entries]
        if sorted(found) == wanted:
            alternatives, *cost, _ = cost_of(model, placement)
            return list(alternatives), cost
    raise AssertionError("the plan is none of the valid allocations")


@given(asked=st.one_of(problems(), placed_problems()), policy=POLICIES)
def test_quality_is_what_the_rules_say(asked: JsonObject, policy: Any) -> None:
    """Alternatives and every part of the cost agree with the rules, written a second time."""
    plan = ask(asked, policy)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    try:
        alternatives, cost = expected_quality(asked, plan)
    except (TooLarge, Fatal):
        assume(False)
    assert list(plan.quality.alternatives) == alternatives
    assert list(plan.quality.cost) == cost


@given(asked=placed_problems())
def test_best_is_at_least_as_good_as_first_fit(asked: JsonObject) -> None:
    """Qualities of plans for the same claims can be compared."""
    one, other = ask(asked, BEST), ask(asked, FIRST_FIT)
    assume(isinstance(one, Plan) and isinstance(other, Plan))
    assert isinstance(one, Plan)
    assert isinstance(other, Plan)
    assert one.quality <= other.quality


LISTED = first_available("f", exactly("three", 3), exactly("two", 2), exactly("one"))


@pytest.mark.parametrize(
    ("devices", "claims", "score"),
    [
        (1, [claim(exactly())], 0),
        (3, [claim(LISTED)], 8),
        (1, [claim(LISTED)], 6),
        (3, [claim(LISTED, exactly())], 7),
        (5, [claim(LISTED), claim(LISTED)], 15),
    ],
    ids=["exact", "first choice", "last choice", "beside an exact one", "two claims"],
)
def test_preference_counts_how_early_alternatives_are(
    devices: int, claims: list[JsonObject], score: int
) -> None:
    """Eight less the index for each prioritized list; exact requests count nothing."""
    plan = ask(problem([piece([device(f"d{n}") for n in range(devices)])], *claims), BEST)
    assert isinstance(plan, Plan)
    assert plan.preference_score == score

"""Laws of every answer, over random problems with all features mixed, against the independent searches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, target
from hypothesis import strategies as st

from oracle.brute import TooLarge, exists
from oracle.compare import normal
from oracle.first_fit import Fatal, first_fit, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import problems
from oracle.subject import BEST, FIRST_FIT, answer
from oracle.validity import chosen_alternatives, violations

POLICIES = pytest.mark.parametrize("policy", [FIRST_FIT, BEST], ids=["first-fit", "best"])
SMALL = 30_000


def without_times(line: JsonObject) -> JsonObject:
    return {name: value for name, value in line.items() if name not in ("elapsed_us", "cold_us")}


def fits(problem: JsonObject) -> bool:
    """Whether any valid allocation exists; problems that are too large to tell are left out."""
    try:
        return exists(Model(problem), SMALL)
    except TooLarge:
        assume(False)
        raise


@POLICIES
@given(problem=problems())
def test_every_allocation_is_valid(policy: Any, problem: JsonObject) -> None:
    """Whatever is allocated passes every rule of the checker."""
    line = answer(problem, policy)
    target(float(line["outcome"] == "allocated"))
    if line["outcome"] == "allocated":
        assert violations(problem, line["results"]) == []


@given(problem=problems())
def test_first_fit_answers_as_the_literal_search_does(problem: JsonObject) -> None:
    """Same outcome, same scope of errors, same devices, same derived fields."""
    try:
        expected = first_fit(problem, SMALL)
    except TooLarge:
        assume(False)
        raise
    line = answer(problem, FIRST_FIT)
    assert line["outcome"] == expected.outcome, expected.error
    assert (line.get("error_scope") or "") == expected.error_scope
    assert normal(line.get("results")) == normal(expected.results)


@given(problem=problems())
def test_first_fit_allocates_exactly_what_can_be_allocated(problem: JsonObject) -> None:
    """Errors aside, there is an allocation if and only if exhaustive search finds one."""
    line = answer(problem, FIRST_FIT)
    assume(line["outcome"] != "error")
    assert line["outcome"] == ("allocated" if fits(problem) else "unallocatable")


@given(problem=problems())
def test_best_allocates_exactly_what_can_be_allocated(problem: JsonObject) -> None:
    """A selector that fails on a device only takes that device out; nothing else may be lost."""
    try:
        prepare(Model(problem))
    except Fatal:
        assume(False)
    line = answer(problem, BEST)
    assert (line["outcome"] == "allocated") == fits(problem), line


@given(problem=problems())
def test_best_never_serves_a_later_alternative_than_first_fit(problem: JsonObject) -> None:
    """The vector of chosen alternatives is the user's own order of preference: `best` is at least as good."""
    first, best = answer(problem, FIRST_FIT), answer(problem, BEST)
    assume(first["outcome"] == "allocated")
    assert chosen_alternatives(problem, best["results"]) <= chosen_alternatives(
        problem, first["results"]
    )


@POLICIES
@given(problem=problems(), data=st.data())
def test_the_order_of_slices_and_classes_has_no_meaning(
    policy: Any, problem: JsonObject, data: st.DataObject
) -> None:
    """Shuffling what the API server lists in no order changes nothing."""
    shuffled = {
        **problem,
        "slices": data.draw(st.permutations(problem["slices"])),
        "classes": data.draw(st.permutations(problem["classes"])),
    }
    assert without_times(answer(shuffled, policy)) == without_times(answer(problem, policy))


@POLICIES
@given(problem=problems())
def test_the_same_question_has_the_same_answer(policy: Any, problem: JsonObject) -> None:
    """Nothing is left over from one search to the next, steps included."""
    assert without_times(answer(problem, policy)) == without_times(answer(problem, policy))


@POLICIES
@given(problem=problems(), limit=st.integers(1, 60))
def test_the_step_limit_is_an_outcome_of_its_own(
    policy: Any, problem: JsonObject, limit: int
) -> None:
    """A search that is cut short says so, or gives a valid allocation; it never refuses for lack of steps."""
    full, cut = answer(problem, policy), answer(problem, policy, limit)
    assert cut["steps"] <= limit
    if cut["outcome"] == "timeout":
        assert not cut.get("results")
    else:
        assert cut["outcome"] == full["outcome"]
    if cut["outcome"] == "allocated":
        assert violations(problem, cut["results"]) == []

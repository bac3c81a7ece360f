"""The last phase of first fit, which takes the biggest requests first, answers as rightly as the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given

from drayman.allocator.policies import firstfit
from oracle.brute import TooLarge
from oracle.first_fit import first_fit
from oracle.nodes import JsonObject
from oracle.strategies import mixed_problems, problems
from oracle.subject import FIRST_FIT, answer
from oracle.validity import violations


@pytest.fixture(autouse=True, scope="module")
def biggest_first_at_once() -> Iterator[None]:
    """The phases before it have no steps."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PLAIN_STEPS", "PLAIN_STEPS_PER_SLOT", "STEPS_BEFORE_ALONE", "ALONE_STEPS"):
            patch.setattr(firstfit, name, 0)
        patch.setattr(firstfit, "GIVEN_ORDER_STEPS", 0)
        yield


def assert_rightly_answered(asked: JsonObject) -> None:
    try:
        expected = first_fit(asked, 30_000)
    except TooLarge:
        assume(False)
    line = answer(asked, FIRST_FIT)
    assert line["outcome"] == expected.outcome, expected.error
    if line["outcome"] == "allocated":
        assert violations(asked, line["results"]) == []


@given(asked=problems())
def test_the_order_of_requests_does_not_decide_whether_there_is_an_answer(
    asked: JsonObject,
) -> None:
    """Whatever comes first, an allocation is found exactly when there is one, and it is valid."""
    assert_rightly_answered(asked)


@given(asked=mixed_problems(most_devices=10))
def test_likewise_on_larger_nodes(asked: JsonObject) -> None:
    """Likewise with more devices."""
    assert_rightly_answered(asked)

"""The oracle itself agrees with the recorded facts about upstream, so that it can be trusted where there are none."""

from __future__ import annotations

import pytest

from conformance.records import ALLOCATOR, UPSTREAMS_TABLE, problems
from oracle.brute import TooLarge, exists
from oracle.compare import normal
from oracle.first_fit import first_fit
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.validity import violations

SMALL = 2_000
SMALL_FILES = ("allocator/directed", "allocator/fuzz")
# Two of its alternatives have the same name, so its results cannot be attributed.
AMBIGUOUS = "consumable-capacity-multi-allocatable-device-with-subrequest"


def recorded(file: str) -> list[JsonObject]:
    return [problem for problem in problems(file) if not problem.get("quirk")]


@pytest.mark.parametrize("file", [*ALLOCATOR, UPSTREAMS_TABLE])
def test_upstreams_results_are_valid(file: str) -> None:
    """The checker accepts every allocation that upstream returned."""
    for problem in recorded(file):
        if problem["expect"]["outcome"] == "allocated" and problem["name"] != AMBIGUOUS:
            assert violations(problem, problem["expect"]["results"]) == [], problem["name"]


@pytest.mark.parametrize("file", [*SMALL_FILES, UPSTREAMS_TABLE])
def test_the_literal_search_reproduces_upstream(file: str) -> None:
    """Same devices in the same order, same outcome, same results, wherever the search is small."""
    compared = 0
    for problem in recorded(file):
        model, expect = Model(problem), problem["expect"]
        assert [list(device.id) for device in model.devices] == problem["devices"]
        try:
            found = first_fit(problem, SMALL)
        except TooLarge:
            continue
        compared += 1
        assert found.outcome == expect["outcome"], problem["name"]
        assert normal(found.results) == normal(expect.get("results")), problem["name"]
    assert compared > 0.9 * len(recorded(file))


@pytest.mark.parametrize("file", SMALL_FILES)
def test_exhaustive_search_knows_what_exists(file: str) -> None:
    """The recorded verdict of another exhaustive search is ours."""
    for problem in recorded(file):
        expected = problem["expect"].get("valid_exists")
        if expected is None:
            continue
        try:
            assert exists(Model(problem), SMALL) is expected, problem["name"]
        except TooLarge:
            continue

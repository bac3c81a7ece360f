"""The oracle itself agrees with the recorded facts about upstream, so that it can be trusted where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oracle.brute import TooLarge, exists
from oracle.compare import normal
from oracle.first_fit import first_fit
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.validity import violations

VECTORS = Path(__file__).parents[3] / "shared" / "conformance" / "allocator"
pytestmark = pytest.mark.skipif(
    not VECTORS.is_dir(), reason=f"the conformance vectors are not there: {VECTORS}"
)
SMALL = 2_000
# Two of its alternatives have the same name, so its results cannot be attributed.
AMBIGUOUS = "consumable-capacity-multi-allocatable-device-with-subrequest"


def recorded(name: str) -> list[JsonObject]:
    text = (VECTORS / name).read_text()
    found = json.loads(text) if name.endswith(".json") else map(json.loads, text.splitlines())
    return [problem for problem in found if not problem.get("quirk")]


@pytest.mark.parametrize("name", ["table.json", "directed.jsonl", "fuzz.jsonl", "scaling.jsonl"])
def test_upstreams_results_are_valid(name: str) -> None:
    """The checker accepts every allocation that upstream returned."""
    for problem in recorded(name):
        if problem["expect"]["outcome"] == "allocated" and problem["name"] != AMBIGUOUS:
            assert violations(problem, problem["expect"]["results"]) == [], problem["name"]


@pytest.mark.parametrize("name", ["table.json", "directed.jsonl", "fuzz.jsonl"])
def test_the_literal_search_reproduces_upstream(name: str) -> None:
    """Same devices in the same order, same outcome, same results, wherever the search is small."""
    compared = 0
    for problem in recorded(name):
        model, expect = Model(problem), problem["expect"]
        assert [list(device.id) for device in model.devices] == problem["devices"]
        try:
            found = first_fit(problem, SMALL)
        except TooLarge:
            continue
        compared += 1
        assert found.outcome == expect["outcome"], problem["name"]
        assert normal(found.results) == normal(expect.get("results")), problem["name"]
    assert compared > 0.9 * len(recorded(name))


@pytest.mark.parametrize("name", ["directed.jsonl", "fuzz.jsonl"])
def test_exhaustive_search_knows_what_exists(name: str) -> None:
    """The recorded verdict of another exhaustive search is ours."""
    for problem in recorded(name):
        expected = problem["expect"].get("valid_exists")
        if expected is None:
            continue
        try:
            assert exists(Model(problem), SMALL) is expected, problem["name"]
        except TooLarge:
            continue

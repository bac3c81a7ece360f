"""Recorded allocations, solved by both policies. Upstream's own table of cases takes part where it is beside the repository."""

from __future__ import annotations

import pytest

from conformance.allocator import departures, has_recorded_devices, is_same_allocation
from conformance.differences import assert_only_known_differences
from conformance.records import ALLOCATOR, UPSTREAMS_TABLE, JsonObject, problems
from oracle.subject import BEST, FIRST_FIT, answer

FILES = (*ALLOCATOR, UPSTREAMS_TABLE)


@pytest.mark.parametrize("file", FILES)
def test_first_fit_gives_upstreams_answers(file: str) -> None:
    """Every outcome is upstream's or, where that is a bug, what the rules say; what is allocated are upstream's devices."""
    asked = problems(file)
    found = {problem["name"]: "; ".join(first_fit_departures(problem)) for problem in asked}
    assert_only_known_differences(file, found, {name: text for name, text in found.items() if text})


def first_fit_departures(problem: JsonObject) -> list[str]:
    given = answer(problem, FIRST_FIT)
    found = list(departures(problem, given))
    if not found and has_recorded_devices(problem) and not is_same_allocation(problem, given):
        return ["other devices than upstream takes"]
    return found


@pytest.mark.parametrize("file", FILES)
def test_best_allocates_where_upstream_does(file: str) -> None:
    """Problems without an error have the same outcome under `best`, with results that are valid."""
    asked = [problem for problem in problems(file) if problem["expect"]["outcome"] != "error"]
    found = {p["name"]: "; ".join(departures(p, answer(p, BEST))) for p in asked}
    differing = {name: text for name, text in found.items() if text}
    assert_only_known_differences(f"{file} best", found, differing)

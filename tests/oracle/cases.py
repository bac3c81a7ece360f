"""Tables of named cases: a problem, and the devices that each request is to get."""

from __future__ import annotations

from dataclasses import dataclass

from oracle.first_fit import first_fit
from oracle.nodes import JsonObject
from oracle.subject import BEST, FIRST_FIT, answer
from oracle.validity import violations

Devices = list[dict[str, list[str]]]
"""By claim and request, the names of the devices."""


@dataclass(frozen=True, slots=True)
class Case:
    """`want` is the devices by claim and request, or the outcome where nothing is allocated."""

    name: str
    problem: JsonObject
    want: Devices | str

    def __str__(self) -> str:
        return self.name


def summary(outcome: str, results: list[JsonObject] | None) -> Devices | str:
    """An answer in the form of `Case.want`."""
    if outcome != "allocated":
        return outcome
    by_claim: Devices = []
    for result in results or []:
        by_request: dict[str, list[str]] = {}
        for entry in result["devices"].get("results") or []:
            by_request.setdefault(entry["request"], []).append(entry["device"])
        by_claim.append(by_request)
    return by_claim


def assert_first_fit(case: Case) -> None:
    """First fit gives exactly the devices, or the outcome, of the table."""
    line = answer(case.problem, FIRST_FIT)
    assert summary(line["outcome"], line.get("results")) == case.want
    if line["outcome"] == "allocated":
        assert violations(case.problem, line["results"]) == []


def assert_best(case: Case) -> None:
    """`best` may choose other devices, but allocates exactly where first fit does."""
    line = answer(case.problem, BEST)
    assert (line["outcome"] == "allocated") == (case.want != "unallocatable")
    if line["outcome"] == "allocated":
        assert violations(case.problem, line["results"]) == []


def assert_literal(case: Case) -> None:
    """The table says what upstream's search does, step by step."""
    found = first_fit(case.problem)
    assert summary(found.outcome, found.results) == case.want

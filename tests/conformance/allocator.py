"""Does an answer to an allocation problem say what Kubernetes says, or what is right where Kubernetes errs?"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.records import JsonObject
from oracle.compare import normal
from oracle.validity import chosen_alternatives, violations


def departures(problem: JsonObject, answer: JsonObject) -> Iterator[str]:
    """In which ways an answer is neither the recorded one nor another valid one; nothing where it conforms."""
    outcome = answer["outcome"]
    if outcome not in expected_outcomes(problem):
        yield f"{outcome} instead of {' or '.join(expected_outcomes(problem))}"
    elif outcome == "allocated":
        yield from violations(problem, answer["results"]) or _later_alternatives(problem, answer)
    elif outcome == "error" and answer["error_scope"] != problem["expect"]["error_scope"]:
        yield f"an error of scope {answer['error_scope']}"


def expected_outcomes(problem: JsonObject) -> tuple[str, ...]:
    """What an answer may be. Where upstream errs or gives up, an exhaustive search has said whether there is a solution."""
    expect = problem["expect"]
    if not problem.get("quirk") and expect["outcome"] != "timeout":
        return (expect["outcome"],)
    exists = expect["valid_exists"]
    if exists is None:
        return ("allocated", "unallocatable")
    return ("allocated",) if exists else ("unallocatable",)


def has_recorded_devices(problem: JsonObject) -> bool:
    """Whether the record says which devices the first solution in the order of the search consists of."""
    return problem["expect"]["outcome"] == "allocated" and not problem.get("quirk")


def is_same_allocation(problem: JsonObject, answer: JsonObject) -> bool:
    """Same devices for the same requests, same configuration, same node selector; share ids are free."""
    return normal(answer["results"]) == normal(problem["expect"]["results"])


def _later_alternatives(problem: JsonObject, answer: JsonObject) -> Iterator[str]:
    """Alternatives are listed by preference: an answer must not fall back on later ones than upstream does."""
    if not has_recorded_devices(problem):
        return
    ours = chosen_alternatives(problem, answer["results"])
    upstreams = chosen_alternatives(problem, problem["expect"]["results"])
    if ours > upstreams:
        yield f"alternatives {ours} where {upstreams} can be had"

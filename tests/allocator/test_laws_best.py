"""Policy `best` finds the optimum: compared with all valid allocations of small problems."""

from __future__ import annotations

from hypothesis import assume, given

from oracle.best import best_placement
from oracle.brute import TooLarge
from oracle.compare import normal
from oracle.derived import assemble
from oracle.first_fit import Fatal, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import placed_problems, problems
from oracle.subject import BEST, answer


def assert_optimal(problem: JsonObject) -> None:
    model = Model(problem)
    try:
        prepare(model)
        optimum = best_placement(model)
    except (Fatal, TooLarge):
        assume(False)
    assume(optimum is not None)
    assert optimum is not None
    line = answer(problem, BEST)
    assert line["outcome"] == "allocated"
    expected = assemble(model, optimum.entries, optimum.chosen, repeated=False)
    assert normal(line["results"]) == normal(expected)


@given(problem=problems())
def test_best_is_the_optimum_of_all_valid_allocations(problem: JsonObject) -> None:
    """No valid allocation costs less than the one chosen, and among equals it is the first."""
    assert_optimal(problem)


@given(problem=placed_problems())
def test_best_is_the_optimum_where_places_matter(problem: JsonObject) -> None:
    """Likewise on nodes whose devices have roots and NUMA nodes, partly in use, and claims that constrain little."""
    assert_optimal(problem)

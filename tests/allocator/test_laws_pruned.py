"""First fit with everything that prunes, from the first step on, gives the answers of the search without any of it.

Most problems end before pruning begins, so the other laws hardly see it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given

from drayman.allocator.policies import firstfit
from oracle.brute import TooLarge
from oracle.build import GPU, NIC, claim, device, exactly, first_available, piece, problem
from oracle.compare import normal
from oracle.first_fit import first_fit
from oracle.nodes import JsonObject
from oracle.strategies import mixed_problems, problems
from oracle.subject import FIRST_FIT, answer

ROOT = "resource.kubernetes.io/pcieRoot"


@pytest.fixture(autouse=True, scope="module", params=["pruned", "claims tried alone"])
def no_plain_steps(request: pytest.FixtureRequest) -> Iterator[None]:
    """The later phases of the search start at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firstfit, "PLAIN_STEPS", 0)
        patch.setattr(firstfit, "PLAIN_STEPS_PER_SLOT", 0)
        if request.param == "claims tried alone":
            patch.setattr(firstfit, "STEPS_BEFORE_ALONE", 0)
        yield


def assert_same(asked: JsonObject) -> None:
    try:
        expected = first_fit(asked, 30_000)
    except TooLarge:
        assume(False)
    line = answer(asked, FIRST_FIT)
    assert line["outcome"] == expected.outcome, expected.error
    assert normal(line.get("results")) == normal(expected.results)


@given(asked=problems())
def test_pruning_changes_no_answer(asked: JsonObject) -> None:
    """Bounds, symmetry and memory remove only what holds neither a solution nor an error."""
    assert_same(asked)


@given(asked=mixed_problems(most_devices=12))
def test_pruning_changes_no_answer_on_larger_nodes(asked: JsonObject) -> None:
    """Likewise with more devices, where there is more to prune."""
    assert_same(asked)


def rooted(prefix: str, roots: str) -> list[JsonObject]:
    return [device(f"{prefix}{n}", attrs={ROOT: root}) for n, root in enumerate(roots)]


TWISTED = [
    problem(
        [piece(rooted("g", "aabbc")), piece(rooted("n", "cabb"), driver=NIC)],
        claim(exactly("g", 2), exactly("n", 2, "nic"), match=[ROOT]),
        claim(exactly("g", 1), exactly("n", 1, "nic"), match=[ROOT]),
    ),
    problem(
        [piece(rooted("g", "aabbccdd"))],
        *(claim(first_available("f", exactly("two", 2), exactly("one", 1)), match=[ROOT]) for _ in range(6)),
    ),
    problem(
        [piece(rooted("g", "abcabcab"))],
        claim(exactly("x", 3), distinct=[ROOT]),
        claim(exactly("y", 2), match=[ROOT]),
        claim(exactly("z", 3), distinct=[ROOT]),
    ),
    problem(
        [piece([device(f"g{n}", attrs={"x": n % 3, "y": n // 3}) for n in range(9)])],
        claim(exactly("r", 3), distinct=[f"{GPU}/x", f"{GPU}/y"]),
        claim(exactly("r", 3), distinct=[f"{GPU}/x", f"{GPU}/y"]),
        claim(exactly("r", 3), distinct=[f"{GPU}/x", f"{GPU}/y"]),
    ),
]  # fmt: skip


@pytest.mark.parametrize("asked", TWISTED, ids=["pairs", "chains", "spread", "latin square"])
def test_pruning_keeps_the_first_of_many_solutions(asked: JsonObject) -> None:
    """Where solutions differ only in the order of equal devices, the first in order is found."""
    assert_same(asked)

"""Against every way there is, on small problems: `pack` finds a way if there is one, and none needs fewer nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.domains.budget import OutOfSteps
from drayman.placement.joint.packing import Load, Packing, pack

Amounts = tuple[int, ...]


class Problem(NamedTuple):
    """Nodes with amounts of two resources, and kinds of pods that take some of them."""

    nodes: Sequence[Amounts]
    pods: Sequence[Amounts]
    wanted: Load
    spare: int

    def most(self, node: int, load: Load, kind: int) -> int:
        left = [
            there - sum(n * pod[r] for n, pod in zip(load, self.pods, strict=True))
            for r, there in enumerate(self.nodes[node])
        ]
        takes = self.pods[kind]
        return min(self.wanted[kind], *(left[r] // takes[r] for r in range(2) if takes[r]))

    def holds(self, node: int, load: Load) -> bool:
        return all(
            sum(n * pod[r] for n, pod in zip(load, self.pods, strict=True)) <= there
            for r, there in enumerate(self.nodes[node])
        )

    def solve(self) -> Packing | None:
        return pack(self.wanted, self.spare, self.nodes, self.most, limit=1_000_000)

    def ways(self) -> dict[Load, int]:
        """What can be placed at all, and on how many nodes at least."""
        known: dict[Load, int] = {(0,) * len(self.wanted): 0}
        for node in range(len(self.nodes)):
            after = dict(known)
            for placed, used in known.items():
                for load in self._loads(node, placed):
                    both = tuple(a + b for a, b in zip(placed, load, strict=True))
                    after[both] = min(after.get(both, used + 1), used + 1)
            known = after
        return known

    def _loads(self, node: int, placed: Load) -> Iterator[Load]:
        rest = [range(w - p + 1) for w, p in zip(self.wanted, placed, strict=True)]
        return (load for load in product(*rest) if any(load) and self.holds(node, load))


AMOUNTS = st.tuples(st.integers(0, 4), st.integers(0, 2)).filter(any)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    models = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=3))
    nodes = draw(st.lists(st.sampled_from(models), min_size=1, max_size=5))
    pods = draw(st.lists(AMOUNTS, min_size=1, max_size=3))
    wanted = tuple(draw(st.integers(1, 4)) for _ in pods)
    return Problem(nodes, pods, wanted, draw(st.integers(0, 2)))


@given(problems())
def test_it_finds_a_way_if_there_is_one(problem: Problem) -> None:
    found = problem.solve()
    total = sum(problem.wanted)
    ways = {load: n for load, n in problem.ways().items() if total - sum(load) <= problem.spare}
    assert (found is None) == (not ways)
    if found is None:
        return
    assert all(problem.holds(node, load) for node, load in found.loads.items())
    sums = [sum(load[k] for load in found.loads.values()) for k in range(len(problem.pods))]
    assert tuple(a + b for a, b in zip(sums, found.left_out, strict=True)) == problem.wanted
    left_out = sum(found.left_out)
    assert len(found.loads) <= min(n for load, n in ways.items() if total - sum(load) <= left_out)


@given(problems())
def test_no_pod_of_a_single_kind_is_left_out_in_vain(problem: Problem) -> None:
    alone = problem._replace(pods=problem.pods[:1], wanted=problem.wanted[:1])
    found = alone.solve()
    if found is not None:
        assert found.left_out[0] == alone.wanted[0] - max(load[0] for load in alone.ways())


def test_the_rest_goes_where_it_fits_most_tightly() -> None:
    problem = Problem([(8, 0), (2, 0), (8, 0), (3, 0)], [(1, 0)], (10,), 0)
    assert problem.solve() == Packing({0: (8,), 1: (2,)}, (0,))


def test_it_does_not_try_all_orders_of_nodes_that_are_alike() -> None:
    # Two kinds of pods that need a node each, and one node too few: every choice of nodes is as good as the first.
    nodes: list[Amounts] = [(1, 1)] * 200
    problem = Problem(nodes, [(1, 0), (1, 1)], (101, 100), 0)
    assert pack(problem.wanted, 0, nodes, problem.most, limit=2_000) is None


def test_it_says_when_it_ran_out_of_steps() -> None:
    # Each node holds two of the first kind or one of each. No two nodes are alike, so there are very many ways to try.
    nodes: list[Amounts] = [(7, 30 + n) for n in range(30)]
    problem = Problem(nodes, [(3, 1), (4, 1)], (31, 30), 0)
    with pytest.raises(OutOfSteps):
        pack(problem.wanted, 0, nodes, problem.most, limit=100)

"""Assignments in the compressed form of v1beta2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import DecodeError
from drayman.api.kueue_workload import (
    IndividualValues,
    LevelValues,
    PodCounts,
    TopologyAssignment,
    TopologyAssignmentSlice,
)
from drayman.quota.demands import Placement
from drayman.quota.topology.assignments import assignment_of, placement_of

values = st.text("ab-", min_size=1, max_size=5)
placements = st.integers(1, 3).flatmap(
    lambda levels: st.builds(
        Placement,
        st.just(tuple(f"l{n}" for n in range(levels))),
        st.dictionaries(st.tuples(*[values] * levels), st.integers(1, 9), max_size=6).map(
            lambda found: tuple(found.items())
        ),
    )
)


@given(placements)
def test_reading_what_was_written_gives_the_same(placement: Placement) -> None:
    """Encode, then decode, is identity; and no part of a value between prefix and suffix is empty."""
    written = assignment_of(placement)
    assert placement_of(written) == placement
    for part in written.slices:
        for level in part.values_per_level:
            assert level.individual is None or all(level.individual.roots)


def test_equal_values_are_written_once() -> None:
    """What all domains have in common is said once: a block, a beginning, an end, a number of pods."""
    domains = (
        (("b0", "node-01.example"), 4),
        (("b0", "node-02.example"), 4),
        (("b0", "node-13.example"), 4),
    )
    written = assignment_of(Placement(("block", "kubernetes.io/hostname"), domains))
    assert written.slices == (
        TopologyAssignmentSlice(
            domain_count=3,
            values_per_level=(
                LevelValues(universal="b0"),
                LevelValues(
                    individual=IndividualValues(
                        prefix="node-", suffix=".example", roots=("01", "02", "13")
                    )
                ),
            ),
            pod_counts=PodCounts(universal=4),
        ),
    )


def part(
    domains: int, level: LevelValues | None = None, counts: PodCounts | None = None
) -> TopologyAssignment:
    return TopologyAssignment(
        levels=("host",),
        slices=(
            TopologyAssignmentSlice(
                domain_count=domains,
                values_per_level=() if level is None else (level,),
                pod_counts=counts or PodCounts(universal=1),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("assignment", "path"),
    [
        (part(1), "valuesPerLevel"),
        (part(1, LevelValues()), "valuesPerLevel[0]"),
        (part(2, LevelValues(individual=IndividualValues(roots=("a",)))), "roots"),
        (
            part(
                2,
                LevelValues(individual=IndividualValues(roots=("a", "b"))),
                PodCounts(individual=(1,)),
            ),
            "podCounts.individual",
        ),
        (part(2_000_000_000, LevelValues(universal="a")), "domainCount"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(
    assignment: TopologyAssignment, path: str
) -> None:
    """Numbers of levels, domains and counts have to agree, and a domain is named once."""
    with pytest.raises(DecodeError) as caught:
        placement_of(assignment)
    assert caught.value.path.startswith("topologyAssignment.slices[0]")
    assert path in caught.value.path

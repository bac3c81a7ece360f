"""The tree of queues."""

from __future__ import annotations

import pytest

from drayman.placement.queueing.queues import Queue, QueueTree


def tree(**parents: str) -> QueueTree:
    return QueueTree([Queue(name=name, parent=parent) for name, parent in parents.items()])


def test_a_path_leads_upwards() -> None:
    found = tree(root="", d="root", p="d")
    assert found.path("p") == ("p", "d", "root")
    assert [found.is_leaf(name) for name in ("root", "d", "p", "none")] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("one", "other", "parting"),
    [
        pytest.param("p", "q", ("p", "q"), id="sisters"),
        pytest.param("p", "r", ("d1", "d2"), id="of two departments"),
        pytest.param("p", "o", ("d1", "o"), id="of different depth"),
    ],
)
def test_queues_are_compared_just_below_the_point_where_paths_part(
    one: str, other: str, parting: tuple[str, str]
) -> None:
    found = tree(root="", d1="root", d2="root", p="d1", q="d1", r="d2", o="root")
    assert found.parting(one, other) == parting


@pytest.mark.parametrize(
    ("parents", "inactive"),
    [
        pytest.param(
            {"a": "", "b": "none"},
            {"b": "spec.parentQueue: there is no queue none"},
            id="a parent that is not there",
        ),
        pytest.param(
            {"a": "b", "b": "a", "c": "", "d": "a"},
            {
                "a": "spec.parentQueue: queue a is above itself",
                "b": "spec.parentQueue: queue b is above itself",
                "d": "spec.parentQueue: queue a is above itself",
            },
            id="a circle, and what hangs on it",
        ),
    ],
)
def test_a_queue_without_a_place_is_inactive_and_says_why(
    parents: dict[str, str], inactive: dict[str, str]
) -> None:
    found = tree(**parents)
    assert found.inactive == inactive
    assert {each.name for each in found} == parents.keys() - inactive.keys()


def test_the_nearest_minimum_run_time_counts_and_zero_is_one() -> None:
    found = QueueTree(
        [
            Queue(name="root", preempt_min_runtime=60, reclaim_min_runtime=30),
            Queue(name="d", parent="root", preempt_min_runtime=0),
            Queue(name="p", parent="d"),
        ]
    )
    assert (found.preempt_min_runtime("p"), found.reclaim_min_runtime("p")) == (0, 30)

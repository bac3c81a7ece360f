"""A queue of Kueue gets its nominal quota wherever others borrow it: those of them go without which its work has room."""

from __future__ import annotations

from typing import Any

import pytest

from quota.fitting.clusters import HOST, template
from quota.fitting.hall import Hall, work
from quota.fitting.test_preempting_for_room import FAIR, gpu_cluster, preempted, running, said
from quota.queues import cohort, limits, queue

CPUS = 40
"""Of each node. Quota is in processors here."""


def borrowed(*, config: Any = None, order: str = "01010101", **fb: Any) -> Hall:
    """Two nodes, each full of four workloads of fa, which owes half of them. `order` has the nodes by age."""
    owner = {"reclaim": "Any", **fb}
    hall = Hall(
        gpu_cluster(8, 8),
        queue("fa", CPUS, "c", reclaim="Any"),
        queue("fb", CPUS, "c", **owner),
        config=config,
    )
    names = []
    for number, node in enumerate(order):
        made = template([], CPUS // 4, nodeSelector={HOST: "ab"[int(node)]})
        names.append(f"a{number}-{node}")
        hall.submit(work(names[-1], "fa", made, at=number))
    running(hall, *names)
    return hall


@pytest.mark.parametrize("config", [None, FAIR], ids=["classical", "fair"])
@pytest.mark.parametrize("order", ["01010101", "00110011", "01100110", "10000111"])
def test_borrowers_on_one_node_go_for_a_pod_that_needs_a_node(config: Any, order: str) -> None:
    """The newest four are on two nodes; the newest four of one node go, which is all of it."""
    hall = borrowed(config=config, order=order)
    hall.submit(work("whole", "fb", template([], CPUS), at=20))
    gone = preempted(hall.settle())
    assert len(gone) == 4
    assert len({name[-1] for name in gone}) == 1
    assert set(gone.values()) == {"InCohortReclamation"}
    hall.rest()
    assert "whole" in hall.admitted()
    assert len(hall.admitted()) == 5
    hall.start("whole")


@pytest.mark.parametrize("config", [None, FAIR], ids=["classical", "fair"])
@pytest.mark.parametrize(("order", "newest"), [("10000111", "1"), ("01111000", "0")])
def test_of_equal_nodes_the_one_with_the_newest_borrowers_is_cleared(
    config: Any, order: str, newest: str
) -> None:
    """The names of nodes do not decide."""
    hall = borrowed(config=config, order=order)
    hall.submit(work("whole", "fb", template([], CPUS), at=20))
    assert {name[-1] for name in preempted(hall.settle())} == {newest}


@pytest.mark.parametrize("config", [None, FAIR], ids=["classical", "fair"])
def test_the_victims_of_quota_go_where_they_make_room(config: Any) -> None:
    """Of a pod that fits anywhere, the newest borrowers go, as in Kueue."""
    hall = borrowed(config=config)
    hall.submit(work("half", "fb", template([], CPUS // 2), pods=2, at=20))
    assert set(preempted(hall.settle())) == {"a4-0", "a5-1", "a6-0", "a7-1"}


def test_several_pods_clear_several_nodes() -> None:
    """Four nodes, each of them with workloads of two queues: two pods that need a node each take two of them."""
    hall = Hall(
        gpu_cluster(1, 1, 1, 1),
        queue("fa", CPUS, "c"),
        queue("fc", CPUS, "c"),
        queue("fb", 2 * CPUS, "c", reclaim="Any"),
    )
    names = []
    for number in range(16):
        node, owner = number % 4, ("fa", "fc")[number % 8 // 4]
        made = template([], CPUS // 4, nodeSelector={HOST: "abcd"[node]})
        names.append(f"{owner}-{number}-{node}")
        hall.submit(work(names[-1], owner, made, at=number))
    running(hall, *names)
    hall.submit(work("gang", "fb", template([], CPUS), pods=2, at=20))
    gone = preempted(hall.settle())
    assert len(gone) == 8
    assert len({name[-1] for name in gone}) == 2
    hall.rest()
    assert "gang" in hall.admitted()


def test_no_set_of_victims_makes_room() -> None:
    """On each node there is a workload that is within the quota of its queue, so none is ever empty: all borrowers stay."""
    hall = Hall(
        gpu_cluster(1, 1),
        queue("fa", CPUS // 2, "c", reclaim="Any"),
        queue("firm", CPUS // 2, "c", reclaim="Any"),
        queue("fb", CPUS, "c", reclaim="Any"),
    )
    names = []
    for number in range(8):
        node, owner = number % 2, "firm" if number < 2 else "fa"
        made = template([], CPUS // 4, nodeSelector={HOST: "ab"[node]})
        names.append(f"{owner}-{number}")
        hall.submit(work(names[-1], owner, made, at=number))
    running(hall, *names)
    hall.submit(work("whole", "fb", template([], CPUS), at=20))
    assert preempted(hall.settle()) == {}
    assert "no room for all of its pods" in said(hall.log, "whole").message
    # When the firm workload of a node has ended, the borrowers of that node go.
    hall.finish("default/firm-0")
    assert set(preempted(hall.settle())) == {"fa-2", "fa-4", "fa-6"}
    hall.rest()
    assert "whole" in hall.admitted()


def test_borrowers_of_another_cohort_go_where_they_make_room() -> None:
    """In a tree of cohorts, a cohort that is within its quota gives nothing, though its workloads are on the node."""
    hall = Hall(
        gpu_cluster(1, 1),
        cohort("top"),
        cohort("left", "top"),
        cohort("right", "top"),
        queue("fb", CPUS, "left", reclaim="Any"),
        queue("rich", CPUS // 4, "right"),
        queue("poor", limits(0), "right"),
        queue("spare", 3 * CPUS // 4, "top"),
    )
    names = []
    for number, (owner, node) in enumerate(
        [("rich", "a"), *(("poor", "ab"[n % 2]) for n in range(1, 8))]
    ):
        made = template([], CPUS // 4, nodeSelector={HOST: node})
        names.append(f"{owner}-{number}-{node}")
        hall.submit(work(names[-1], owner, made, at=number))
    running(hall, *names)
    hall.submit(work("whole", "fb", template([], CPUS), at=20))
    assert {name[-1] for name in preempted(hall.settle())} == {"b"}
    hall.rest()
    assert "whole" in hall.admitted()


def test_a_workload_that_preempts_by_priority_clears_a_node() -> None:
    """Within a queue: there is quota for all of it, and the least important pods are on two nodes."""
    hall = Hall(gpu_cluster(1, 1), queue("q", 2 * CPUS, within="LowerPriority"))
    names = []
    for number in range(8):
        made = template([], CPUS // 4, nodeSelector={HOST: "ab"[number % 2]})
        names.append(f"p{number}")
        hall.submit(work(names[-1], "q", made, priority=number % 2, at=number))
    running(hall, *names)
    hall.submit(work("whole", "q", template([], CPUS), priority=5, at=20))
    assert set(preempted(hall.settle())) == {"p0", "p2", "p4", "p6"}

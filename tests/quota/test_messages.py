"""What workloads without quota are told: amounts as people write them in manifests."""

from __future__ import annotations

import pytest

from drayman.explain.queues.engine import queues_of
from drayman.quota.decisions import Refused
from explain.hall import Hall
from quota.queues import Story, flavor, pods, queue, workload

CASES = {
    "whole cpus": ("3", "insufficient unused quota for cpu in flavor f, 1 more needed"),
    "a part of a cpu": ("2500m", "insufficient unused quota for cpu in flavor f, 500m more needed"),
    "more than there is": (
        "5500m",
        "insufficient quota for cpu in flavor f, request (5500m) > maximum capacity (4)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_amounts_are_quantities(case: str) -> None:
    """Not the thousandths that they are counted in."""
    wanted, message = CASES[case]
    hall = Hall().flavor("f").queue("q", f=4).workload("has", "q", 2, has="f")
    (refused,) = queues_of(hall.workload("w", "q", wanted).world()).state.cycle(0.0)
    assert isinstance(refused, Refused)
    assert refused.message == message


def test_an_index_label_requests_no_topology() -> None:
    """Kueue writes a request with only an index label on every plain Job: such a Workload waits for quota like any other."""
    label = {"podIndexLabel": "batch.kubernetes.io/job-completion-index"}
    story = Story(flavor("f"), queue("q", quota={"f": {"cpu": 4}}))
    story.create(workload("has", "q", {**pods(count=2, cpu=1), "topologyRequest": label}))
    assert story.admitted() == {"has"}
    story.create(workload("w", "q", {**pods(count=4, cpu=1), "topologyRequest": label}))
    assert story.admitted() == {"has"}
    assert story.reason("w") == "WaitingForQuota"

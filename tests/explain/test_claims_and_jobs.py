"""Claims and Jobs: what is said of them, and of the pods behind them."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.answer import Explanation
from drayman.explain.claim import explain_claim
from drayman.explain.workload import explain_job
from explain.town import Town
from oracle.build import claim, exactly

OWNER = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "name": "job",
    "uid": "uid-job",
    "controller": True,
}


def claim_in(town: Town, name: str) -> Explanation:
    world = town.world()
    found = world.claim("default", name)
    assert found is not None
    return explain_claim(world, found)


def test_a_claim_with_devices_says_which_and_for_whom() -> None:
    """What it has, where, and who uses it."""
    found = claim_in(Town().node("n0", 1).holds("a", "n0", "d0"), "a-claim")
    assert (found.kind, found.headline.reason.value, found.node) == (
        "ResourceClaim",
        "Allocated",
        "n0",
    )
    assert found.devices == ("gpu.example.com/n0/d0",)
    assert found.holders[0].pods == ("a",)
    assert "a" in found.headline.sentence


def test_a_claim_waits_with_its_pod() -> None:
    """The reason is the pod's, and the pod's explanation is part of it."""
    found = claim_in(Town().node("n0", 1).wants(claim(exactly("gpus", 2))), "c0")
    assert found.headline.reason is found.parts[0].headline.reason
    assert found.parts[0].name == "pending"
    assert found.headline.sentence.startswith("It waits for pod pending: ")


def test_a_claim_without_pods_waits_for_one() -> None:
    """Claims are allocated for pods only."""
    town = Town().node("n0", 1).wants(claim(exactly("gpus", 1)))
    town.pods.clear()
    assert claim_in(town, "c0").headline.reason.value == "ClaimUnused"


def test_a_claim_that_is_being_deleted_says_so() -> None:
    """It gets no devices any more."""
    town = Town().node("n0", 1).wants(claim(exactly("gpus", 1)))
    town.claims[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert claim_in(town, "c0").headline.reason.value == "ClaimDeleting"


def job_in(town: Town, **fields: Any) -> Explanation:
    metadata = {"name": "job", "namespace": "default", "uid": "uid-job", "resourceVersion": "9"}
    town.jobs.append({"metadata": metadata, **fields})
    world = town.world()
    return explain_job(world, world.objects.jobs[0])


STATES = [
    ("suspended", {"spec": {"suspend": True}}, "Suspended"),
    ("without pods", {}, "NoPods"),
    ("complete", {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "Runs"),
]


@pytest.mark.parametrize(
    ("fields", "reason"), [state[1:] for state in STATES], ids=[state[0] for state in STATES]
)
def test_the_state_of_a_job(fields: dict[str, Any], reason: str) -> None:
    """What is known of a job without looking at pods."""
    assert job_in(Town().node("n0"), **fields).headline.reason.value == reason


def test_a_job_whose_pods_have_failed_had_pods() -> None:
    """Between two attempts there is none, and the answer says what became of the last one."""
    found = job_in(Town().node("n0"), status={"failed": 2})
    assert (found.headline.reason.value, found.headline.sentence) == (
        "NoPods",
        "2 pods of the job have failed, and the job controller has not created another yet:"
        " it waits longer after each failure.",
    )


def test_the_pods_of_a_job_are_told_by_reason() -> None:
    """One pod stands for all with the same reason; those that wait come first, and their reason is the job's."""
    town = Town().node("n0", 1).holds("job-0", "n0", "d0", metadata={"ownerReferences": [OWNER]})
    for number in (1, 2):
        town.wants(
            claim(exactly("gpus", 1)),
            name=f"job-{number}",
            metadata={"ownerReferences": [OWNER]},
        )
    found = job_in(town)
    told = [(part.headline.reason.value, part.count) for part in found.parts]
    assert told == [("DevicesInUse", 2), ("Runs", 1)]
    assert found.headline.reason.value == "DevicesInUse"
    assert found.headline.sentence.startswith("2 of 3 pods wait: ")


def test_a_job_whose_pods_all_run_runs() -> None:
    """Nothing waits."""
    town = Town().node("n0", 1).holds("job-0", "n0", "d0", metadata={"ownerReferences": [OWNER]})
    found = job_in(town)
    assert (found.headline.reason.value, len(found.parts)) == ("Runs", 1)


COUNTS = {
    "all are there": ({"parallelism": 1, "completions": 1}, 0, ""),
    "two are missing": ({"parallelism": 3, "completions": 5}, 0, " 2 more pods are still to be created."),
    "the last one": ({"parallelism": 3, "completions": 3}, 2, ""),
    "a work queue that ends": ({"parallelism": 3}, 1, ""),
    "retries by index": (
        {"parallelism": 3, "completions": 3, "backoffLimitPerIndex": 1, "completionMode": "Indexed"},
        0,
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_pods_that_a_job_has_yet_to_make(name: str) -> None:
    """After a failure or a preemption it waits before it makes another one."""
    spec, succeeded, more = COUNTS[name]
    town = Town().node("n0", 1).holds("job-0", "n0", "d0", metadata={"ownerReferences": [OWNER]})
    found = job_in(town, spec=spec, status={"succeeded": succeeded})
    assert found.headline.sentence == f"The job's only pod has its node.{more}"

"""How long pods run, as far as it is declared or was observed."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.times import timestamp_at
from drayman.inventory.undo import UndoLog
from drayman.placement.runs.book import (
    HORIZON_S,
    LEAST_PATIENCE_S,
    LEAST_RUNS,
    MOST_RUNS,
    SHORTEST_DELAY_S,
    RunBook,
)
from drayman.placement.runs.declaring import Basis, misstated

START = 1_800_000_000.0


def pod(name: str = "p", *, job: str = "", **fields: Any) -> Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": "ml", "uid": name}
    metadata["annotations"] = fields.pop("stated", {})
    if "leaves" in fields:
        metadata["deletionTimestamp"] = timestamp_at(fields.pop("leaves"))
    if job:
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job,
            "uid": job,
            "controller": True,
        }
        metadata["ownerReferences"] = [owner]
    image = fields.pop("image", "train:1")
    spec = {
        "nodeName": "n0",
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": image}],
        **fields,
    }
    status = {"phase": "Running", "startTime": timestamp_at(START)}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status})


def ended(name: str, seconds: int, *, phase: str = "Succeeded", image: str = "train:1") -> Pod:
    state = {"terminated": {"exitCode": 0, "finishedAt": timestamp_at(START + seconds)}}
    status = {
        "phase": phase,
        "startTime": timestamp_at(START),
        "containerStatuses": [{"name": "main", "state": state}],
    }
    value = {
        "metadata": {"name": name, "namespace": "ml", "uid": name},
        "spec": {"nodeName": "n0", "containers": [{"name": "main", "image": image}]},
        "status": status,
    }
    return convert(Pod, value)


def job(stated: str = "", deadline: int | None = None, begun: float | None = None) -> Job:
    annotations = {"drayman.dev/runtime": stated} if stated else {}
    value: dict[str, Any] = {
        "metadata": {"name": "j", "namespace": "ml", "uid": "j", "annotations": annotations},
        "spec": {} if deadline is None else {"activeDeadlineSeconds": deadline},
        "status": {} if begun is None else {"startTime": timestamp_at(begun)},
    }
    return convert(Job, value)


SAID: dict[str, tuple[Pod, Job | None, tuple[float, Basis] | None]] = {
    "nothing": (pod(), None, None),
    "the pod": (pod(stated={"drayman.dev/runtime": "2h"}), None, (7200, Basis.DECLARED)),
    "its Job": (pod(job="j"), job("90m"), (5400, Basis.DECLARED)),
    "the pod before its Job": (
        pod(job="j", stated={"drayman.dev/runtime": "1m"}),
        job("90m"),
        (60, Basis.DECLARED),
    ),
    "for a simulated node": (
        pod(stated={"drayman.dev/run-for": "30s"}),
        None,
        (30, Basis.DECLARED),
    ),
    "for a simulated node, again and again": (
        pod(stated={"drayman.dev/run-for": "30s"}, restartPolicy="Always"),
        None,
        None,
    ),
    "what makes no sense": (pod(stated={"drayman.dev/runtime": "soon"}), None, None),
    "no time at all": (pod(stated={"drayman.dev/runtime": "0s"}), None, None),
    "a deadline": (pod(activeDeadlineSeconds=50), None, (50, Basis.DEADLINE)),
    "a deadline before what is declared": (
        pod(stated={"drayman.dev/runtime": "2h"}, activeDeadlineSeconds=50),
        None,
        (50, Basis.DEADLINE),
    ),
    "the deadline of a Job that began earlier": (
        pod(job="j"),
        job(deadline=100, begun=START - 40),
        (60, Basis.DEADLINE),
    ),
    "the Job of others": (pod(job="other"), job("90m"), None),
    "deletion": (pod(leaves=START + 30), None, (30, Basis.LEAVING)),
}


@pytest.mark.parametrize("name", SAID)
def test_when_a_pod_ends(name: str) -> None:
    """The end follows from the start and what is declared; what is not known, or makes no sense, has none."""
    given, owner, expected = SAID[name]
    book = RunBook()
    if owner is not None:
        book.set_job(owner)
    book.see(given)
    found = book.ending_of(given, START + 1)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.at - START, found.basis) == expected


def test_an_overdue_pod_is_expected_to_go_on() -> None:
    """A tenth of its run so far, and at least a minute, so that what waits for it is not decided about all the time."""
    book = RunBook()
    given = pod(stated={"drayman.dev/runtime": "1h"})
    book.see(given)
    soon, late = (book.ending_of(given, START + after) for after in (3601, 6000))
    assert soon is not None
    assert late is not None
    assert (soon.at, soon.is_overdue) == (START + 3601 + 360.1, True)
    assert late.at == START + 6600
    short = pod(stated={"drayman.dev/runtime": "10s"})
    found = book.ending_of(short, START + 20)
    assert found is not None
    assert found.at == START + 20 + SHORTEST_DELAY_S


LONG_OVERDUE = {
    "much longer than declared": (pod(stated={"drayman.dev/runtime": "1h"}), 7201),
    "declared to be very short": (pod(stated={"drayman.dev/runtime": "1s"}), LEAST_PATIENCE_S + 2),
    "deleted, and kept by a finalizer": (pod(leaves=START + 30), LEAST_PATIENCE_S + 31),
}


@pytest.mark.parametrize("name", LONG_OVERDUE)
def test_a_pod_that_is_long_overdue_says_nothing(name: str) -> None:
    """Otherwise room would be reserved for ever for whoever waits for its end."""
    given, after = LONG_OVERDUE[name]
    book = RunBook()
    book.see(given)
    assert book.ending_of(given, START + after - 2) is not None
    assert book.ending_of(given, START + after) is None


def test_an_end_that_is_far_ahead_counts_as_none() -> None:
    """Until it comes near: nothing is kept free for years."""
    book = RunBook()
    given = pod(stated={"drayman.dev/runtime": "876000h"})
    book.see(given)
    end = START + 876000 * 3600
    assert book.ending_of(given, START + 1) is None
    assert book.departures(START + 1) == []
    near = book.ending_of(given, end - HORIZON_S)
    assert near is not None
    assert near.at == end


def test_a_deadline_of_any_size_is_a_date() -> None:
    """A Job may have a deadline of any number of 64 bits."""
    book = RunBook()
    book.set_job(job(deadline=2**63 - 1, begun=START))
    found = book.would_end(pod(job="j"), START)
    assert found is not None
    assert timestamp_at(found.at).startswith("20")


def test_runs_of_enormous_pods_are_not_kept() -> None:
    """What pods have in common is kept when they are gone, and must not be of any size."""
    book = RunBook()
    for number in range(LEAST_RUNS):
        book.observe(ended(f"e{number}", 100, image="x" * (1 << 20)))
    assert not book.tells_anything


def test_what_is_misstated_is_not_repeated_at_length() -> None:
    """An annotation may have 256 KiB."""
    (fault,) = misstated({"drayman.dev/runtime": "1s" * (1 << 17)})
    assert len(fault) < 200


def test_earlier_runs_say_how_long_the_next_takes() -> None:
    """The longest of the latest runs that succeeded counts, once there are some, and only for pods that do the same."""
    book = RunBook()
    for number in range(LEAST_RUNS - 1):
        book.observe(ended(f"e{number}", 100 + number))
    book.observe(ended("failed", 900, phase="Failed"))
    assert book.ending_of(pod(), START) is None
    book.observe(ended("last", 50))
    found = book.ending_of(pod(), START)
    assert found is not None
    assert (found.at - START, found.basis, found.runs) == (101, Basis.OBSERVED, LEAST_RUNS)
    assert book.ending_of(pod(image="other"), START) is None


def test_only_the_latest_runs_are_kept() -> None:
    """However many there were, in whatever order they are seen, and seeing one twice makes no difference."""
    runs = [ended(f"e{number}", 100 + number) for number in range(2 * MOST_RUNS)]
    forth, back = RunBook(), RunBook()
    for each in (*runs, *runs):
        forth.observe(each)
    for each in reversed(runs):
        back.observe(each)
    found = forth.ending_of(pod(), START)
    assert found == back.ending_of(pod(), START)
    assert found is not None
    assert found.runs == MOST_RUNS


def test_a_trial_leaves_no_trace() -> None:
    """What is seen, observed and forgotten in a trial counts only there."""
    log = UndoLog()
    book = RunBook(log)
    stays = pod("stays", stated={"drayman.dev/runtime": "1h"})
    book.see(stays)
    before = book.departures(START)
    with log.undone():
        book.forget("stays")
        book.begin(pod("new", stated={"drayman.dev/runtime": "1m"}), "n1", START)
        book.set_job(job("5m"))
        for number in range(LEAST_RUNS):
            book.observe(ended(f"e{number}", 100))
        assert [each.pod.metadata.name for each in book.departures(START)] == ["new"]
    assert book.departures(START) == before
    book.forget("stays")
    assert not book.tells_anything


def test_what_is_misstated_is_named() -> None:
    """A value that is no duration is quoted with the name of the annotation; a right one is not mentioned."""
    (fault,) = misstated({"drayman.dev/runtime": "two hours"})
    assert fault.startswith(
        "metadata.annotations[drayman.dev/runtime]: 'two hours' is not a duration"
    )
    assert list(misstated({"drayman.dev/runtime": "2h"})) == []

"""The status of a workload that is handed over, step by step."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from drayman.api.kueue_workload import (
    Admission,
    AdmissionCheckState,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.workloads.dispatching.life import (
    RemoteState,
    Silence,
    as_ended_there,
    is_elsewhere,
    may_be_taken,
    nowhere,
    offered,
    remote_state,
    taken,
    to_be_tried_again,
    wants_worker,
)
from drayman.workloads.queued import life
from drayman.workloads.queued.kinds import Ended

HELD = replace(
    life.reserved(WorkloadStatus(), Admission(cluster_queue="q"), 0.0),
    admission_checks=(
        AdmissionCheckState(name="elsewhere"),
        AdmissionCheckState(name="another", state="Ready"),
    ),
)
ADMITTED = life.admitted(HELD, 0.0)
EVICTED = life.evicted(ADMITTED, "Preempted", "for another", 1.0)
RELEASED = life.released(EVICTED, "PendingEvaluation", "", 2.0)
ENDED = life.finished(ADMITTED, Ended(False, "it failed"), 3.0)


def test_a_workload_is_offered_taken_and_free_again() -> None:
    """It is elsewhere from the first offer on until nothing of it is left; the states of other checks stay."""
    assert not is_elsewhere(HELD)
    out = offered(HELD, "elsewhere", ("a", "b"), "who wants it", 1.0)
    assert out.nominated_cluster_names == ("a", "b")
    assert is_elsewhere(out)
    got = taken(out, "elsewhere", "b", 2.0)
    assert (got.cluster_name, got.nominated_cluster_names) == ("b", ())
    assert [each.state for each in got.admission_checks] == ["Ready", "Ready"]
    assert got.admission_checks[0].message == 'The workload got reservation on "b"'
    assert is_elsewhere(got)
    again = to_be_tried_again(got, "elsewhere", "b is lost", 3.0)
    assert again.admission_checks[0].state == "Retry"
    assert is_elsewhere(again)
    assert not is_elsewhere(nowhere(again))


def test_a_check_says_since_when_it_says_so() -> None:
    """Another message is no other state."""
    first = offered(HELD, "elsewhere", ("a",), "one", 10.0)
    second = offered(first, "elsewhere", ("a",), "two", 20.0)
    assert second.admission_checks[0].message == "two"
    assert (
        second.admission_checks[0].last_transition_time
        == first.admission_checks[0].last_transition_time
    )


@pytest.mark.parametrize(
    ("status", "active", "wanted"),
    [
        pytest.param(HELD, True, True, id="with quota"),
        pytest.param(WorkloadStatus(), True, False, id="without quota"),
        pytest.param(EVICTED, True, False, id="evicted"),
        pytest.param(ENDED, True, False, id="ended"),
        pytest.param(HELD, False, False, id="not active"),
    ],
)
def test_a_workload_is_to_run_elsewhere(status: WorkloadStatus, active: bool, wanted: bool) -> None:
    assert wants_worker(WorkloadSpec(active=active), status) is wanted


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        pytest.param(ADMITTED, RemoteState.RUNS, id="admitted there"),
        pytest.param(EVICTED, RemoteState.STOPS, id="evicted there, with pods"),
        pytest.param(RELEASED, RemoteState.EVICTED, id="evicted there, without pods"),
        pytest.param(ENDED, RemoteState.ENDED, id="ended there"),
        pytest.param(None, RemoteState.GONE, id="deleted there"),
        pytest.param(Silence(95.0), RemoteState.SILENT, id="a worker that is silent"),
        pytest.param(Silence(90.0), RemoteState.LOST, id="a worker that was silent for too long"),
    ],
)
def test_standing_of(there: WorkloadStatus | Silence | None, wanted: RemoteState) -> None:
    """At 100 s, with ten seconds of patience."""
    assert remote_state(there, 100.0, 10.0) is wanted


def test_only_what_is_admitted_can_be_taken() -> None:
    assert may_be_taken(ADMITTED)
    assert not may_be_taken(HELD)
    assert not may_be_taken(EVICTED)
    assert not may_be_taken(None)


def test_how_it_ended_there_is_how_it_ended() -> None:
    found = as_ended_there(ADMITTED, ENDED, 5.0).condition("Finished")
    assert found is not None
    assert (found.status, found.reason, found.message) == ("True", "Failed", "it failed")

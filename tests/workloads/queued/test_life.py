"""What the status of a Workload says after each event (cases G13, G14 and G16 of the specification)."""

from __future__ import annotations

import pytest

from drayman.api.kueue_workload import (
    ADMITTED,
    EVICTED,
    PODS_READY,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    Admission,
    AdmissionCheckState,
    RequeueState,
    WorkloadStatus,
)
from drayman.api.times import seconds_of, timestamp_at
from drayman.workloads.queued import life
from drayman.workloads.queued.kinds import Ended

NOW = 1_800_000_000.0
EMPTY = WorkloadStatus()
GIVEN = Admission(cluster_queue="q")


def running(now=NOW):
    return life.admitted(life.reserved(EMPTY, GIVEN, now), now)


def shown(status):
    return {each.type_: (each.status, each.reason) for each in status.conditions}


def test_from_waiting_to_admitted():
    """Refused, reserved, admitted: each condition says the last word about its subject."""
    status = life.refused(EMPTY, "WaitingForQuota", "no room", (), NOW)
    assert shown(status) == {
        QUOTA_RESERVED: ("False", "WaitingForQuota"),
        ADMITTED: ("False", "NoReservation"),
    }
    status = life.admitted(life.reserved(status, GIVEN, NOW + 5), NOW + 6)
    assert shown(status) == {
        QUOTA_RESERVED: ("True", "QuotaReserved"),
        ADMITTED: ("True", "Admitted"),
    }
    assert life.holds_quota(status)
    assert life.running_seconds(status, NOW + 16) == 10.0


def test_checks_have_a_state_each_and_are_waited_for():
    """Only those that are needed, and what is known about them stays."""
    status = life.with_checks(life.reserved(EMPTY, GIVEN, NOW), ["a", "b"], NOW)
    assert [each.state for each in status.admission_checks] == ["Pending", "Pending"]
    assert not life.are_checks_ready(status)
    waiting = life.not_yet_admitted(status, NOW).condition(ADMITTED)
    assert waiting is not None
    assert waiting.message.endswith("a, b")
    ready = WorkloadStatus(admission_checks=(AdmissionCheckState(name="b", state="Ready"),))
    assert life.are_checks_ready(life.with_checks(ready, ["b"], NOW))
    assert life.with_checks(ready, [], NOW).admission_checks == ()
    retry = AdmissionCheckState(name="a", state="Retry", requeue_after_seconds=90)
    assert life.retried_after(WorkloadStatus(admission_checks=(retry,))) == 90


def test_preemption_and_the_way_back():
    """Quota is kept until nothing runs; then it is free, time is accounted for, and the Workload is in its queue again."""
    status = life.preempted(running(), "InClusterQueue", "for another", NOW + 30)
    assert life.holds_quota(status)
    assert shown(status)[EVICTED] == ("True", "Preempted")
    assert shown(status)[PREEMPTED] == ("True", "InClusterQueue")
    status = life.released(status, "PendingEvaluation", "preempted", NOW + 40)
    assert not life.holds_quota(status)
    assert status.accumulated_past_execution_time_seconds == 40
    assert shown(status)[REQUEUED] == ("True", "Preempted")
    assert not life.waits_to_be_requeued(status)
    again = life.reserved(status, GIVEN, NOW + 50)
    assert shown(again)[EVICTED] == shown(again)[PREEMPTED] == ("False", "QuotaReserved")
    evictions = again.scheduling_stats.evictions
    assert [(each.reason, each.count) for each in evictions] == [("Preempted", 1)]


def test_checks_are_asked_again_when_the_quota_is_lost():
    """One that rejects the workload goes on saying why, and one that has not answered has nothing to take back."""
    said = {"a": ("Ready", "fine"), "b": ("Rejected", "never"), "c": ("Pending", "asking")}
    checks = tuple(
        AdmissionCheckState(name=name, state=state, message=message)
        for name, (state, message) in said.items()
    )
    status = life.released(WorkloadStatus(admission_checks=checks), "PendingEvaluation", "", NOW)
    assert {each.name: (each.state, each.message) for each in status.admission_checks} == {
        "a": ("Pending", "Reset to Pending after eviction. Previously: Ready"),
        "b": ("Rejected", "never"),
        "c": ("Pending", "asking"),
    }


def test_g13_a_workload_whose_pods_do_not_become_ready_is_evicted():
    """The time is counted from the admission, or from when they were lost; it waits until its back-off is over."""
    status = running()
    assert life.readiness_timer(status) == ("WaitForStart", NOW)
    status = life.pods_ready(status, False, NOW + 1)
    assert life.readiness_timer(status) == ("WaitForStart", NOW)
    status = life.pods_ready(status, True, NOW + 2)
    assert life.readiness_timer(status) is None
    status = life.pods_ready(status, False, NOW + 9)
    assert life.readiness_timer(status) == ("WaitForRecovery", NOW + 9)
    assert life.readiness_timer(life.pods_ready(status, False, NOW + 11)) == (
        "WaitForRecovery",
        NOW + 9,
    )
    status = life.evicted(status, "PodsReadyTimeout", "too late", NOW + 20, cause="WaitForRecovery")
    status = life.released(
        life.backed_off(status, NOW + 20, 60, 3600), "PendingEvaluation", "", NOW + 21
    )
    assert shown(status)[REQUEUED] == ("False", "PodsReadyTimeout")
    assert status.condition(PODS_READY) is None


def test_g14_at_the_limit_it_is_deactivated_and_reactivation_forgets():
    """One more try than allowed is one too many."""
    status = WorkloadStatus(requeue_state=RequeueState(count=2))
    assert [life.exceeds(status, limit) for limit in (None, 3, 2, 0)] == [False, False, True, True]
    status = life.to_be_deactivated(status, "RequeuingLimitExceeded", "too often", NOW)
    assert life.deactivation_cause(status) == "RequeuingLimitExceeded"
    status = life.reactivated(status, NOW + 1)
    assert (status.requeue_state, life.deactivation_cause(status)) == (None, "")
    assert shown(status)[REQUEUED] == ("True", "Reactivated")


@pytest.mark.parametrize(
    ("tries", "wait"), [(0, 60), (1, 120), (2, 240), (5, 1920), (6, 3600), (500, 3600)]
)
def test_g16_the_back_off_doubles_up_to_its_limit(tries, wait):
    """From 60 seconds to an hour."""
    status = WorkloadStatus(requeue_state=RequeueState(count=tries))
    after = life.backed_off(status, NOW, 60, 3600).requeue_state
    assert after is not None
    assert (after.count, seconds_of(after.requeue_at)) == (tries + 1, NOW + wait)


def test_g16_a_later_time_is_never_shortened():
    """Whoever set it."""
    later = timestamp_at(NOW + 7200)
    status = WorkloadStatus(requeue_state=RequeueState(requeue_at=later))
    for after in (life.backed_off(status, NOW, 60, 3600), life.not_before(status, NOW + 10)):
        assert after.requeue_state is not None
        assert after.requeue_state.requeue_at == later


def test_pods_that_can_be_reclaimed_are_not_taken_back():
    """Fewer than before is a count that is out of date."""
    status = life.reclaimed(EMPTY, {"main": 2})
    assert [each.count for each in status.reclaimable_pods] == [2]
    assert life.reclaimed(status, {"main": 1}) is status
    assert life.released(status, "PendingEvaluation", "", NOW).reclaimable_pods == ()


def test_the_end():
    """With the reason and the message of what ended."""
    status = life.finished(running(), Ended(False, "failed"), NOW)
    assert shown(status)["Finished"] == ("True", "Failed")
    assert life.is_finished(status)

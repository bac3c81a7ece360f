"""What is counted about queues."""

from __future__ import annotations

from itertools import pairwise

from drayman.api.kueue_workload import Admission, WorkloadStatus
from drayman.controllers.quota.tally import QueueTally
from drayman.workloads.queued import life
from drayman.workloads.queued.kinds import Ended

NOW = 1_800_000_000.0


def test_each_step_is_counted_once_for_its_queue():
    """Whatever else is written in between."""
    tally = QueueTally()
    waiting = life.refused(WorkloadStatus(), "WaitingForQuota", "", (), NOW)
    reserved = life.reserved(waiting, Admission(cluster_queue="q"), NOW)
    admitted = life.admitted(reserved, NOW)
    ready = life.pods_ready(admitted, True, NOW)
    evicted = life.evicted(ready, "PodsReadyTimeout", "", NOW, cause="WaitForRecovery")
    released = life.released(evicted, "PendingEvaluation", "", NOW)
    again = life.admitted(life.reserved(released, Admission(cluster_queue="q"), NOW), NOW)
    ended = life.finished(again, Ended(True, ""), NOW)
    steps = [waiting, reserved, admitted, ready, evicted, released, again, ended]
    for before, after in pairwise(steps):
        tally.note(before, after)
    assert tally.reserved == tally.admitted == {("q",): 2}
    assert tally.finished == {("q",): 1}
    assert tally.evicted == {("q", "PodsReadyTimeout", "WaitForRecovery"): 1}

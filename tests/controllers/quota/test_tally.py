"""What is counted about queues, and what of it `/metrics` shows."""

from __future__ import annotations

from itertools import pairwise

from prometheus_client.core import Metric

from drayman.api import codec
from drayman.api.kueue_workload import Admission, Workload, WorkloadSpec, WorkloadStatus
from drayman.api.times import timestamp_at
from drayman.apiserver.instance.queue_metrics import QueueMetrics
from drayman.controllers.quota.histograms import Histogram
from drayman.controllers.quota.tally import QueueTally
from drayman.explain.queues.engine import queues_of
from drayman.quota.state import QuotaState
from drayman.workloads.queued import life
from drayman.workloads.queued.kinds import Ended
from explain.hall import Hall

NOW = 1_800_000_000.0
ADMISSION = Admission(cluster_queue="q")
WORKLOAD = codec.convert(
    Workload, {"metadata": {"name": "w", "namespace": "n", "creationTimestamp": timestamp_at(NOW)}}
)
SPEC = codec.convert(WorkloadSpec, {"queueName": "l", "priorityClassRef": {"name": "high"}})


def counted() -> QueueTally:
    """A life in which each step takes ten times as long as the one before."""
    waiting = life.refused(WorkloadStatus(), "WaitingForQuota", "", (), NOW)
    reserved = life.reserved(waiting, ADMISSION, NOW + 1)
    admitted = life.admitted(reserved, NOW + 11)
    ready = life.pods_ready(admitted, True, NOW + 111)
    evicted = life.evicted(ready, "PodsReadyTimeout", "", NOW + 1111, cause="WaitForRecovery")
    released = life.released(evicted, "PendingEvaluation", "", NOW + 1120)
    queued = life.requeued(released, True, "BackoffFinished", "", NOW + 2000)
    again = life.admitted(life.reserved(queued, ADMISSION, NOW + 2003), NOW + 2003)
    ended = life.finished(again, Ended(True, ""), NOW + 2103)
    steps = [waiting, reserved, admitted, ready, evicted, released, queued, again, ended]
    tally = QueueTally()
    for before, after in pairwise(steps):
        tally.note(WORKLOAD, SPEC, before, after)
    return tally


def test_each_step_is_counted_once_for_its_queues() -> None:
    """Whatever else is written in between."""
    tally = counted()
    for counts, queue in ((tally.cluster, ("q",)), (tally.local, ("l", "n"))):
        assert counts.reserved == counts.admitted == {(*queue, "high"): 2}
        assert counts.finished == {(*queue, "high"): 1}
        why = (*queue, "PodsReadyTimeout", "WaitForRecovery", "high")
        assert counts.evicted == counts.evicted_once == {why: 1}


def test_how_long_each_step_took() -> None:
    """Since it was created, or queued again; by the times of conditions."""
    times = counted().cluster.times
    class_ = ("q", "high")
    assert {name: found[class_].total for name, found in times.items() if class_ in found} == {
        "quota_reserved_wait_time_seconds": 1 + 3,
        "admission_wait_time_seconds": 11 + 3,
        "admission_checks_wait_time_seconds": 10 + 0,
        "ready_wait_time_seconds": 111,
        "admitted_until_ready_wait_time_seconds": 100,
        "execution_time_seconds": (1120 - 11) + 100,
    }
    why = ("q", "PodsReadyTimeout")
    assert times["workload_eviction_latency_seconds"][why].total == 9
    behind = (*why, "WaitForRecovery")
    assert times["pods_ready_to_evicted_time_seconds"][behind].total == 1000


def test_buckets_count_what_is_not_above_them() -> None:
    """The last has everything."""
    found = Histogram((1.0, 5.0))
    for value in (0.5, 1.0, 3.0, 100.0):
        found.add(value)
    assert list(found.buckets()) == [("1.0", 2.0), ("5.0", 3.0), ("+Inf", 4.0)]
    assert (found.count, found.total) == (4, 104.5)


def engine() -> QuotaState:
    hall = Hall().flavor("f").cohort("all").queue("q", "all", f={"nominal": 4, "borrow": 2})
    hall.workload("has", "q", 3, has="f").workload("wants", "q", 2)
    return queues_of(hall.world()).state


def metrics(tally: QueueTally) -> dict[str, Metric]:
    return {each.name: each for each in QueueMetrics(tally).collect()}


def value(metric: Metric, **labels: str) -> float:
    (found,) = (s.value for s in metric.samples if labels.items() <= s.labels.items())
    return found


def test_gauges_are_those_of_the_engine() -> None:
    """Of cluster queues, local queues and cohorts, cpu in units; limits that are not there are infinite."""
    state = engine()
    found = metrics(QueueTally(state=lambda: state))
    cpu = {"flavor": "f", "resource": "cpu"}
    assert value(found["kueue_cluster_queue_nominal_quota"], cohort="all", **cpu) == 4
    assert value(found["kueue_cluster_queue_borrowing_limit"], **cpu) == 2
    assert value(found["kueue_cluster_queue_lending_limit"], **cpu) == float("inf")
    assert value(found["kueue_cluster_queue_resource_usage"], **cpu) == 3
    assert value(found["kueue_cluster_queue_resource_pending"], resource="cpu") == 2
    assert value(found["kueue_unadmitted_workloads"], reason="PendingEvaluation") == 1
    assert value(found["kueue_pending_workloads"], status="active") == 1
    local = {"name": "lq-q", "namespace": "default"}
    assert value(found["kueue_local_queue_pending_workloads"], status="active", **local) == 1
    assert value(found["kueue_local_queue_admitted_active_workloads"], **local) == 1
    assert value(found["kueue_local_queue_resource_usage"], **local, **cpu) == 3
    assert value(found["kueue_local_queue_status"], active="True", **local) == 1
    assert value(found["kueue_cohort_subtree_quota"], cohort="all", **cpu) == 4
    assert value(found["kueue_cohort_subtree_resource_reservations"], cohort="all", **cpu) == 3
    assert all(s.labels["replica_role"] == "standalone" for m in found.values() for s in m.samples)


def test_queues_that_are_gone_are_forgotten() -> None:
    """Labels do not grow with names that come and go."""
    tally = counted()
    names = ("kueue_quota_reserved_workloads", "kueue_local_queue_quota_reserved_workloads")
    state = engine()
    tally.state = lambda: state
    before = metrics(tally)
    assert value(before[names[0]], cluster_queue="q", priority_class="high") == 2
    assert not before[names[1]].samples  # there is no local queue l in namespace n
    for counts in (tally.preempted, tally.dispatched, tally.taken):
        counts["q", "any"] += 1
    state.remove_cluster_queue("q")
    assert not metrics(tally)[names[0]].samples
    assert not any((tally.preempted, tally.dispatched, tally.taken))


def test_a_refused_workload_is_inadmissible() -> None:
    """Until something changes that could matter."""
    state = engine()
    state.cycle(NOW)
    state.cycle(NOW)
    found = metrics(QueueTally(state=lambda: state))["kueue_pending_workloads"]
    assert (value(found, status="inadmissible"), value(found, status="active")) == (1, 0)

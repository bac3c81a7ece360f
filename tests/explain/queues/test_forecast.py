"""When workloads that wait would start, as far as run times are known."""

from __future__ import annotations

from drayman.explain.answer import Estimate
from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.standing import Line
from explain.hall import Hall, moment
from explain.queues.cases import device_of_another, one_queue, preempting, strict


def estimates(hall: Hall) -> dict[str, Estimate]:
    """Of all that wait, by name."""
    line = Line(hall.world())
    forecast = Forecast(line)
    return {
        key.partition("/")[2]: forecast.estimate(key)
        for key, entry in line.queues.state.entries.items()
        if entry.holding is None
    }


def starts(hall: Hall) -> dict[str, str]:
    return {name: each.start for name, each in estimates(hall).items()}


def test_it_starts_when_the_holder_is_to_end() -> None:
    """The declared run time counts from the admission, and the estimate names what it rests on."""
    hall = one_queue().workload("x", "q", 4, has="f", since=-3600, runs="2h").workload("w", "q", 1)
    found = estimates(hall)["w"]
    assert (found.start, found.seconds) == (moment(3600), 3600)
    assert [(each.workload, each.ends, each.basis) for each in found.workloads] == [
        ("default/x", moment(3600), "declared")
    ]
    assert "This is an estimate: it rests on the end of workload default/x" in found.sentence


def test_it_starts_when_it_can_have_the_device_of_its_victim() -> None:
    """Those whom it drives out leave with their pods and the devices of these, in the forecast as in the answer before it."""
    found = estimates(device_of_another())["w"]
    assert found.start == moment(0)


def test_those_ahead_start_first() -> None:
    """What one workload frees goes to whoever is first, and the next one waits for the end of that."""
    hall = one_queue().workload("x", "q", 4, has="f", runs="2h")
    hall.workload("first", "q", 4, priority=1, runs="1h").workload("second", "q", 4)
    assert starts(hall) == {"first": moment(3600), "second": moment(7200)}


def test_without_run_times_there_is_no_estimate() -> None:
    """It is said how many workloads do not say how long they run."""
    hall = one_queue().workload("x", "q", 2, has="f").workload("y", "q", 2, has="f", runs="2h")
    found = estimates(hall.workload("w", "q", 4))["w"]
    assert (found.start, found.unknown) == ("", 1)
    assert "it is not known how long 1 workload with quota runs" in found.sentence


def test_one_that_does_not_say_how_long_it_runs_blocks_those_behind_it() -> None:
    """What starts in the forecast without a declared end keeps its quota."""
    hall = one_queue().workload("x", "q", 4, has="f", runs="2h")
    hall.workload("first", "q", 4, priority=1).workload("second", "q", 4)
    assert starts(hall) == {"first": moment(3600), "second": ""}


def test_a_longest_execution_counts_as_an_end() -> None:
    """What it has run in earlier admissions counts."""
    hall = one_queue().workload("x", "q", 4, has="f", since=-100, maximumExecutionTimeSeconds=1000)
    hall.objects["queued_workloads"][0]["status"]["accumulatedPastExecutionTimeSeconds"] = 300
    assert starts(hall.workload("w", "q", 1)) == {"w": moment(600)}


def test_a_job_in_several_waves_runs_several_times_as_long() -> None:
    """Four completions, two at a time."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    hall = one_queue().workload("x", "q", 2, count=2, has="f", since=0, runs="1h", owner=owner)
    metadata = {"name": "j", "namespace": "default", "uid": "j"}
    hall.objects["jobs"] = [{"metadata": metadata, "spec": {"completions": 4, "parallelism": 2}}]
    assert starts(hall.workload("w", "q", 1)) == {"w": moment(7200)}


def test_strict_queues_keep_their_order() -> None:
    """The second does not start before the first, though it would fit."""
    hall = strict()
    hall.objects["queued_workloads"][0]["spec"]["podSets"][0]["template"]["metadata"] = {
        "annotations": {"drayman.dev/runtime": "2h"}
    }
    assert starts(hall) == {"large": moment(3600), "w": moment(3600)}


def test_victims_give_way_at_once_and_wait_again() -> None:
    """Who preempts others need not wait for their end; they start again after it."""
    found = estimates(preempting())
    assert found["w"].start == moment(0)
    assert "as soon as it is its turn" in found["w"].sentence


def test_a_stopped_queue_has_no_estimate() -> None:
    """Waiting alone does not help there."""
    hall = Hall().flavor("f").queue("q", f=4, more={"stopPolicy": "Hold"}).workload("w", "q", 1)
    assert (
        estimates(hall)["w"].sentence == "No start can be estimated: waiting alone does not help."
    )


def test_the_engine_is_as_before() -> None:
    """Everything that was played is taken back."""
    hall = one_queue().workload("x", "q", 4, has="f", runs="2h").workload("w", "q", 1)
    line = Line(hall.world())
    before = {key: line.headline(key) for key in line.queues.workloads}
    first, again = Forecast(line), Forecast(line)
    assert first.starts == again.starts
    assert {key: line.headline(key) for key in line.queues.workloads} == before

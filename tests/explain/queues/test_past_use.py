"""Local queues that come in the order of what they used: explanations know that order, and leave it as it was."""

from __future__ import annotations

from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.standing import Line
from explain.hall import Hall, moment

SHARING = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "admissionFairSharing": {"usageHalfLifeTime": "1h"},
}
BY_PAST_USE = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}


def hall() -> Hall:
    """Two local queues, of which the one whose workload came first has used more."""
    found = Hall().flavor("f").queue("q", f=4, more=BY_PAST_USE).local("lq-other", "q")
    found.configuration = SHARING
    for name, used in (("lq-q", 8), ("lq-other", 1)):
        past = {"consumedResources": {"cpu": str(used)}, "lastUpdate": moment(-60)}
        (queue,) = (e for e in found.objects["local_queues"] if e["metadata"]["name"] == name)
        queue["status"] = {"fairSharing": {"admissionFairSharingStatus": past}}
    return found


def order(found: Hall) -> list[str]:
    line = Line(found.world())
    return line.in_order(line.queues.state.books.queues["q"])


def test_who_used_less_is_ahead() -> None:
    """Whatever its age."""
    found = hall().workload("first", "q", 4).workload("second", "lq-other", 4)
    assert order(found) == ["default/second", "default/first"]
    line = Line(found.world())
    assert line.is_admitted_now("default/second")
    assert not line.is_admitted_now("default/first")


def test_quota_of_a_moment_ago_counts() -> None:
    """What was given after the last sample is in no status yet; it counts with what the next sample will make of it."""
    found = hall().workload("first", "q", 1).workload("second", "lq-other", 1)
    late = hall().workload("first", "q", 1).workload("second", "lq-other", 1)
    late.objects["local_queues"][0]["status"] = late.objects["local_queues"][1]["status"]
    assert order(late)[0] == "default/first"
    late.workload("given", "lq-q", 3, has="f", since=-30)
    assert order(late) == ["default/second", "default/first"]
    assert order(found)[0] == "default/second"


def test_playing_the_future_does_not_change_the_past() -> None:
    """Estimates sample what is used at later times; the next question is about now again."""
    found = hall().workload("runs", "q", 4, has="f", runs="2h").workload("first", "q", 4)
    line = Line(found.workload("second", "lq-other", 4).world())
    before = line.queues.state.past_use.remembered()
    Forecast(line)
    assert line.queues.state.past_use.remembered() == before

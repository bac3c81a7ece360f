"""Admission fair sharing: between local queues of one cluster queue, who used less comes first."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.quota.entries import Entry
from drayman.quota.past_use import PastUse
from drayman.quota.settings import AdmissionFairSharingSettings
from drayman.quota.waiting import Again, Waiting
from quota.queues import Object, Story, queue, workload
from quota.test_waiting import entry
from steps import steps_of

CONFIG = {
    "admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "5m"},
}
BY_USE = {"admissionMode": "UsageBasedAdmissionFairSharing"}


def local(name: str, consumed: int = 0, weight: Any = None) -> Object:
    """A local queue of `q` that used so much cpu in the past."""
    found: Object = {
        "kind": "LocalQueue",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"clusterQueue": "q"},
    }
    if weight is not None:
        found["spec"]["fairSharing"] = {"weight": str(weight)}
    known = {"consumedResources": {"cpu": str(consumed)}, "lastUpdate": "2026-01-01T02:46:00Z"}
    found["status"] = {"fairSharing": {"admissionFairSharingStatus": known}}
    return found


def test_f37_who_used_less_comes_first() -> None:
    """One slot goes to the local queue that used two, although the other one's workload is older and more important."""
    story = Story(
        queue("q", 1, admissionScope=BY_USE),
        local("a", 8),
        local("b", 2),
        workload("older", "a", 1, priority=5),
        workload("newer", "b", 1),
        config=CONFIG,
    )
    assert story.admitted() == {"newer"}


def test_f37_without_weight_a_local_queue_comes_last() -> None:
    """However little it used."""
    story = Story(
        queue("q", 1, admissionScope=BY_USE),
        local("a", 0, weight=0),
        local("b", 8),
        workload("older", "a", 1),
        workload("newer", "b", 1),
        config=CONFIG,
    )
    assert story.admitted() == {"newer"}


def test_f37_one_of_each_before_the_next_sample() -> None:
    """Who gets quota counts at once, so that the next one is of the other local queue."""
    story = Story(
        queue("q", 2, admissionScope=BY_USE),
        local("a"),
        local("b"),
        workload("a1", "a", 1),
        workload("a2", "a", 1),
        workload("b1", "b", 1),
        config=CONFIG,
    )
    assert story.admitted() == {"a1", "b1"}


@pytest.mark.parametrize("scope", [None, {"admissionMode": "NoAdmissionFairSharing"}])
def test_f38_a_queue_without_the_mode_goes_by_priority_and_age(scope: Any) -> None:
    """Past use does not count, and nothing is held against anybody."""
    mode = {} if scope is None else {"admissionScope": scope}
    story = Story(
        queue("q", 2, **mode),
        local("a", 8),
        local("b", 2),
        workload("a1", "a", 1),
        workload("a2", "a", 1),
        workload("b1", "b", 1),
        config=CONFIG,
    )
    assert story.admitted() == {"a1", "a2"}


def past_use(half_life: str = "10m", **weights: float) -> PastUse:
    return PastUse(
        AdmissionFairSharingSettings(usage_half_life_time=half_life, resource_weights=weights)
    )


def test_what_was_used_fades() -> None:
    """After a half-life half of it is forgotten, and half of what is used now is remembered."""
    use = past_use()
    use.set_queue("l", 1.0, {"cpu": 8.0}, 0.0)
    assert not use.sample(299.0, lambda _: {"cpu": 0})
    assert use.sample(600.0, lambda _: {"cpu": 4})
    assert use.consumed("l") == {"cpu": pytest.approx(6.0)}


def test_penalties_end_with_the_sample_that_takes_them_in() -> None:
    """Until then they count for as much as a sample after one interval would make of them."""
    use = past_use("5m")
    use.set_queue("l", 2.0, {}, 0.0)
    use.admitted("l", "w", {"cpu": 4})
    assert use.share("l") == pytest.approx(1.0)
    use.sample(300.0, lambda _: {"cpu": 4})
    assert use.share("l") == pytest.approx(1.0)
    use.admitted("l", "x", {"cpu": 4})
    use.not_admitted("l", "x")
    assert use.share("l") == pytest.approx(1.0)


def test_resources_have_weights() -> None:
    """One that is not listed counts once; a queue without weight has used infinitely much."""
    use = past_use(gpu=10.0)
    use.set_queue("l", 1.0, {"cpu": 1.0, "gpu": 2.0}, 0.0)
    assert use.share("l") == pytest.approx(21.0)
    use.set_queue("l", 0.0, {}, None)
    assert use.share("l") == math.inf


# The line of a cluster queue in the order of past use.

QUEUES = ("default/a", "default/b", "default/c")
actions = st.tuples(
    st.sampled_from(
        ["add", "leave", "victims", "admitted", "undone", "sample", "weight", "forget"]
    ),
    st.integers(0, 8),
    st.sampled_from(QUEUES),
)


def waits(number: int, queue: str) -> Entry:
    """One of up to nine workloads, of two shapes."""
    found = entry(f"w{number}", cpu=1 + number % 2, priority=number % 3, since=number)
    return Entry(replace(found.facts, queue=queue))


@given(st.lists(actions, max_size=30))
def test_the_line_is_in_the_order_of_past_use(steps: list[tuple[str, int, str]]) -> None:
    """Of the first workloads of each shape and local queue, the head is of the queue that used least, after any history."""
    use = past_use("5m")
    for each in QUEUES:
        use.set_queue(each, 1.0, {}, 0.0)
    waiting = Waiting(strict=False)
    waiting.order_by_past_use(use, 0.0)
    there: dict[str, Entry] = {}
    now = 0.0
    for what, number, queue_ in steps:
        if what == "add":
            there[f"w{number}"] = waits(number, queue_)
            waiting.add(there[f"w{number}"], now)
        elif what == "leave":
            there.pop(f"w{number}", None)
            waiting.discard(f"w{number}")
        elif what == "victims" and f"w{number}" in there:
            waiting.refuse(there[f"w{number}"], Again.VICTIMS)
        elif what == "admitted":
            use.admitted(queue_, f"x{number}", {"cpu": number})
        elif what == "undone":
            use.not_admitted(queue_, f"x{number}")
        elif what == "sample":
            now += 400.0
            use.sample(now, lambda name: {"cpu": len(name) % 3})
        elif what == "weight":
            use.set_queue(queue_, float(number), {}, 0.0)
        elif what == "forget":
            use.restore(use.remembered())
        firsts: dict[object, Entry] = {}
        for each in sorted(there.values(), key=lambda each: each.facts.order):
            firsts.setdefault((each.facts.queue, each.shape), each)
        wanted = min(
            firsts.values(),
            key=lambda e: (use.share(e.facts.queue), e.key != waiting.sticky, e.facts.order),
            default=None,
        )
        assert waiting.head() is wanted


# Work.


@pytest.mark.parametrize("what", ["nothing is due", "one is admitted"])
def test_a_cycle_costs_the_same_however_many_local_queues_there_are(what: str) -> None:
    """Between two samples, queues are looked at only if something of theirs happens."""

    def work(number: int) -> int:
        use = past_use("5m")
        waiting = Waiting(strict=False)
        waiting.order_by_past_use(use, 0.0)
        for each in range(number):
            use.set_queue(f"default/l{each}", 1.0, {}, 0.0)
            waiting.add(Entry(replace(entry(f"w{each}").facts, queue=f"default/l{each}")), 0.0)
        assert waiting.head() is not None

        def cycles() -> None:
            for each in range(10):
                use.sample(10.0 + each, lambda _: {})
                head = waiting.head()
                if what == "one is admitted" and head is not None:
                    use.admitted(head.facts.queue, head.key, {"cpu": 1})
                    waiting.discard(head.key)

        return steps_of(cycles)

    few, many = work(50), work(800)
    assert many < 2 * few, (few, many)

"""Partial admission, reclaimable pods, readiness, stop policies and what wakes whom."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from drayman.quota.demands import NotPlaced, Unpriced
from drayman.quota.state import QuotaState
from quota.queues import Object, Story, flavor, held, pods, queue, workload


def counts(story: Story, name: str) -> list[int]:
    """How many pods of each set were admitted; empty if it waits."""
    found = story.settle()["workloads"][f"default/{name}"]
    return [each["count"] for each in found.get("podSets", [])]


def test_g1_all_pod_sets_or_nothing() -> None:
    """One that does not fit keeps the others from being admitted."""
    sets = [pods("a", cpu=1), pods("b", cpu=5)]
    assert Story(queue("q", 4), workload("w", "q", *sets)).admitted() == set()


def test_g2_as_many_pods_as_fit() -> None:
    """Twenty-five of fifty, where twenty would do."""
    story = Story(queue("q", 50), workload("w", "q", pods(count=50, least=20, cpu=2)))
    assert counts(story, "w") == [25]


def test_g3_pod_sets_shrink_together() -> None:
    """Each by its part of what can be spared."""
    sets = [
        pods("a", 20, cpu=1),
        pods("b", 30, least=10, cpu=1),
        pods("c", 15, least=5, cpu=1),
    ]
    story = Story(queue("q", 50), workload("w", "q", *sets))
    assert counts(story, "w") == [20, 20, 10]


def test_g4_rather_preempt_than_shrink() -> None:
    """If others may be driven out for the full size, they are."""
    story = Story(
        queue("q", 20, within="LowerPriority"),
        held("low", "q", 10, priority=-1),
        workload("w", "q", pods(count=20, least=10, cpu=1)),
    )
    assert story.victims("w") == {"low": "InClusterQueue"}
    assert counts(story, "w") == [20]


@pytest.mark.parametrize(("quota", "total"), [(20, 20), (15, 15), (10, 10), (9, 0)])
def test_g5_down_to_the_least(quota: int, total: int) -> None:
    """Four pod sets of five can do with three, four, one and two."""
    sets = [pods(f"s{n}", 5, least=least, cpu=1) for n, least in enumerate((3, 4, 1, 2))]
    story = Story(queue("q", quota), workload("w", "q", *sets))
    assert sum(counts(story, "w")) == total


def test_g6_pods_that_have_ended_give_back_quota() -> None:
    """What was reserved stays on record, and the difference is free for others."""
    story = Story(queue("q", 6), workload("w", "q", pods(count=6, cpu=1)), workload("x", "q", 4))
    assert story.admitted() == {"w"}
    story.patch("Workload", "w", {"status": {"reclaimablePods": [{"name": "main", "count": 4}]}})
    assert story.admitted() == {"w", "x"}
    assert counts(story, "w") == [6]


def test_g13_who_was_not_ready_in_time_goes_to_the_back() -> None:
    """Behind those of its priority that came later, if the configuration says so; otherwise it keeps its place."""
    for timestamp, first in (("Eviction", "newer"), ("Creation", "older")):
        older = workload("older", "q", 2)
        condition = {
            "type": "Evicted",
            "status": "True",
            "reason": "PodsReadyTimeout",
            "lastTransitionTime": "2026-01-02T00:00:00Z",
        }
        older["status"] = {"conditions": [condition]}
        config = {"waitForPodsReady": {"requeuingStrategy": {"timestamp": timestamp}}}
        story = Story(queue("q", 2), older, workload("newer", "q", 2), config=config)
        assert story.admitted() == {first}


def test_g15_one_at_a_time_until_pods_are_ready() -> None:
    """The second waits for the pods of the first; without the setting both are admitted at once."""
    waiting = [workload("one", "a", 1), workload("two", "b", 1)]
    queues = [queue("a", 1), queue("b", 1)]
    assert Story(*queues, *waiting).admitted() == {"one", "two"}
    story = Story(*queues, *waiting, config={"waitForPodsReady": {"blockAdmission": True}})
    assert story.admitted() == {"one"}
    assert story.reason("two") == "WaitingForPodsReady"
    status = story.run.objects.workload("default/one").status
    ready = {"type": "PodsReady", "status": "True", "reason": "Started"}
    conditions = [*status["conditions"], ready]
    story.patch("Workload", "one", {"status": {"conditions": conditions}})
    assert story.admitted() == {"one", "two"}


@pytest.mark.parametrize(
    ("kind", "policy", "kept", "reason"),
    [
        ("ClusterQueue", "Hold", {"runs"}, "Suspended"),
        ("ClusterQueue", "HoldAndDrain", set(), "Suspended"),
        ("LocalQueue", "Hold", {"runs"}, "Suspended"),
        ("LocalQueue", "HoldAndDrain", set(), "Suspended"),
    ],
)
def test_g18_a_queue_that_is_stopped(kind: str, policy: str, kept: set[str], reason: str) -> None:
    """Nobody new gets quota; those that have some keep it, or give it up too. Afterwards all goes on."""
    story = Story(queue("q", 2), workload("runs", "q", 2), workload("waits", "q", 1))
    assert story.admitted() == {"runs"}
    story.patch(kind, "q", {"spec": {"stopPolicy": policy}})
    assert story.admitted() == kept
    assert story.reason("waits") == reason
    story.patch(kind, "q", {"spec": {"stopPolicy": "None"}})
    assert "runs" in story.admitted()


def test_a_deactivated_workload_gives_up_its_quota() -> None:
    """Others get it; when it is active again it waits its turn."""
    story = Story(queue("q", 2), workload("one", "q", 2), workload("two", "q", 2))
    assert story.admitted() == {"one"}
    story.patch("Workload", "one", {"spec": {"active": False}})
    assert story.admitted() == {"two"}
    story.patch("Workload", "one", {"spec": {"active": True}})
    assert story.admitted() == {"two"}
    story.finish("two")
    assert story.admitted() == {"one"}


def test_a_strict_queue_is_blocked_by_its_head() -> None:
    """Others wait behind it, though they would fit; in a queue of best effort they go ahead."""
    waiting = [workload("big", "q", 5, priority=1), workload("small", "q", 1)]
    assert Story(queue("q", 4, queueingStrategy="StrictFIFO"), *waiting).admitted() == set()
    assert Story(queue("q", 4), *waiting).admitted() == {"small"}


@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
def test_a_namespace_that_is_not_served_blocks_nobody(strategy: str) -> None:
    """A head that is refused for its namespace is passed over, and tried again when the namespace changes."""
    selector = {"matchLabels": {"team": "x"}}
    objects: list[Any] = [
        {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "x"}}},
        queue("q", 2, queueingStrategy=strategy, namespaceSelector=selector),
        workload("first", "q", 1),
    ]
    second = workload("second", "q", 1)
    second["metadata"]["namespace"] = "other"
    local = {"namespace": "other", "name": "q"}
    objects += [
        {"kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": "q"}},
        second,
    ]
    story = Story(*objects)
    assert story.admitted() == {"second"}
    assert story.reason("first") == "Misconfigured"
    story.patch("Namespace", "default", {"metadata": {"labels": {"team": "x"}}})
    assert story.admitted() == {"first", "second"}


TEAM_X: Final = {"matchLabels": {"team": "x"}}


@pytest.mark.parametrize("team", ["y", None], ids=["another label", "no label"])
def test_a_namespace_that_is_not_served_any_more_is_told_to_who_waits(team: str | None) -> None:
    """Whatever it was refused for before."""
    named = {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "x"}}}
    story = Story(named, queue("q", 2, namespaceSelector=TEAM_X), workload("large", "q", 3))
    story.settle()
    assert story.reason("large") == "ExceedsMaxQuota"
    story.patch("Namespace", "default", {"metadata": {"labels": {"team": team}}})
    story.settle()
    assert story.reason("large") == "Misconfigured"


def test_who_was_not_served_is_tried_when_the_queue_serves_others() -> None:
    """The selector of the queue changes, and no namespace does."""
    story = Story(queue("q", 2, namespaceSelector=TEAM_X), workload("one", "q", 1))
    assert story.admitted() == set()
    assert story.reason("one") == "Misconfigured"
    story.patch("ClusterQueue", "q", {"spec": {"namespaceSelector": {"matchLabels": None}}})
    assert story.admitted() == {"one"}


def test_what_ends_in_a_stopped_local_queue_wakes_the_others() -> None:
    """Quota that comes free is given to whoever waits for it, wherever it comes from."""
    second: Object = {
        "kind": "LocalQueue",
        "metadata": {"namespace": "default", "name": "other"},
        "spec": {"clusterQueue": "q"},
    }
    story = Story(queue("q", 2), second, workload("one", "q", 2), workload("two", "other", 2))
    assert story.admitted() == {"one"}
    story.patch("LocalQueue", "q", {"spec": {"stopPolicy": "Hold"}})
    story.finish("one")
    assert story.admitted() == {"two"}


def test_an_unknown_flavor_makes_a_queue_inactive() -> None:
    """It says so, still lends its quota, and goes on when the flavor appears."""
    story = Story(queue("q", quota={"later": {"cpu": 2}}), workload("w", "q", 1))
    assert story.admitted() == set()
    assert story.run.state.books.queues["q"].inactive == "FlavorNotFound"
    story.create(flavor("later"))
    assert story.admitted() == {"w"}


@pytest.mark.parametrize("what", ["local queue", "cluster queue"])
def test_a_queue_that_is_not_there_is_named(what: str) -> None:
    """The workload waits for it, and is admitted when it appears."""
    cluster, local = queue("q", 2)
    there, missing = (cluster, local) if what == "local queue" else (local, cluster)
    story = Story(there, workload("w", "q", 1))
    assert story.admitted() == set()
    assert story.reason("w") == "Misconfigured"
    story.create(missing)
    assert story.admitted() == {"w"}


def test_what_could_not_be_written_is_taken_back() -> None:
    """Quota that a cycle gave counts until it is forgotten; then it is decided again."""
    story = Story(queue("q", 2))
    state: QuotaState = story.run.state
    story.create(workload("w", "q", 2))
    first = state.cycle(9e9)
    assert [type(each).__name__ for each in first] == ["Reserved"]
    assert state.cycle(9e9) == ()
    state.forget("default/w", 9e9)
    assert state.cycle(9e9) == first


def test_a_limit_range_that_changes_is_applied_to_what_waits() -> None:
    """Defaults count from then on, and what it forbids waits with the reason."""
    story = Story(queue("q", 2), workload("w", "q", pods()))
    limit_range: Object = {
        "kind": "LimitRange",
        "metadata": {"namespace": "default", "name": "r"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]},
    }
    story.create(limit_range)
    assert story.admitted() == set()
    assert story.reason("w") == "ExceedsMaxQuota"
    limit_range["spec"]["limits"][0]["max"] = {"cpu": "1"}
    story.create(limit_range)
    assert story.admitted() == set()
    assert story.reason("w") == "Misconfigured"


def test_what_the_object_says_is_not_assumed_any_more() -> None:
    """Quota that a cycle gave, that was written and then taken away, is free."""
    story = Story(queue("q", 2))
    state: QuotaState = story.run.state
    story.create(workload("w", "q", 2))
    assert story.admitted() == {"w"}
    status = story.run.objects.workload("default/w").status
    assert not state.entries["default/w"].assumed
    released = {**status, "admission": None, "conditions": []}
    story.run.objects.write_status("default/w", released, 9e9)
    assert state.entries["default/w"].holding is None


def test_lost_nodes_of_what_cannot_be_priced_are_not_replaced() -> None:
    """Who holds nothing may be told of later; whose devices have no price any more is told so, and has no other places."""
    story = Story(queue("q", 4), held("w", "q", 2))
    state, lost = story.run.state, frozenset({"a"})
    entry = state.entries["default/w"]
    entry.facts = replace(entry.facts, demands=Unpriced("there is no DeviceClass gpu", True))
    assert state.replaced("default/w", lost) == NotPlaced("there is no DeviceClass gpu")
    assert state.replaced("default/unknown", lost) is None

"""Whom changes of queues concern, apart from cycles."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Namespace
from drayman.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.meta import ObjectMeta
from drayman.quota.concerned import Concerned
from drayman.quota.settings import QuotaSettings
from drayman.quota.state import QuotaState
from quota.queues import Object, flavor, queue

NOW: Final = 1_800_000_000.0
QUEUES: Final = ("a", "b")


def put(state: QuotaState, value: Object) -> None:
    match value["kind"]:
        case "ResourceFlavor":
            state.set_flavor(convert(ResourceFlavor, value))
        case "Cohort":
            state.set_cohort(convert(Cohort, value))
        case "ClusterQueue":
            state.set_cluster_queue(convert(ClusterQueue, value), NOW)
        case _:
            state.set_local_queue(convert(LocalQueue, value), NOW)


def workload(name: str, local: str, has: str = "") -> Workload:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    value: Object = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"queueName": local, "active": True, "podSets": [pods]},
    }
    if has:
        assigned = {"name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1"}}
        reserved = {"type": "QuotaReserved", "status": "True", "reason": "x", "message": ""}
        admission = {"clusterQueue": has, "podSetAssignments": [{**assigned, "count": 1}]}
        value["status"] = {"admission": admission, "conditions": [reserved]}
    return convert(Workload, value)


def town() -> QuotaState:
    """Two queues of a flavor each, with one workload that waits and one that holds quota, and one that names no queue that exists."""
    state = QuotaState(QuotaSettings(), None)
    state.set_namespace(Namespace(metadata=ObjectMeta(name="default")))
    for name in QUEUES:
        put(state, flavor(f"f{name}"))
        for each in queue(name, quota={f"f{name}": {"cpu": 4}}):
            put(state, each)
        state.set_workload(workload(f"waits-{name}", name), NOW)
        state.set_workload(workload(f"holds-{name}", name, has=name), NOW)
    state.set_workload(workload("lost", "nowhere"), NOW)
    return state


def cluster_queue(name: str, cpu: int = 4, **spec: Any) -> Object:
    (found,) = (
        each
        for each in queue(name, quota={f"f{name}": {"cpu": cpu}}, **spec)
        if each["kind"] == "ClusterQueue"
    )
    return found


def local_queue(name: str, **spec: Any) -> Object:
    return {
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterQueue": name, **spec},
    }


OF_A: Final = {"default/waits-a", "default/holds-a"}
CHECKS: Final = {"admissionChecks": [{"name": "budget"}]}
CASES: Final = {
    "a flavor that is not there any more": (lambda s: s.remove_flavor("fa"), OF_A),
    "a flavor with other labels": (lambda s: put(s, flavor("fa", nodeLabels={"x": "y"})), set()),
    "a flavor of nobody": (lambda s: put(s, flavor("new")), set()),
    "another namespace": (
        lambda s: s.set_namespace(Namespace(metadata=ObjectMeta(name="other"))),
        set(),
    ),
    "a cohort": (lambda s: put(s, {"kind": "Cohort", "metadata": {"name": "c"}}), set()),
    "a queue in a cohort": (lambda s: put(s, cluster_queue("a", cohort="c")), set()),
    "a queue with more quota": (lambda s: put(s, cluster_queue("a", cpu=8)), set()),
    "a queue that is stopped": (lambda s: put(s, cluster_queue("a", stopPolicy="Hold")), OF_A),
    "a queue with checks": (
        lambda s: put(s, cluster_queue("a", admissionChecksStrategy=CHECKS)),
        OF_A,
    ),
    "a queue that is gone": (lambda s: s.remove_cluster_queue("a"), OF_A),
    "a local queue that is stopped": (lambda s: put(s, local_queue("a", stopPolicy="Hold")), OF_A),
    "a local queue that leads elsewhere": (
        lambda s: put(s, local_queue("a", clusterQueue="b")),
        OF_A,
    ),
    "a local queue that was missing": (
        lambda s: put(s, local_queue("nowhere", clusterQueue="a")),
        {"default/lost"},
    ),
}


@pytest.mark.parametrize(("change", "concerned"), CASES.values(), ids=CASES)
def test_those_are_concerned_whose_queue_means_something_else(
    change: Any, concerned: set[str]
) -> None:
    """And nobody else, nor they a second time."""
    state, asked = town(), Concerned()
    asked.begin(state)
    change(state)
    assert asked.since(state) == concerned
    assert asked.since(state) == set()


CHANGES = st.one_of(
    st.tuples(st.just("flavor"), st.sampled_from(("fa", "fb")), st.booleans()),
    st.tuples(st.just("cluster queue"), st.sampled_from(QUEUES), st.booleans()),
    st.tuples(
        st.just("stop"), st.sampled_from(QUEUES), st.sampled_from(("None", "Hold", "HoldAndDrain"))
    ),
    st.tuples(st.just("checks"), st.sampled_from(QUEUES), st.sampled_from(([], ["x"], ["x", "y"]))),
    st.tuples(st.just("check of"), st.sampled_from(QUEUES), st.sampled_from(("f", "fa", "fb"))),
    st.tuples(st.just("leads to"), st.sampled_from((*QUEUES, "nowhere")), st.sampled_from(QUEUES)),
    st.tuples(
        st.just("local stop"), st.sampled_from(QUEUES), st.sampled_from(("None", "HoldAndDrain"))
    ),
)


def apply(state: QuotaState, change: tuple[str, str, Any]) -> None:
    what, name, value = change
    match what:
        case "flavor":
            put(state, flavor(name)) if value else state.remove_flavor(name)
        case "cluster queue":
            put(state, cluster_queue(name)) if value else state.remove_cluster_queue(name)
        case "stop":
            put(state, cluster_queue(name, stopPolicy=value))
        case "checks":
            strategy = {"admissionChecks": [{"name": each} for each in value]}
            put(state, cluster_queue(name, admissionChecksStrategy=strategy))
        case "check of":
            strategy = {"admissionChecks": [{"name": "x", "onFlavors": [value]}]}
            put(state, cluster_queue(name, admissionChecksStrategy=strategy))
        case "leads to":
            put(state, local_queue(name, clusterQueue=value))
        case _:
            put(state, local_queue(name, stopPolicy=value))


def outlook(state: QuotaState) -> dict[str, object]:
    """What follows for each workload from its queue: where it stands, and which checks it needs."""
    found: dict[str, object] = {}
    for key, entry in state.entries.items():
        holding = entry.holding
        checks = None if holding is None else state.books.required_checks(holding.admission)
        found[key] = (state.standing(key), checks)
    return found


@settings(deadline=None)
@given(st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=12))
def test_for_all_others_nothing_follows(rounds: list[list[tuple[str, str, Any]]]) -> None:
    """Whatever changes, once or several times before it is asked: who is not concerned stands as before, and needs the same checks."""
    state, asked = town(), Concerned()
    asked.begin(state)
    for changes in rounds:
        before = outlook(state)
        for change in changes:
            apply(state, change)
        concerned, now = asked.since(state), outlook(state)
        different = {key for key, each in now.items() if each != before[key]}
        # Of a queue that is gone nobody can tell which checks its workloads need, and nothing is done about them.
        assert {key for key in different - concerned if now[key] != (None, None)} == set()

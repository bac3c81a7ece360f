"""Which node suits best."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.placement.fit import (
    Neighbourhood,
    NodeUsage,
    PodNeeds,
    balance,
    has_preferences,
    preferences,
)
from drayman.placement.fit.scores import evenness_score, room_score
from placement.fit.objects import facts, near, needs, preferred, selects, spread, taint

DISCOURAGED = [taint("a", effect="PreferNoSchedule")]
TWICE = [*DISCOURAGED, taint("b", effect="PreferNoSchedule")]


def wishes(*weighed: tuple[int, str]) -> dict[str, Any]:
    """Preferences for nodes with a label, by weight."""
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for weight, key in weighed
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


PREFERENCES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[int]]] = {
    "nothing asked": ({}, [{}, {}], [300, 300]),
    "labels by weight": (
        {"affinity": wishes((10, "ssd"), (30, "gpu"))},
        [{"labels": {"ssd": ""}}, {"labels": {"gpu": ""}}, {"labels": {"ssd": "", "gpu": ""}}, {}],
        [300 + 2 * 25, 300 + 2 * 75, 300 + 2 * 100, 300],
    ),
    "labels nobody has": ({"affinity": wishes((10, "ssd"))}, [{}, {}], [300, 300]),
    "fewer discouraging taints": (
        {},
        [{"taints": TWICE}, {"taints": DISCOURAGED}, {}],
        [0, 150, 300],
    ),
    "discouraging taints, tolerated": (
        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"}]},
        [{"taints": TWICE}, {"taints": DISCOURAGED}],
        [0, 300],
    ),
    "a toleration for another effect does not count": (
        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]},
        [{"taints": DISCOURAGED}, {}],
        [0, 300],
    ),
}


@pytest.mark.parametrize(("pod", "nodes", "want"), PREFERENCES.values(), ids=PREFERENCES)
def test_preferences(pod: dict[str, Any], nodes: list[dict[str, Any]], want: list[int]) -> None:
    """Wishes are normalised over the candidates and weighed as upstream weighs them."""
    candidates = [facts(f"node-{number}", **node) for number, node in enumerate(nodes)]
    assert preferences(needs(**pod), candidates) == want


def crowded() -> tuple[Neighbourhood, list[Any]]:
    """Three zones with three, one and no pod."""
    nodes = [facts(zone, labels={"zone": zone}) for zone in ("a", "b", "c")]
    index = Neighbourhood()
    for node in nodes:
        index.set_node(node)
    for zone in ("a", "a", "a", "b"):
        index.add(needs(labels={"app": "web"}), zone)
    return index, nodes


def scored(pod: PodNeeds) -> list[int]:
    index, nodes = crowded()
    return [score - 300 for score in preferences(pod, nodes, index.prepare(pod))]


def test_pod_affinity_is_normalised_between_the_extremes() -> None:
    """The best gets all points of the rule, the worst none."""
    term = near(selects(app="web"))
    assert scored(needs(affinity=preferred(5, term))) == [200, 66, 0]
    assert scored(needs(affinity=preferred(5, term, anti=True))) == [0, 2 * 66, 200]


def test_spreading_prefers_the_least_crowded() -> None:
    """Points fall with the pods in the domain."""
    pod = needs(topologySpreadConstraints=[spread(selects(app="web"), hard=False)])
    # Three zones: ln 5 = 1.609, so 5, 2 and 0 for the three.
    assert scored(pod) == [0, 2 * 60, 200]


def test_spreading_over_nothing() -> None:
    """Where no domain has any such pod, all candidates with the label are as good."""
    pod = needs(topologySpreadConstraints=[spread(selects(app="none"), hard=False)])
    assert scored(pod) == [200, 200, 200]


def test_when_there_are_preferences() -> None:
    """Only pods that somebody has a wish about need to be scored."""
    index, _ = crowded()
    plain, choosy = needs(), needs(affinity=wishes((1, "ssd")))
    social = needs(affinity=preferred(5, near(selects(app="web"))))
    assert not has_preferences(plain, index.prepare(plain))
    assert has_preferences(choosy)
    assert has_preferences(social, index.prepare(social))


NODE = {"allocatable": {"cpu": "10", "memory": "1000", "pods": "10"}}

ROOM: dict[str, tuple[list[dict[str, str]], dict[str, str], int, int]] = {
    "half of cpu": ([], {"cpu": "5", "memory": "0"}, 75, 62),
    "both alike": ([], {"cpu": "1", "memory": "100"}, 90, 75),
    "on top of others": ([{"cpu": "5", "memory": "500"}], {"cpu": "1", "memory": "100"}, 40, 75),
    "evens out": ([{"cpu": "5", "memory": "0"}], {"cpu": "0", "memory": "500"}, 50, 87),
    "more than there is": ([], {"cpu": "20", "memory": "2000"}, 0, 75),
}


@pytest.mark.parametrize(("there", "asked", "room", "even"), ROOM.values(), ids=ROOM)
def test_balance(there: list[dict[str, str]], asked: dict[str, str], room: int, even: int) -> None:
    """Room left and evenness are scored as upstream's LeastAllocated and BalancedAllocation."""
    usage, node = NodeUsage(), facts(**NODE)
    for requests in there:
        usage.add(needs(requests))
    pod = needs(asked)
    assert room_score(pod, node, usage) == room
    assert evenness_score(pod, node, usage) == even
    assert balance(pod, node, usage) == room + even


def test_a_pod_that_asks_for_nothing() -> None:
    """It counts with a usual size for the room and has no say in evenness."""
    node = facts(allocatable={"cpu": "1", "memory": "400Mi", "pods": "10"})
    pod = needs()
    assert room_score(pod, node, NodeUsage()) == (90 + 50) // 2
    assert evenness_score(pod, node, NodeUsage()) == 0


def test_a_node_without_resources() -> None:
    """A node that offers nothing has no room and no opinion."""
    assert room_score(needs(), facts(allocatable={}), NodeUsage()) == 0

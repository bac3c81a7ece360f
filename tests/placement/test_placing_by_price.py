"""Nodes are chosen by their price for pods that lean to cheap or dear ones, and as before for all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import NoNode
from drayman.placement.decision.placements import Placement
from drayman.placement.placing import Found, Placer
from drayman.placement.prices import CLOUD_SPOT, PRICE, SPOT
from drayman.placement.spending import COST
from drayman.placement.state import ClusterState
from drayman.placement.world import state_of
from simulate.cluster import NOW, cluster, node, pod

LOW = {"annotations": {COST: "low"}}
ACCEPTS = {"annotations": {SPOT: "true"}}
ZONE = "topology.kubernetes.io/zone"


def state(nodes: Mapping[str, Mapping[str, str]], devices: int = 2) -> ClusterState:
    """Nodes with these labels, and so many devices each."""
    made = tuple(node(name, labels=labels) for name, labels in nodes.items())
    return state_of(cluster(dict.fromkeys(nodes, devices), nodes=made).objects)


def placed(state: ClusterState, *pods: dict[str, Any]) -> list[str]:
    """Where pods with these fields go, one after the other; empty for one that waits."""
    return list(_placed(state, *pods))


def _placed(state: ClusterState, *pods: dict[str, Any]) -> Iterator[str]:
    round_ = Decider(state).round(NOW)
    for number, fields in enumerate(pods):
        outcome = round_.decide(pod(f"p{number}", **{"template": "one", **fields}))
        assert isinstance(outcome, (Placement, NoNode))
        yield outcome.node if isinstance(outcome, Placement) else ""


THREE = {"mid": {PRICE: "5"}, "dear": {PRICE: "9"}, "cheap": {PRICE: "1"}}
CASES: dict[str, tuple[dict[str, dict[str, str]], list[dict[str, Any]], list[str]]] = {
    "low cost fills the cheapest first": (
        THREE,
        [{"metadata": LOW}] * 5,
        ["cheap", "cheap", "mid", "mid", "dear"],
    ),
    "a priority fills the dearest first": (
        THREE,
        [{"priority": 7}] * 5,
        ["dear", "dear", "mid", "mid", "cheap"],
    ),
    "a node without a price comes last either way": (
        {"unknown": {}, **THREE},
        [{"metadata": LOW}] * 7 + [{"priority": 1}],
        ["cheap", "cheap", "mid", "mid", "dear", "dear", "unknown", "unknown"],
    ),
    "a priority would rather have a node that is not spot, whatever it costs": (
        {"spot": {PRICE: "9", SPOT: "true"}, "plain": {}, "cheap": {PRICE: "1"}},
        [{"priority": 1, "metadata": ACCEPTS}] * 5,
        ["cheap", "cheap", "plain", "plain", "spot"],
    ),
    "a priority without devices only avoids spot nodes": (
        {"spot": {SPOT: "true"}, "dear": {PRICE: "9"}, "cheap": {PRICE: "1"}},
        [{"template": "", "priority": 1, "metadata": ACCEPTS}] * 2,
        ["dear", "cheap"],
    ),
    "a spot node is for pods that accept it": (
        {"spot": {SPOT: "true"}, "plain": {}},
        [{}, {}, {}, {"metadata": ACCEPTS}],
        ["plain", "plain", "", "spot"],
    ),
    "what the user prefers comes before the price": (
        {"cheap": {PRICE: "1", ZONE: "a"}, "dear": {PRICE: "9", ZONE: "b"}},
        [
            {
                "metadata": LOW,
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {
                                    "matchExpressions": [
                                        {"key": ZONE, "operator": "In", "values": ["b"]}
                                    ]
                                },
                            }
                        ]
                    }
                },
            },
            {"metadata": LOW},
        ],
        ["dear", "cheap"],
    ),
    "what a cloud says counts for nodes with prices": (
        {
            "priced": {PRICE: "1", "karpenter.sh/capacity-type": "spot"},
            "other": {"karpenter.sh/capacity-type": "spot"},
        },
        [{}, {}, {}],
        ["other", "other", ""],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_where_pods_go(name: str) -> None:
    """One after the other."""
    nodes, pods, expected = CASES[name]
    assert placed(state(nodes), *pods) == expected


def test_without_a_leaning_the_price_does_not_matter() -> None:
    """Such pods go where they went before there were prices."""
    unpriced: dict[str, dict[str, str]] = {name: {} for name in THREE}
    assert placed(state(THREE), *[{}] * 7) == placed(state(unpriced), *[{}] * 7)


def test_a_node_that_becomes_cheap_is_found() -> None:
    """Whatever was kept about it before; and a node that becomes spot is closed."""
    there = state(THREE)
    decider = Decider(there)

    def next_one(name: str, **fields: Any) -> str:
        outcome = decider.round(NOW).decide(pod(name, "one", **fields))
        return outcome.node if isinstance(outcome, Placement) else ""

    assert next_one("a", metadata=LOW) == "cheap"
    there.set_node(node("dear", labels={PRICE: "0.5"}))
    assert next_one("b", metadata=LOW) == "dear"
    there.set_node(node("dear", labels={PRICE: "0.5", SPOT: "true"}))
    assert next_one("c", metadata=LOW) == "cheap"
    with there.trial():
        there.set_node(node("dear", labels={PRICE: "0.1"}))
        assert next_one("d", metadata=LOW) == "dear"
    assert next_one("e", metadata=LOW) == "mid"


# Laws over random clusters.

labels_of_clouds = st.dictionaries(
    st.sampled_from([*CLOUD_SPOT, "node.kubernetes.io/instance-type"]),
    st.sampled_from(["spot", "SPOT", "true", "on-demand"]),
    max_size=2,
)
prices = st.sampled_from(["0", "1", "1.5", "9", "nonsense"])
terms = st.fixed_dictionaries(
    {}, optional={PRICE: prices, SPOT: st.sampled_from(["true", "false", "nonsense"])}
)
said = st.fixed_dictionaries(
    {},
    optional={COST: st.sampled_from(["low", "high"]), SPOT: st.sampled_from(["true", "false"])},
)
asked = st.fixed_dictionaries(
    {
        "annotations": said,
        "priority": st.sampled_from([0, 0, 10]),
        "template": st.sampled_from(["", "one", "two", "three"]),
        "cpu": st.sampled_from(["1", "8"]),
    }
)


def fields_of(pod: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in pod.items() if name != "annotations"}
    return {**rest, "metadata": {"annotations": pod["annotations"]}}


def named(given: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {f"n{number}": labels for number, labels in enumerate(given)}


@given(st.lists(labels_of_clouds, min_size=1, max_size=5), st.lists(asked, min_size=1, max_size=8))
def test_without_prices_nothing_is_decided_differently(
    clouds: list[dict[str, str]], pods: list[dict[str, Any]]
) -> None:
    """What clouds and pods say about cost and spot is then of no account."""
    silent = [{**fields_of(each), "metadata": {}, "priority": 0} for each in pods]
    with_words = placed(state(named(clouds), 3), *map(fields_of, pods))
    assert with_words == placed(state(named([{}] * len(clouds)), 3), *silent)


@given(st.lists(terms, min_size=1, max_size=6), st.lists(asked, min_size=1, max_size=8))
def test_each_pod_gets_the_best_node_by_its_leaning(
    offers: list[dict[str, str]], pods: list[dict[str, Any]]
) -> None:
    """Of the nodes that take it: never a dearer one for low cost; never a spot one for a priority, nor a cheaper one if it wants devices.

    And only spot if accepted.
    """
    there = state(named(offers), 3)
    round_ = Decider(there).round(NOW)
    for number, each in enumerate(pods):
        asks = pod(f"p{number}", **fields_of(each))
        demand = round_.demand(asks)
        fitting = [
            other
            for other in there.nodes.values()
            if round_.placer(demand).verdict_on(demand, other).fits
        ]
        accepts = each["annotations"].get(SPOT) == "true"
        assert accepts or not any(other.offer.is_spot for other in fitting)
        fresh = Placer(there, round_.decider._policy).find(demand)
        outcome = round_.decide(asks)
        if not isinstance(outcome, Placement):
            assert not fitting
            continue
        assert isinstance(fresh, Found)
        assert fresh.node.facts.name == outcome.node  # what is kept gives the same answer
        chosen = there.nodes[outcome.node].offer
        known = [other.offer.price for other in fitting if other.offer.price is not None]
        if each["annotations"].get(COST) == "low":
            assert chosen.price == (min(known) if known else None)
        elif each["priority"]:
            lasting = [other.offer for other in fitting if not other.offer.is_spot]
            assert chosen.is_spot == (not lasting)
            dear = [offer.price for offer in lasting if offer.price is not None]
            if lasting and each["template"]:
                assert chosen.price == (max(dear) if dear else None)

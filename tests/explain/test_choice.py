"""Why a pod is where it is: the nodes in question, and what decides between them."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.pod import explain_pod
from explain.town import Town
from oracle.build import claim, exactly
from oracle.observed import seen_in


def test_the_alternatives_of_a_pod_that_fits_begin_with_its_node() -> None:
    """The first is where it would go; the devices decide before the balance of the cluster."""
    town = Town().rooted("spread", "r0", "r1").rooted("close", "r0", "r0")
    found = town.runs("a", "close", cpu=4).wants(claim(exactly("gpus", 2))).explain()
    assert found.node == "close"
    assert [(item.node, item.chosen) for item in found.alternatives] == [
        ("close", True),
        ("spread", False),
    ]
    close, spread = found.alternatives
    assert close.quality["pcieRoots"] < spread.quality["pcieRoots"]
    assert (close.balance or 0) < (spread.balance or 0)


def test_preferences_are_told() -> None:
    """What users wrote down decides first."""
    prefers: dict[str, Any] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]
                    },
                }
            ]
        }
    }
    town = Town().node("n0", labels={"zone": "a"}).node("n1", labels={"zone": "b"})
    found = town.wants(affinity=prefers).explain()
    assert [item.node for item in found.alternatives] == ["n1", "n0"]
    first, second = found.alternatives
    assert (first.preference or 0) > (second.preference or 0)


def test_prices_are_told() -> None:
    """They decide before the devices for a pod that is to cost little."""
    price, spot = "drayman.dev/price-per-hour", "drayman.dev/spot"
    town = Town().node("dear", labels={price: "9"}).node("cheap", labels={price: "1.5"})
    town.node("spot", labels={spot: "true"})
    town.wants(metadata={"annotations": {"drayman.dev/cost": "low", spot: "true"}})
    found = [(each.node, each.price_per_hour, each.spot) for each in town.explain().alternatives]
    assert found == [("cheap", 1.5, False), ("dear", 9.0, False), ("spot", None, True)]


def test_what_a_running_pod_has_is_thought_away() -> None:
    """Its own node competes as if the pod came now."""
    town = Town().node("n0", 1).node("n1", 1).holds("a", "n0", "d0")
    found = town.explain("a")
    assert (found.headline.reason.value, found.node) == ("Runs", "n0")
    assert found.devices == ("gpu.example.com/n0/d0",)
    assert [(item.node, item.chosen) for item in found.alternatives] == [
        ("n0", True),
        ("n1", False),
    ]


@pytest.mark.parametrize(("others", "nodes"), [((), ["n0", "n1"]), (("b",), ["n0"])])
def test_what_a_group_has_is_thought_away_for_its_only_pod(
    others: tuple[str, ...], nodes: list[str]
) -> None:
    """A claim that is reserved for the group is as good as the pod's own, unless another of its pods has a node."""
    member = {"schedulingGroup": {"podGroupName": "g"}}
    town = Town().node("n0", 1).node("n1", 1).holds("a", "n0", "d0", **member)
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    status = town.claims[0]["status"]
    status["reservedFor"] = [group]
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    for other in others:
        town.runs(other, "n0", claim="a-claim", **member)
    assert [item.node for item in town.explain("a").alternatives] == nodes


def test_a_node_that_would_not_be_taken_again_says_why() -> None:
    """A cordon does not move pods, but it keeps them from coming back."""
    town = Town().node("n0", 1, unschedulable=True).node("n1", 1).holds("a", "n0", "d0")
    found = town.explain("a")
    assert [(item.node, item.chosen, item.refusal) for item in found.alternatives] == [
        ("n1", False, ""),
        ("n0", True, "cordoned"),
    ]


def test_only_the_best_few_are_listed_and_the_pods_own() -> None:
    """On a large cluster the list stays short."""
    town = Town()
    for number in range(9):
        town.node(f"n{number}", 1)
    town.holds("a", "n8", "d0").runs("b", "n8", cpu=1)
    found = town.explain("a")
    assert [item.node for item in found.alternatives] == ["n0", "n1", "n2", "n3", "n4", "n8"]
    assert found.alternatives[-1].chosen


def test_asking_changes_nothing() -> None:
    """After the question the state is what it was before."""
    town = Town().node("n0", 1).node("n1", 1).holds("a", "n0", "d0")
    world = town.world()
    pod = world.pod("default", "a")
    assert pod is not None
    before = seen_in(world.state.ledger), set(world.state.nodes["n0"].usage.pods)
    explain_pod(world, pod)
    assert (seen_in(world.state.ledger), set(world.state.nodes["n0"].usage.pods)) == before
    assert world.state.node_of("uid-a") == "n0"


def test_a_pod_that_has_ended_has_no_alternatives() -> None:
    """There is nothing to choose any more."""
    town = Town().node("n0", 1).runs("a", "n0")
    town.pods[-1]["status"] = {"phase": "Succeeded"}
    found = town.explain("a")
    assert (found.headline.reason.value, found.alternatives) == ("Runs", ())


def test_shared_claims_stay_where_they_are() -> None:
    """A claim that another pod uses too keeps its devices, and with them its node."""
    town = Town().node("n0", 1).node("n1", 1).holds("a", "n0", "d0")
    status = town.claims[0]["status"]
    status["reservedFor"].append({"resource": "pods", "name": "b", "uid": "uid-b"})
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    assert [item.node for item in town.explain("a").alternatives] == ["n0"]

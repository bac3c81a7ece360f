"""Affinity between pods, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.placement.fit import FITS, Cause, Neighbourhood, PodNeeds, Verdict
from placement.fit.objects import facts, near, needs, preferred, required, selects

NOT_NEAR = Verdict.refusal(Cause.POD_AFFINITY, "node(s) didn't match pod affinity rules")
TOO_NEAR = Verdict.refusal(
    Cause.POD_ANTI_AFFINITY, "node(s) didn't match pod anti-affinity rules", resolvable=True
)
UNWANTED = Verdict.refusal(
    Cause.POD_ANTI_AFFINITY,
    "node(s) didn't satisfy existing pods anti-affinity rules",
    resolvable=True,
)

WEB = {"labels": {"app": "web"}}
NEAR_WEB = {"affinity": required(near(selects(app="web")))}
FAR_FROM_WEB = {"affinity": required(near(selects(app="web")), anti=True)}


def around(**by_node: dict[str, Any]) -> Neighbourhood:
    """Node a1 and a2 in zone a, b in zone b, and nowhere, which has no zone; each with one pod if one is given."""
    neighbourhood = Neighbourhood()
    for name, labels in NODES.items():
        neighbourhood.set_node(facts(name, labels=labels))
    neighbourhood.set_namespace("default", {"team": "one"})
    neighbourhood.set_namespace("other", {"team": "two"})
    for name, pod in by_node.items():
        neighbourhood.add(needs(**pod), name)
    return neighbourhood


NODES = {"a1": {"zone": "a"}, "a2": {"zone": "a"}, "b": {"zone": "b"}, "nowhere": {}}


def verdicts(neighbourhood: Neighbourhood, pod: PodNeeds) -> dict[str, Verdict]:
    check = neighbourhood.prepare(pod)
    return {
        name: verdict
        for name, labels in NODES.items()
        if (verdict := check.verdict(facts(name, labels=labels))) is not FITS
    }


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Verdict]]] = {
    "near: the domain of a match": (
        {"a1": WEB},
        NEAR_WEB,
        {"b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: nobody there": (
        {},
        NEAR_WEB,
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: the first of a series needs the label only": (
        {},
        {**WEB, **NEAR_WEB},
        {"nowhere": NOT_NEAR},
    ),
    "near: the second of a series goes to the first": (
        {"b": WEB},
        {**WEB, **NEAR_WEB},
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: all terms are about one pod": (
        {"a1": {"labels": {"app": "web"}}, "b": {"labels": {"tier": "x"}}},
        {"affinity": required(near(selects(app="web")), near(selects(tier="x")))},
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: two topologies": (
        {"a1": WEB},
        {
            "affinity": required(
                near(selects(app="web")), near(selects(app="web"), "kubernetes.io/hostname")
            )
        },
        {"a2": NOT_NEAR, "b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: another namespace is not meant": (
        {"a1": {**WEB, "namespace": "other"}, "b": WEB},
        NEAR_WEB,
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: another namespace by name": (
        {"a1": {**WEB, "namespace": "other"}, "b": WEB},
        {"affinity": required(near(selects(app="web"), namespaces=["other"]))},
        {"b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: namespaces by selector": (
        {"a1": {**WEB, "namespace": "other"}, "b": WEB},
        {"affinity": required(near(selects(app="web"), namespaceSelector=selects(team="two")))},
        {"b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: an empty namespace selector is all namespaces": (
        {"a1": {**WEB, "namespace": "other"}},
        {"affinity": required(near(selects(app="web"), namespaceSelector={}))},
        {"b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "near: no selector matches nothing, an empty one everything": (
        {"a1": {}},
        {"affinity": required(near({}))},
        {"b": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "far: not in the domain of a match": (
        {"a1": WEB},
        FAR_FROM_WEB,
        {"a1": TOO_NEAR, "a2": TOO_NEAR},
    ),
    "far: terminating pods are still there": (
        {"a1": {**WEB, "deleted": True}},
        FAR_FROM_WEB,
        {"a1": TOO_NEAR, "a2": TOO_NEAR},
    ),
    "far: by node": (
        {"a1": WEB},
        {"affinity": required(near(selects(app="web"), "kubernetes.io/hostname"), anti=True)},
        {"a1": TOO_NEAR},
    ),
    "far: without a selector from nobody": (
        {"a1": WEB},
        {"affinity": required(near(None), anti=True)},
        {},
    ),
    "far: where the node has no such label there is no domain": (
        {"nowhere": WEB},
        FAR_FROM_WEB,
        {},
    ),
    "unwanted: a placed pod stays far from it": (
        {"a1": FAR_FROM_WEB},
        WEB,
        {"a1": UNWANTED, "a2": UNWANTED},
    ),
    "unwanted: a placed pod in another namespace does not mean it": (
        {"a1": {**FAR_FROM_WEB, "namespace": "other"}},
        WEB,
        {},
    ),
    "unwanted: a placed pod means all namespaces of a team": (
        {
            "a1": {
                "namespace": "other",
                "affinity": required(
                    near(selects(app="web"), namespaceSelector=selects(team="one")), anti=True
                ),
            }
        },
        WEB,
        {"a1": UNWANTED, "a2": UNWANTED},
    ),
    "affinity of placed pods binds nobody": ({"a1": NEAR_WEB}, WEB, {}),
    "same value of a label": (
        {
            "a1": {"labels": {"app": "web", "version": "1"}},
            "b": {"labels": {"app": "web", "version": "2"}},
        },
        {
            "labels": {"app": "web", "version": "2"},
            "affinity": required(near(selects(app="web"), matchLabelKeys=["version", "absent"])),
        },
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "nowhere": NOT_NEAR},
    ),
    "another value of a label": (
        {
            "a1": {"labels": {"app": "web", "version": "1"}},
            "b": {"labels": {"app": "web", "version": "2"}},
        },
        {
            "labels": {"app": "web", "version": "2"},
            "affinity": required(
                near(selects(app="web"), mismatchLabelKeys=["version"]), anti=True
            ),
        },
        {"a1": TOO_NEAR, "a2": TOO_NEAR},
    ),
}


@pytest.mark.parametrize(("placed", "pod", "want"), CASES.values(), ids=CASES)
def test_rules(placed: dict[str, Any], pod: dict[str, Any], want: dict[str, Verdict]) -> None:
    """Each node refuses for the reason that upstream gives, and the others take the pod."""
    assert verdicts(around(**placed), needs(**pod)) == want


def test_a_selector_that_makes_no_sense() -> None:
    """A pod whose terms cannot be understood fits nowhere and is told why."""
    nonsense = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
    pod = needs(affinity=required(near(nonsense)))
    found = verdicts(around(), pod)
    assert set(found) == set(NODES)
    assert all(v.reasons[0].startswith("parsing pod: ") for v in found.values())


def test_whom_it_concerns() -> None:
    """Neighbours concern a pod with terms, and any pod as soon as a placed one has terms, until that leaves."""
    neighbourhood = around(a1=WEB)
    assert not neighbourhood.concerns(needs())
    assert neighbourhood.concerns(needs(**NEAR_WEB))
    shy = needs(**FAR_FROM_WEB)
    neighbourhood.add(shy, "b")
    assert neighbourhood.concerns(needs())
    neighbourhood.remove(shy.uid)
    assert not neighbourhood.concerns(needs())


SCORES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, int]]] = {
    "own wish": (
        {"a1": WEB, "a2": WEB},
        {"affinity": preferred(10, near(selects(app="web")))},
        {"a1": 20, "a2": 20, "b": 0, "nowhere": 0},
    ),
    "own dislike": (
        {"a1": WEB},
        {"affinity": preferred(10, near(selects(app="web")), anti=True)},
        {"a1": -10, "a2": -10, "b": 0, "nowhere": 0},
    ),
    "wish of a placed pod": (
        {"a1": {"affinity": preferred(7, near(selects(app="web")))}},
        WEB,
        {"a1": 7, "a2": 7, "b": 0, "nowhere": 0},
    ),
    "required affinity of a placed pod counts one": (
        {"b": NEAR_WEB},
        WEB,
        {"a1": 0, "a2": 0, "b": 1, "nowhere": 0},
    ),
    "required affinity of its own counts nothing": (
        {"b": WEB},
        NEAR_WEB,
        {"a1": 0, "a2": 0, "b": 0, "nowhere": 0},
    ),
}


@pytest.mark.parametrize(("placed", "pod", "want"), SCORES.values(), ids=SCORES)
def test_scores(placed: dict[str, Any], pod: dict[str, Any], want: dict[str, int]) -> None:
    """Wishes add up over the pods in a domain."""
    check = around(**placed).prepare(needs(**pod))
    assert {n: check.affinity_score(facts(n, labels=v)) for n, v in NODES.items()} == want

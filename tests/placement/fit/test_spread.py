"""Spreading over topologies."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.placement.fit import FITS, Cause, Neighbourhood, NodeFacts, Verdict
from placement.fit.objects import facts, needs, selects, spread, taint

SKEWED = Verdict.refusal(
    Cause.SPREAD, "node(s) didn't match pod topology spread constraints", resolvable=True
)
UNLABELLED = Verdict.refusal(
    Cause.SPREAD,
    "node(s) didn't match pod topology spread constraints (missing required label)",
)

NODES = {
    "a1": facts("a1", labels={"zone": "a"}),
    "a2": facts("a2", labels={"zone": "a"}),
    "b": facts("b", labels={"zone": "b", "disk": "ssd"}),
    "tainted": facts("tainted", labels={"zone": "c"}, taints=[taint("x")]),
    "nowhere": facts("nowhere"),
}
WEB = {"labels": {"app": "web"}}
EVERYWHERE = ["a1", "b", "tainted"]


def around(placed: list[str], **pod: Any) -> Neighbourhood:
    """The nodes, with one pod for each name in the list."""
    neighbourhood = Neighbourhood()
    for node in NODES.values():
        neighbourhood.set_node(node)
    for name in placed:
        neighbourhood.add(needs(**(pod or WEB)), name)
    return neighbourhood


def web(*constraints: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**WEB, "topologySpreadConstraints": list(constraints), **fields}


CASES: dict[str, tuple[list[str], dict[str, Any], dict[str, Verdict]]] = {
    "all domains empty": ([], web(spread(selects(app="web"))), {}),
    "one more than the fewest": (
        ["a1"],
        web(spread(selects(app="web"))),
        {"a1": SKEWED, "a2": SKEWED},
    ),
    "a wider skew": (["a1"], web(spread(selects(app="web"), skew=2)), {}),
    "even again": ([*EVERYWHERE], web(spread(selects(app="web"))), {}),
    "a pod that is not of the kind may go to the fullest": (
        ["a1"],
        {"topologySpreadConstraints": [spread(selects(app="web"))]},
        {},
    ),
    "a pod that is not of the kind may not go where there is too much already": (
        ["a1", "a2"],
        {"topologySpreadConstraints": [spread(selects(app="web"))]},
        {"a1": SKEWED, "a2": SKEWED},
    ),
    "by node": (
        ["a1"],
        web(spread(selects(app="web"), "kubernetes.io/hostname")),
        {"a1": SKEWED},
    ),
    "fewer domains than wanted": (
        [*EVERYWHERE],
        web(spread(selects(app="web"), minDomains=4)),
        dict.fromkeys(["a1", "a2", "b", "tainted"], SKEWED),
    ),
    "as many domains as wanted": ([*EVERYWHERE], web(spread(selects(app="web"), minDomains=3)), {}),
    "nodes that the pod does not choose are no domains": (
        ["b"],
        web(spread(selects(app="web")), nodeSelector={"disk": "ssd"}),
        {},
    ),
    "nodes that the pod does not choose are domains if told": (
        ["b"],
        web(spread(selects(app="web"), nodeAffinityPolicy="Ignore"), nodeSelector={"disk": "ssd"}),
        {"b": SKEWED},
    ),
    "tainted nodes are domains": (
        ["a1", "b"],
        web(spread(selects(app="web"))),
        {"a1": SKEWED, "a2": SKEWED, "b": SKEWED},
    ),
    "tainted nodes are no domains if told": (
        ["a1", "b"],
        web(spread(selects(app="web"), nodeTaintsPolicy="Honor")),
        {},
    ),
    "two constraints: nodes without one of the labels are no domains of the other": (
        [],
        web(spread(selects(app="web")), spread(selects(app="web"), "disk")),
        {"a1": UNLABELLED, "a2": UNLABELLED, "tainted": UNLABELLED},
    ),
    "the same revision only": (
        ["a1"],
        web(
            spread(selects(app="web"), matchLabelKeys=["revision"]),
            labels={"app": "web", "revision": "2"},
        ),
        {},
    ),
    "an empty selector counts nobody, but the pod itself": (
        ["a1", "a1"],
        web(spread({})),
        {},
    ),
    "no selector counts nobody": (["a1", "a1"], web(spread(None)), {}),
    "soft constraints refuse nothing": (["a1"], web(spread(selects(app="web"), hard=False)), {}),
}


@pytest.mark.parametrize(("placed", "pod", "want"), CASES.values(), ids=CASES)
def test_rules(placed: list[str], pod: dict[str, Any], want: dict[str, Verdict]) -> None:
    """A pod may go where it does not make the skew between eligible domains too large."""
    check = around(placed).prepare(needs(**pod))
    hard = any(c["whenUnsatisfiable"] == "DoNotSchedule" for c in pod["topologySpreadConstraints"])
    expected = {"nowhere": UNLABELLED, **want} if hard else want
    keys = {c["topologyKey"] for c in pod["topologySpreadConstraints"]}
    if keys == {"kubernetes.io/hostname"}:
        del expected["nowhere"]
    found = {name: check.verdict(node) for name, node in NODES.items()}
    assert {name: v for name, v in found.items() if v is not FITS} == expected


def test_who_does_not_count() -> None:
    """Pods on their way out and pods of other namespaces do not count."""
    pod = needs(**web(spread(selects(app="web"))))
    leaving = around(["a1"], **WEB, deleted=True)
    assert leaving.prepare(pod).verdict(NODES["a1"]) is FITS
    elsewhere = around(["a1"], **WEB, namespace="other")
    assert elsewhere.prepare(pod).verdict(NODES["a1"]) is FITS


def candidates(*names: str) -> list[NodeFacts]:
    return [NODES[name] for name in names]


def test_soft_scores() -> None:
    """Crowding is the number of pods, weighed by the logarithm of the number of domains among the candidates."""
    pod = needs(**web(spread(selects(app="web"), hard=False, skew=3)))
    check = around(["a1", "a1", "b"]).prepare(pod)
    # Two domains: ln 4 = 1.386. The skew adds two everywhere.
    assert check.spread_scores(candidates("a1", "a2", "b", "nowhere")) == [5, 5, 3, None]


def test_soft_scores_by_node() -> None:
    """Spreading over nodes counts each node by itself, tainted and unchosen ones too."""
    constraint = spread(selects(app="web"), "kubernetes.io/hostname", hard=False)
    pod = needs(**web(constraint, nodeSelector={"disk": "ssd"}))
    check = around(["a1", "a1", "tainted"]).prepare(pod)
    # Three candidates: ln 5 = 1.609.
    assert check.spread_scores(candidates("a1", "b", "tainted")) == [3, 0, 2]

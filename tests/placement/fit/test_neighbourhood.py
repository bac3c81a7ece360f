"""The index of placed pods: kept up step by step, it says what one made afresh would say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from drayman.placement.fit import Neighbourhood, NodeFacts, PodNeeds
from placement.fit.objects import facts, near, needs, preferred, required, selects, spread, taint
from rounds import rounds

APPS = ("web", "db")
NAMESPACES = ("default", "other")
HOST = "kubernetes.io/hostname"

selectors = st.one_of(st.none(), st.just({}), st.sampled_from([selects(app=app) for app in APPS]))
topologies = st.sampled_from(["zone", HOST])
terms = st.builds(
    lambda selector, topology, extra: near(selector, topology, **extra),
    selectors,
    topologies,
    st.sampled_from([{}, {"namespaceSelector": selects(team="x")}, {"matchLabelKeys": ["rev"]}]),
)
affinities = st.one_of(
    st.none(),
    st.builds(lambda term, anti: required(term, anti=anti), terms, st.booleans()),
    st.builds(required, terms, terms),
    st.builds(
        lambda w, term, anti: preferred(w, term, anti=anti), st.integers(1, 3), terms, st.booleans()
    ),
)
constraints = st.builds(
    lambda selector, topology, hard, taints: spread(
        selector, topology, hard=hard, nodeTaintsPolicy=taints
    ),
    selectors,
    topologies,
    st.booleans(),
    st.sampled_from(["Honor", "Ignore"]),
)
pods = st.builds(
    lambda app, rev, namespace, deleted, affinity, spreads: needs(
        labels={"app": app, "rev": rev},
        namespace=namespace,
        deleted=deleted,
        affinity=affinity,
        topologySpreadConstraints=spreads,
    ),
    st.sampled_from(APPS),
    st.sampled_from(["1", "2"]),
    st.sampled_from(NAMESPACES),
    st.booleans(),
    affinities,
    st.lists(constraints, max_size=2),
)
nodes = st.builds(
    lambda name, zone, tainted: facts(
        name, labels={"zone": zone} if zone else {}, taints=[taint("x")] if tainted else []
    ),
    st.sampled_from(["n1", "n2", "n3"]),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
)
PROBES = [
    needs(labels={"app": "web", "rev": "1"}, affinity=required(near(selects(app="web")))),
    needs(labels={"app": "db"}, affinity=required(near(selects(app="web"), HOST), anti=True)),
    needs(affinity=preferred(2, near(selects(app="db"), namespaceSelector=selects(team="x")))),
    needs(labels={"app": "web"}, topologySpreadConstraints=[spread(selects(app="web"))]),
    needs(
        labels={"app": "web"},
        topologySpreadConstraints=[spread(selects(app="web"), HOST, hard=False)],
    ),
    needs(labels={"app": "db", "rev": "2"}),
]


def answers(neighbourhood: Neighbourhood, known: list[NodeFacts]) -> list[Any]:
    """All that an index says about some pods on all nodes."""
    found: list[Any] = []
    for probe in PROBES:
        check = neighbourhood.prepare(probe)
        found.append(neighbourhood.concerns(probe))
        found.append([check.verdict(node) for node in known])
        found.append([check.affinity_score(node) for node in known])
        found.append(check.spread_scores(known) if check.scores_spread else None)
    return found


class Cluster(RuleBasedStateMachine):
    """Pods, nodes and namespaces that come, change and go, while probes keep tallies alive."""

    def __init__(self) -> None:
        super().__init__()
        self.index = Neighbourhood()
        self.nodes: dict[str, NodeFacts] = {}
        self.pods: dict[str, tuple[PodNeeds, str]] = {}
        self.namespaces: dict[str, dict[str, str]] = {}

    @rule(pod=pods, node=st.sampled_from(["n1", "n2", "n3"]))
    def place(self, pod: PodNeeds, node: str) -> None:
        if pod.uid not in self.pods:
            self.pods[pod.uid] = (pod, node)
            self.index.add(pod, node)

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.pods:
            uid = data.draw(st.sampled_from(sorted(self.pods)))
            assert self.index.remove(uid) is self.pods.pop(uid)[0]

    @rule(node=nodes)
    def set_node(self, node: NodeFacts) -> None:
        self.nodes[node.name] = node
        self.index.set_node(node)

    @rule(name=st.sampled_from(["n1", "n2", "n3"]))
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.index.remove_node(name)

    @rule(name=st.sampled_from(NAMESPACES), team=st.sampled_from(["x", "y"]))
    def set_namespace(self, name: str, team: str) -> None:
        self.namespaces[name] = {"team": team}
        self.index.set_namespace(name, {"team": team})

    @rule(name=st.sampled_from(NAMESPACES))
    def remove_namespace(self, name: str) -> None:
        self.namespaces.pop(name, None)
        self.index.remove_namespace(name)

    @invariant()
    def says_what_a_fresh_one_says(self) -> None:
        fresh = Neighbourhood()
        for pod, node in self.pods.values():
            fresh.add(pod, node)
        for facts_ in self.nodes.values():
            fresh.set_node(facts_)
        for name, labels in self.namespaces.items():
            fresh.set_namespace(name, labels)
        known = list(self.nodes.values())
        assert answers(self.index, known) == answers(fresh, known)


Cluster.TestCase.settings = settings(max_examples=rounds(60), stateful_step_count=20, deadline=None)
TestCluster = Cluster.TestCase


def naive_anti_affinity(
    placed: list[tuple[PodNeeds, NodeFacts]], probe: str, node: NodeFacts
) -> bool:
    """Whether a pod in the same zone has the label that the probe keeps away from."""
    return any(
        pod.labels.get("app") == probe
        and pod.namespace == "default"
        and "zone" in node.labels
        and where.labels.get("zone") == node.labels["zone"]
        for pod, where in placed
    )


@given(st.lists(st.tuples(pods, nodes), max_size=8), st.sampled_from(APPS))
def test_anti_affinity_is_what_it_says(placed: list[tuple[PodNeeds, NodeFacts]], app: str) -> None:
    """A node is refused exactly if a pod that the term is about is in its domain."""
    by_name = {node.name: node for _, node in placed}
    index = Neighbourhood()
    for node in by_name.values():
        index.set_node(node)
    for pod, node in placed:
        index.add(pod, node.name)
    check = index.prepare(
        needs(labels={"z": "z"}, affinity=required(near(selects(app=app)), anti=True))
    )
    settled = [(pod, by_name[node.name]) for pod, node in placed]
    for node in by_name.values():
        refused = "node(s) didn't match pod anti-affinity rules" in check.verdict(node).reasons
        assert refused is naive_anti_affinity(settled, app, node)


def test_pods_are_placed_once() -> None:
    """Placing a pod twice, or removing one that is not placed, is an error."""
    index, pod = Neighbourhood(), needs()
    index.add(pod, "n1")
    with pytest.raises(ValueError, match="already"):
        index.add(pod, "n2")
    index.remove(pod.uid)
    with pytest.raises(ValueError, match="no pod"):
        index.remove(pod.uid)


def test_namespaces_that_change() -> None:
    """A term about namespaces by their labels follows the labels, also while its counts are kept."""
    index, node = Neighbourhood(), facts("n1", labels={"zone": "a"})
    index.set_node(node)
    index.add(needs(labels={"app": "db"}, namespace="other"), "n1")
    term = near(selects(app="db"), namespaceSelector=selects(team="x"))
    fan = needs(affinity=preferred(2, term))
    scores = []
    for team in ("x", "y", "x"):
        index.set_namespace("other", {"team": team})
        scores.append(index.prepare(fan).affinity_score(node))
    index.remove_namespace("other")
    scores.append(index.prepare(fan).affinity_score(node))
    assert scores == [2, 0, 2, 0]

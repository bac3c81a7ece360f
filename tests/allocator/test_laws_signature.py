"""Nodes of equal signatures get equal answers; nodes that differ in names only have equal signatures."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from drayman.allocator import Exhausted, Fault, Plan, Refusal, search, signature
from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.inventory import Features, Inventory, Ledger, NodeView
from oracle.nodes import JsonObject
from oracle.strategies import mixed_problems, placed_problems, problems
from oracle.subject import BEST, FIRST_FIT, claims_of, ledger_of, node_of


def verdict(view: NodeView, asked: JsonObject, policy: Any) -> Any:
    """An answer without names."""
    outcome = search(view, claims_of(asked), policy=policy)
    match outcome:
        case Plan():
            entries = [[r.request for r in c.allocation.devices.results] for c in outcome.claims]
            return "plan", entries, outcome.quality, outcome.preference_score
        case Refusal():
            funnel = [(r.request, r.reason, r.count, r.remaining) for r in outcome.rejections]
            return "refusal", outcome.kind, funnel
        case Fault():
            return "fault", outcome.scope, outcome.claim, outcome.request, len(outcome.devices)
        case Exhausted():
            return "exhausted", outcome.steps


def renamed(asked: JsonObject) -> JsonObject:
    """The slices, node and holdings of a problem with every pool, slice and device under another name, in the same order."""
    other = json.loads(json.dumps(asked))
    for piece in other["slices"]:
        piece["metadata"]["name"] += "-other"
        spec = piece["spec"]
        spec["pool"]["name"] += "-other"
        for place in (spec, *(spec.get("devices") or [])):
            if place.get("nodeName") == asked["node"]["metadata"]["name"]:
                place["nodeName"] = "other"
        for made in spec.get("devices") or []:
            made["name"] += "-other"
    for entries in other["allocated"].values():
        for entry in entries:
            entry["pool"] += "-other"
            entry["device"] += "-other"
            if "shareID" in entry:
                entry["shareID"] += "-other"
    other["node"]["metadata"]["name"] = "other"
    return dict(other)


class Cluster:
    """The nodes of several problems in one inventory, with the classes of the first."""

    def __init__(self, *asked: JsonObject) -> None:
        self.inventory = Inventory(Features.from_gates(asked[0]["features"]))
        self.ledger = Ledger()
        for item in asked[0]["classes"]:
            self.inventory.apply_class(convert(DeviceClass, item))
        for each in asked:
            for piece in each["slices"]:
                self.inventory.apply_slice(convert(ResourceSlice, piece))
            for holder, held in ledger_of(each).holders():
                self.ledger.observe(holder, held)

    def view(self, node: Node) -> NodeView:
        return self.inventory.view(node, self.ledger)


def is_local(asked: JsonObject) -> bool:
    """Whether all its slices are for its node by name, so that nodes do not see each other's devices."""
    name = asked["node"]["metadata"]["name"]
    specs = [piece["spec"] for piece in asked["slices"]]
    return all(spec.get("nodeName") == name and not spec.get("sharedCounters") for spec in specs)


@given(asked=st.one_of(mixed_problems(most_devices=8), placed_problems()))
def test_names_are_not_part_of_a_signature(asked: JsonObject) -> None:
    """A node whose devices and pools have other names, in the same order, has the same signature and the same verdicts."""
    assume(is_local(asked))
    other = renamed(asked)
    cluster = Cluster(asked, other)
    one, two = cluster.view(node_of(asked)), cluster.view(node_of(other))
    claims = claims_of(asked)
    assert signature(one, claims) == signature(two, claims)
    for policy in (FIRST_FIT, BEST):
        assert verdict(one, asked, policy) == verdict(two, asked, policy)


@given(
    asked=st.lists(st.one_of(problems(), placed_problems()), min_size=2, max_size=2), data=st.data()
)
def test_equal_signatures_mean_equal_verdicts(asked: list[JsonObject], data: st.DataObject) -> None:
    """Of two nodes that may differ in anything, whenever signatures are equal so are outcome, counts and quality."""
    first, second = asked
    other = renamed(second if data.draw(st.booleans()) else first)
    if other["allocated"]["devices"] and data.draw(st.booleans()):
        other["allocated"]["devices"].pop()
    cluster = Cluster(first, other)
    one, two = cluster.view(node_of(first)), cluster.view(node_of(other))
    claims = claims_of(first)
    if signature(one, claims) == signature(two, claims):
        for policy in (FIRST_FIT, BEST):
            assert verdict(one, first, policy) == verdict(two, first, policy)


@given(asked=problems())
def test_the_state_of_a_view_changes_only_with_what_it_shows(asked: JsonObject) -> None:
    """Two views with nothing between them have one state; who takes a whole device changes it, admin access does not."""
    cluster = Cluster(asked)
    node = node_of(asked)
    before = cluster.view(node)
    assert cluster.view(node).state == before.state
    outcome = search(before, claims_of(asked))
    assume(isinstance(outcome, Plan))
    assert isinstance(outcome, Plan)
    cluster.ledger.commit(outcome)
    entries = [r for c in outcome.claims for r in c.allocation.devices.results]
    if any(not entry.admin_access and entry.share_id is None for entry in entries):
        assert cluster.view(node).state != before.state
    elif all(entry.admin_access for entry in entries):
        assert cluster.view(node).state == before.state

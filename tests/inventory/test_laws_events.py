"""The inventory after any sequence of events is the one built from scratch out of what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceSlice
from drayman.inventory import Features, Holding, Inventory, Ledger, hardware, ledger
from oracle.nodes import JsonObject
from oracle.observed import observed
from oracle.strategies import mixed_problems
from oracle.subject import claims_of, ledger_of, node_of

Event = tuple[str, Any]
OTHER_NODE = convert(Node, {"metadata": {"name": "node-2", "labels": {"zone": "b", "tier": "9"}}})


@pytest.fixture(
    autouse=True, scope="module", params=["as it is", "everything forgotten, pools grouped"]
)
def memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """The ledger forgets changes at once, and few pools count as many, so that every way to catch up is taken."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(ledger, "_CHANGES_KEPT", 2)
            patch.setattr(ledger, "_CHANGES_KEPT_IN_POOL", 1)
            patch.setattr(hardware, "_MANY_POOLS", 1)
        yield


@st.composite
def rules(draw: st.DrawFn) -> JsonObject:
    """A taint rule for everything, or for what a driver, pool or device is called."""
    fields: JsonObject = {}
    if draw(st.booleans()):
        fields["driver"] = draw(st.sampled_from(["gpu.example.com", "nic.example.com"]))
    if draw(st.booleans()):
        fields["pool"] = draw(st.sampled_from(["p0", "p1"]))
    if draw(st.booleans()):
        fields["device"] = draw(st.sampled_from(["d0", "d1"]))
    spec: JsonObject = {"taint": {"key": "rule", "effect": "NoSchedule"}}
    if draw(st.integers(0, 5)):
        spec["deviceSelector"] = fields
    return {"metadata": {"name": draw(st.sampled_from(["rule-0", "rule-1"]))}, "spec": spec}


@st.composite
def histories(draw: st.DrawFn) -> tuple[JsonObject, list[Event]]:
    """A problem, and events about its slices, those of another one, rules and holders."""
    problem, other = draw(mixed_problems()), draw(mixed_problems())
    pieces = [*problem["slices"], *other["slices"]]
    held = [pair for p in (problem, other) for pair in ledger_of(p).holders()]
    names = sorted({piece["metadata"]["name"] for piece in pieces})
    kinds = [
        st.tuples(st.just("apply"), st.sampled_from(pieces)),
        st.tuples(st.just("apply"), st.sampled_from(pieces)),
        st.tuples(st.just("remove"), st.sampled_from(names)),
        st.tuples(st.just("rule"), rules()),
        st.tuples(st.just("unrule"), st.sampled_from(["rule-0", "rule-1"])),
        st.tuples(st.just("look"), st.none()),
    ]
    if held:
        kinds += [
            st.tuples(st.just("hold"), st.sampled_from(held)),
            st.tuples(st.just("forget"), st.sampled_from([holder for holder, _ in held])),
        ]
    return problem, draw(st.lists(st.one_of(kinds), max_size=25))


class World:
    """An inventory kept up to date, beside the plain facts it should amount to."""

    def __init__(self, problem: JsonObject) -> None:
        self.problem = problem
        self.node = node_of(problem)
        self.slices: dict[str, ResourceSlice] = {}
        self.rules: dict[str, DeviceTaintRule] = {}
        self.holders: dict[str, tuple[Holding, ...]] = {}
        self.inventory = self._empty()
        self.ledger = Ledger()

    def _empty(self) -> Inventory:
        inventory = Inventory(Features.from_gates(self.problem["features"]))
        for item in self.problem["classes"]:
            inventory.apply_class(convert(DeviceClass, item))
        return inventory

    def happen(self, event: Event) -> None:
        match event:
            case ("apply", piece):
                slice_ = convert(ResourceSlice, piece)
                self.slices[slice_.metadata.name] = slice_
                self.inventory.apply_slice(slice_)
            case ("remove", name):
                self.slices.pop(name, None)
                self.inventory.remove_slice(name)
            case ("rule", content):
                rule = convert(DeviceTaintRule, content)
                self.rules[rule.metadata.name] = rule
                self.inventory.apply_taint_rule(rule)
            case ("unrule", name):
                self.rules.pop(name, None)
                self.inventory.remove_taint_rule(name)
            case ("hold", (holder, holdings)):
                self.holders[holder] = holdings
                self.ledger.observe(holder, holdings)
            case ("forget", holder):
                self.holders.pop(holder, None)
                self.ledger.forget(holder)
            case _:
                self.look()

    def look(self) -> Any:
        """What the incremental inventory shows; also fills its caches."""
        return [self._seen(self.inventory, self.ledger, node) for node in (self.node, OTHER_NODE)]

    def rebuilt(self) -> Any:
        """What an inventory built from the facts alone shows."""
        inventory, ledger = self._empty(), Ledger()
        for slice_ in self.slices.values():
            inventory.apply_slice(slice_)
        for rule in self.rules.values():
            inventory.apply_taint_rule(rule)
        for holder, holdings in self.holders.items():
            ledger.observe(holder, holdings)
        return [self._seen(inventory, ledger, node) for node in (self.node, OTHER_NODE)]

    def _seen(self, inventory: Inventory, ledger: Ledger, node: Node) -> Any:
        return observed(inventory.view(node, ledger), claims_of(self.problem))


@given(histories())
def test_an_inventory_kept_up_to_date_equals_one_built_anew(
    history: tuple[JsonObject, list[Event]],
) -> None:
    """Events leave nothing behind but what the last of them say."""
    problem, events = history
    world = World(problem)
    for event in events:
        world.happen(event)
    assert world.look() == world.rebuilt()


@given(problem=mixed_problems())
def test_applying_a_slice_again_changes_nothing(problem: JsonObject) -> None:
    """Watches repeat themselves; an unchanged object is no event."""
    world = World(problem)
    for piece in problem["slices"]:
        world.happen(("apply", piece))
    before = world.look()
    for piece in reversed(problem["slices"]):
        world.happen(("apply", piece))
    assert world.look() == before


@given(problem=mixed_problems(), extra=mixed_problems())
def test_applying_then_removing_slices_is_the_identity(
    problem: JsonObject, extra: JsonObject
) -> None:
    """Slices that come and go leave no trace."""
    world = World(problem)
    for piece in problem["slices"]:
        world.happen(("apply", piece))
    before = world.look()
    visitors = [
        {**piece, "metadata": {"name": f"visitor-{n}"}} for n, piece in enumerate(extra["slices"])
    ]
    for piece in visitors:
        world.happen(("apply", piece))
    world.look()
    for piece in visitors:
        world.happen(("remove", piece["metadata"]["name"]))
    assert world.look() == before


@given(problem=mixed_problems())
def test_labels_of_a_node_are_read_anew(problem: JsonObject) -> None:
    """A node whose labels change sees other slices at once."""
    world = World(problem)
    for piece in problem["slices"]:
        world.happen(("apply", piece))
    world.look()
    metadata = msgspec.structs.replace(world.node.metadata, labels={"zone": "b", "tier": "1"})
    world.node = msgspec.structs.replace(world.node, metadata=metadata)
    assert world.look() == world.rebuilt()

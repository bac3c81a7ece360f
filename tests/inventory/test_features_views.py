"""Views: snapshots whose parts are shared between nodes and kept until something they show has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from drayman.allocator import Plan, search
from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.inventory import DeviceId, Holding, Inventory, Ledger
from oracle.build import GPU, claim, device, exactly, label_selector, piece, problem
from oracle.subject import claims_of, inventory_of

FLOATING = label_selector("zone", "a")


def node(name: str, **labels: str) -> Node:
    return convert(Node, {"metadata": {"name": name, "labels": labels}})


def inventory(*pieces: dict[str, Any]) -> Inventory:
    return inventory_of(problem(pieces, claim(exactly())))


def floating(pool: str) -> dict[str, Any]:
    return piece([device("d0"), device("d1")], pool=pool, nodeName=None, nodeSelector=FLOATING)


def local(name: str) -> dict[str, Any]:
    return piece([device("d0"), device("d1")], pool=name, nodeName=name)


def one_claim(name: str = "claim-0") -> ResourceClaim:
    (asked,) = claims_of(problem([], claim(exactly())))
    return msgspec.structs.replace(
        asked, metadata=msgspec.structs.replace(asked.metadata, name=name)
    )


def allocated(asked: ResourceClaim, made: Plan) -> ResourceClaim:
    """The claim as an API server shows it after the plan was written."""
    status = msgspec.structs.replace(asked.status, allocation=made.claims[0].allocation)
    return msgspec.structs.replace(asked, status=status)


def plan(stock: Inventory, ledger: Ledger, where: Node, asked: ResourceClaim) -> Plan:
    outcome = search(stock.view(where, ledger), [asked])
    assert isinstance(outcome, Plan)
    return outcome


def test_nodes_that_see_the_same_slices_share_their_hardware() -> None:
    """Nodes without devices of their own that match the same selectors have one hardware; others have their own."""
    stock, ledger = inventory(floating("f0"), floating("f1"), local("n3")), Ledger()
    one, two = (stock.view(node(name, zone="a"), ledger) for name in ("n1", "n2"))
    three = stock.view(node("n3", zone="a"), ledger)
    four = stock.view(node("n4", zone="b"), ledger)
    assert one.hardware is two.hardware
    assert one.state == two.state
    assert len(three.hardware.records) == 6
    assert not four.hardware.records


def test_the_allocation_on_shared_hardware_names_the_selector_of_the_devices() -> None:
    """What is found on shared hardware can be used on every node that the device is for."""
    stock, ledger = inventory(floating("f0")), Ledger()
    for name in ("n1", "n2"):
        made = plan(stock, ledger, node(name, zone="a"), one_claim())
        selector = made.claims[0].allocation.node_selector
        assert selector is not None
        assert selector.node_selector_terms[0].match_expressions[0].key == "zone"


def test_a_slice_of_one_node_leaves_the_others_alone() -> None:
    """An event about the pool of a node rebuilds what that node sees and nothing else."""
    stock, ledger = inventory(local("n1"), local("n2"), floating("f0")), Ledger()
    nodes = [node("n1"), node("n2"), node("n3", zone="a")]
    before = [stock.view(each, ledger).hardware for each in nodes]
    changed = piece([device("d0")], pool="n1", nodeName="n1")
    stock.apply_slice(convert(ResourceSlice, changed))
    after = [stock.view(each, ledger).hardware for each in nodes]
    assert after[0] is not before[0]
    assert after[1:] == before[1:]


def test_objects_that_say_what_is_known_are_no_events() -> None:
    """Slices, classes and rules that come again, in another version or with another status, leave everything in place."""
    stock, ledger, where = inventory(local("n1")), Ledger(), node("n1")
    stock.apply_taint_rule(rule({}))
    before, revision = stock.view(where, ledger), stock.revision
    again = convert(ResourceSlice, local("n1"))
    metadata = msgspec.structs.replace(again.metadata, resource_version="9")
    stock.apply_slice(msgspec.structs.replace(again, metadata=metadata))
    stock.apply_taint_rule(rule({}))
    for known in list(stock.classes.values()):
        stock.apply_class(known)
    assert stock.view(where, ledger).state == before.state
    assert stock.revision == revision


def test_every_event_that_may_change_an_answer_is_counted() -> None:
    """The revision grows with each slice, class and rule that comes, changes or goes."""
    stock = inventory(local("n1"))
    revisions = [stock.revision]
    events: list[Callable[[], None]] = [
        lambda: stock.remove_slice("gpu.example.com-n1-1"),
        lambda: stock.apply_taint_rule(rule(None)),
        lambda: stock.apply_taint_rule(rule({})),
        lambda: stock.remove_taint_rule("rule"),
        lambda: stock.remove_class("gpu"),
    ]
    for event in events:
        event()
        revisions.append(stock.revision)
    assert revisions == sorted(set(revisions))


def test_a_view_shows_the_moment_it_was_made() -> None:
    """Commits, slices and rules that come later do not change it."""
    stock, ledger, where = inventory(local("n1")), Ledger(), node("n1")
    before = stock.view(where, ledger)
    ledger.commit(plan(stock, ledger, where, one_claim()))
    stock.apply_taint_rule(rule({}))
    stock.remove_slice("gpu.example.com-n1-1")
    assert before.usage.in_use == 0
    assert before.tolerated(()) == 0b11
    assert len(before.hardware.records) == 2
    assert not stock.view(where, ledger).hardware.records


def test_an_echo_of_what_is_known_is_no_change() -> None:
    """Observing a claim with the allocation that was committed for it leaves clock and views as they are."""
    stock, ledger, where = inventory(local("n1")), Ledger(), node("n1")
    asked = one_claim()
    made = plan(stock, ledger, where, asked)
    ledger.commit(made)
    clock, state = ledger.clock, stock.view(where, ledger).state
    ledger.observe_claim(allocated(asked, made))
    assert ledger.clock == clock
    assert stock.view(where, ledger).state == state


def test_an_observed_claim_that_holds_something_else_is_a_change() -> None:
    """What an API server says replaces what was committed."""
    stock, ledger, where = inventory(local("n1")), Ledger(), node("n1")
    first = plan(stock, ledger, where, one_claim())
    ledger.observe("default/claim-0", [Holding(DeviceId(GPU, "n1", "d0"))])
    second = plan(stock, ledger, where, one_claim("claim-1"))
    ledger.observe_claim(allocated(one_claim(), second))
    assert first.claims[0].allocation.devices.results[0].device == "d0"
    assert stock.view(where, ledger).usage.in_use == 0b10


def rule(selector: dict[str, str] | None) -> DeviceTaintRule:
    spec: dict[str, Any] = {"taint": {"key": "rule", "effect": "NoSchedule"}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return convert(DeviceTaintRule, {"metadata": {"name": "rule"}, "spec": spec})


def test_a_rule_without_a_selector_taints_nothing() -> None:
    """An absent selector selects no device, an empty one selects all."""
    stock, ledger, where = inventory(local("n1")), Ledger(), node("n1")
    for selector, usable in ((None, 0b11), ({}, 0), ({"device": "d1"}, 0b01)):
        stock.apply_taint_rule(rule(selector))
        assert stock.view(where, ledger).tolerated(()) == usable
    stock.remove_taint_rule("rule")
    assert stock.view(where, ledger).tolerated(()) == 0b11


def test_a_node_that_is_gone_is_forgotten() -> None:
    """After its removal a node is looked at as if for the first time."""
    stock, ledger, where = inventory(local("n1")), Ledger(), node("n1")
    before = stock.view(where, ledger)
    stock.remove_node("n1")
    assert stock.view(where, ledger).ids_of(0b11) == before.ids_of(0b11)

"""Nodes with devices of their own that see many more together: a question is put to the part that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from drayman.allocator import Plan, Question, Refusal, search, signature
from drayman.allocator.problem.focus import focused
from drayman.allocator.problem.outcome import RejectionReason
from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceClass
from drayman.inventory import DeviceId, Holding, Inventory, Ledger, NodeView, hardware
from oracle.build import GPU, NIC, claim, device, device_class, everything, exactly, piece, problem
from oracle.nodes import JsonObject
from oracle.selectors import MODEL_A, NOTHING
from oracle.subject import claims_of, inventory_of

NODES = ("n1", "n2")
ROOT = "resource.kubernetes.io/pcieRoot"


@pytest.fixture(autouse=True)
def few_devices_are_many() -> Iterator[None]:
    """Hardware with more than three devices is too large to be described, so that only what is shared can be equal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "_MOST_DESCRIBED", 3)
        yield


class Cluster:
    """Two nodes with GPUs of their own, and NICs that both can use."""

    def __init__(self, *requests: JsonObject, placed: bool = False, **fields: Any) -> None:
        attrs = {ROOT: "r0"} if placed else {}
        gpus = [
            piece([device(f"g{i}", attrs={ROOT: "r0"}) for i in range(2)], pool=n, nodeName=n)
            for n in NODES
        ]
        nics = [
            piece([device(f"n{i}", attrs=attrs)], driver=NIC, pool=f"f{i}", allNodes=True, **fields)
            for i in range(4)
        ]
        asked = problem([*gpus, *nics], claim(*requests))
        self.inventory: Inventory = inventory_of(asked)
        self.ledger = Ledger()
        self.question = Question(claims_of(asked))

    def view(self, name: str) -> NodeView:
        node = convert(Node, {"metadata": {"name": name}})
        return self.inventory.view(node, self.ledger)

    def plan(self, name: str) -> Plan:
        found = search(self.view(name), self.question)
        assert isinstance(found, Plan)
        return found

    def signatures(self) -> list[Any]:
        return [signature(self.view(name), self.question) for name in NODES]

    def take(self, driver: str, node: str = "n1") -> None:
        """Somebody gets the first GPU of a node, or the first NIC."""
        device = DeviceId(GPU, node, "g0") if driver == GPU else DeviceId(NIC, "f0", "n0")
        self.ledger.observe(f"holder of {device}", [Holding(device)])

    def drivers_shown(self) -> set[str]:
        shown = focused(self.view("n1"), self.question)
        return {record.id.driver for record in shown.hardware.records}


CASES = {
    "own devices": (Cluster(exactly(cls="gpu")), {GPU}),
    "shared devices": (Cluster(exactly(cls="nic")), {NIC}),
    "all shared devices": (Cluster(everything(cls="nic")), {NIC}),
    "both": (Cluster(exactly("g", cls="gpu"), exactly("n", cls="nic")), {GPU, NIC}),
    "any": (Cluster(exactly(cls="any")), {GPU, NIC}),
    "places in both parts": (Cluster(exactly(cls="nic"), placed=True), {GPU, NIC}),
    "a selector that fails": (Cluster(exactly(cls="any", select=[MODEL_A])), {GPU, NIC}),
    "a selector that wants nothing": (Cluster(exactly(cls="any", select=[NOTHING])), {GPU}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_question_is_put_to_the_part_it_is_about(name: str) -> None:
    """A part is left out if its devices are unwanted for sure and no place is in both parts."""
    cluster, shown = CASES[name]
    assert cluster.drivers_shown() == shown


def test_a_class_that_changes_changes_what_a_question_is_about() -> None:
    """What was left out is looked at again as soon as the class wants it."""
    cluster = Cluster(exactly(cls="nic"))
    assert cluster.drivers_shown() == {NIC}
    anything = device_class("nic", "true")
    cluster.inventory.apply_class(convert(DeviceClass, anything))
    assert cluster.drivers_shown() == {GPU, NIC}


def test_nodes_agree_about_shared_devices() -> None:
    """Nodes whose own devices are alike have one signature for a question about shared ones, whatever is taken of those."""
    cluster = Cluster(exactly(cls="nic"))
    before = cluster.signatures()
    cluster.take(NIC)
    after = cluster.signatures()
    assert before[0] == before[1]
    assert after[0] == after[1] != before[0]


def test_shared_devices_do_not_matter_to_a_question_about_own_ones() -> None:
    """Taking a shared device changes no signature; taking one of its own changes that of the node alone."""
    cluster = Cluster(exactly(cls="gpu"))
    before = cluster.signatures()
    cluster.take(NIC)
    assert cluster.signatures() == before
    cluster.take(GPU, "n2")
    one, two = cluster.signatures()
    assert one == before[0] != two


def test_a_place_used_in_part_counts_wherever_it_is() -> None:
    """The quality of a plan for shared devices tells nodes with broken roots from others, as if all had been searched."""
    cluster = Cluster(exactly(cls="nic"))
    cluster.take(GPU, "n2")
    one, two = (cluster.plan(name).quality.cost.broken_roots for name in NODES)
    assert (one, two) == (0, 1)
    assert len(set(cluster.signatures())) == 2


def test_a_refusal_counts_the_devices_that_were_left_out() -> None:
    """The node has two GPUs and four NICs; a search for five NICs looks at NICs only and still tells of all."""
    cluster = Cluster(exactly(count=5, cls="nic"))
    refused = search(cluster.view("n1"), cluster.question)
    assert isinstance(refused, Refusal)
    counted = [(r.reason, r.count, r.remaining) for r in refused.rejections]
    assert counted == [(RejectionReason.CLASS_SELECTOR, 2, 4), (RejectionReason.COUNT, 4, 4)]


def test_a_plan_for_shared_devices_holds_on_every_node() -> None:
    """What was found on one node is what a search finds on another, with that node's name where devices bind to it."""
    cluster = Cluster(exactly(cls="nic"))
    made = cluster.plan("n1").on(cluster.view("n2"), cluster.question)
    assert made == cluster.plan("n2")


def test_a_plan_holds_elsewhere_only_while_all_is_the_same() -> None:
    """It does not after something was taken, for another question, for own devices, or under another class."""
    cluster = Cluster(exactly(cls="nic"))
    made = cluster.plan("n1")
    assert made.on(cluster.view("n2"), Cluster(exactly(cls="nic")).question) is None
    cluster.take(NIC)
    assert made.on(cluster.view("n2"), cluster.question) is None
    made = cluster.plan("n1")
    cluster.inventory.apply_class(convert(DeviceClass, device_class("nic", f'device.driver == "{NIC}"', "true")))  # fmt: skip
    assert made.on(cluster.view("n2"), cluster.question) is None
    own = Cluster(exactly(cls="gpu"))
    assert own.plan("n1").on(own.view("n2"), own.question) is None

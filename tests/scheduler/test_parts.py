"""Decisions that take long are made in parts, and what cannot be divided is left to another thread."""

from __future__ import annotations

import threading
from math import inf
from pathlib import Path

import pytest

from drayman.allocator import Finality
from drayman.api.resource import Device
from drayman.cel.device import Selector
from drayman.cel.environment import Evaluation
from drayman.inventory import allowance
from drayman.placement import searching
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import Fitting, NoNode, Unfinished
from drayman.placement.refusing import DevicesVerdict
from drayman.scheduler.cycle import Decisions
from oracle.build import piece
from scheduler.behaviour.stage import devices_of, staged, wants
from scheduler.test_cycle import Desk, names

NUMBERS = "[1,2,3,4,5,6,7,8,9,10]"
COSTLY = (
    f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, {NUMBERS}.all(d, a + b + c + d > 0))))"
    " && device.driver != ''"
)
LONG = f"device.driver in [{', '.join(['gpu.example.com'.__repr__()] * 80)}]"


def desk(*expressions: str) -> Desk:
    """Two nodes with a device each, and a pod that wants one of them, with selectors."""
    slices = (piece([f"d-{n}"], pool=n, name=n, nodeName=n) for n in ("n0", "n1"))
    at = Desk(*slices)
    at.claim("c", 1, *expressions)
    at.pod("p", "c")
    return at


@pytest.mark.parametrize("expression", [COSTLY, LONG])
def test_what_cannot_be_divided_is_left_to_others(expression: str) -> None:
    """The pod waits, says why, and is decided about when the selector has been compiled and evaluated."""
    at = desk(expression)
    for _ in range(10):
        decided = at.decide()
        if decided.placed:
            break
        (refused,) = decided.refused
        assert isinstance(refused.why, Unfinished)
        assert refused.why.rest is not None
        assert refused.message.startswith("SearchLimit (held): Its claims are costly")
        assert not at.decide().refused, "it is not tried before that is done"
        refused.why.rest()
        at.queue.wake_pods(("p",))
    assert names(decided) == (["p"], [])


def test_others_are_decided_about_between_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision that is interrupted goes on later, and ends with what it would have been at once."""
    at = desk("device.driver == 'gpu.example.com'")
    monkeypatch.setattr(allowance, "PART", 1)
    first = at.decide()
    assert names(first) == ([], [])
    at.pod("other")
    assert names(at.decide()) == (["other"], [])
    placed: list[str] = []
    for _ in range(50):
        at.now += 1.0
        placed += names(at.decide())[0]
    assert placed == ["p"]


NODES = 2
"""Of which one has no devices here."""


def wide_desk(devices: int) -> Desk:
    """A node with so many devices, and a pod that wants 96 of them."""
    at = Desk(piece([f"d-{n}" for n in range(devices)], pool="n0", name="n0", nodeName="n0"))
    for name in ("a", "b", "c"):
        at.claim(name, 32)
    at.pod("p", "a", "b", "c")
    return at


def decide_with_others(at: Desk) -> tuple[Decisions, int]:
    """What is decided in the end, and how often something was left to others before."""
    for left in range(10):
        decided = at.decide()
        if decided.placed or not isinstance(decided.refused[0].why, Unfinished):
            return decided, left
        assert decided.refused[0].why.rest is not None
        assert not at.decide().refused, "it is not tried before that is done"
        decided.refused[0].why.rest()
        at.queue.wake_pods(("p",))
    raise AssertionError("there is no end to it")


def test_a_search_for_very_many_devices_is_left_to_others() -> None:
    """The pod gets what they have found, without another search."""
    at = wide_desk(100)
    decided, left = decide_with_others(at)
    assert left == NODES
    (placement,) = decided.placements
    given = [r for c in placement.claims for r in c.status.results]
    assert len({result.device for result in given}) == 96


def test_so_is_saying_why_there_are_none() -> None:
    """The reason is what it would be at once."""
    decided, left = decide_with_others(wide_desk(95))
    assert left == NODES
    (refused,) = decided.refused
    assert isinstance(refused.why, NoNode)
    verdict = refused.why.not_found.verdicts["n0"]
    assert isinstance(verdict, DevicesVerdict)
    assert verdict.kind is Finality.NEVER


def test_what_others_found_counts_only_while_the_node_is_the_same() -> None:
    """If a device was taken meanwhile, the search is repeated."""
    at = wide_desk(96)
    (refused,) = at.decide().refused
    assert isinstance(refused.why, Unfinished)
    assert refused.why.rest is not None
    at.claim("other", 1)
    at.pod("quick", "other")
    assert names(at.decide())[0] == ["quick"]
    refused.why.rest()
    at.queue.wake_pods(("p",))
    decided, left = decide_with_others(at)
    assert left == NODES
    assert names(decided)[0] == []


def test_a_long_search_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few devices are wanted."""
    monkeypatch.setattr(searching, "STEPS_AT_ONCE", 1)
    decided, left = decide_with_others(desk())
    assert (names(decided)[0], left) == (["p"], 1)


def test_without_a_limit_all_is_done_at_once() -> None:
    """As for a plan or an explanation."""
    at = wide_desk(100)
    assert at.state.allowance.left == inf
    found = Round(Decider(at.state), 0.0).consider(at.queue.take(1, 0.0)[0].pod)
    assert isinstance(found, Fitting)


async def test_costly_selectors_are_evaluated_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the event loop goes on meanwhile."""
    evaluate = Selector.evaluate
    threads: list[threading.Thread] = []

    def noted(self: Selector, driver: str, device: Device) -> Evaluation:
        if self.expression == COSTLY:
            threads.append(threading.current_thread())
        return evaluate(self, driver, device)

    monkeypatch.setattr(Selector, "evaluate", noted)
    async with staged(tmp_path) as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.make_claim("c", wants(select=COSTLY))
        await stage.start_pod("p", "c")
        await stage.until_claims(lambda claims: bool(devices_of(claims[0])))
    assert threads
    assert threading.main_thread() not in threads

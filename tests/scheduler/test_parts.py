"""Decisions that take long are made in parts, and what cannot be divided is left to another thread."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from drayman.api.resource import Device
from drayman.cel.device import Selector
from drayman.cel.environment import Evaluation
from drayman.inventory import allowance
from drayman.placement.decision.outcomes import Unfinished
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
        assert refused.message.startswith("SearchLimit (held): The selectors of its claims")
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

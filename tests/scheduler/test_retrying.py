"""What is next for a pod that was not placed: what it waits for, and what brings it back into line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.inventory.features import Features
from drayman.placement.claims import ClaimLack, ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import (
    BeingWritten,
    Fitting,
    Lacking,
    NoNode,
    PromisedAway,
)
from drayman.placement.nominations import Nominations
from drayman.placement.placing import NotFound
from drayman.placement.preemption import Victims
from drayman.placement.state import ClusterState
from drayman.placement.wake import Wake
from drayman.scheduler.queue import FIRST_BACKOFF_S, Queue
from drayman.scheduler.retrying import IN_A_ROW, Retrying

CLAIM = ResourceClaim(metadata=ObjectMeta(name="c", namespace="default", uid="c"))
ALLOCATABLE = {"cpu": "8", "memory": "8Gi", "pods": "10"}


class Desk:
    """Two pods that are alike and have been tried; the first is more important."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue = Queue()
        self.state = ClusterState(Features(), lambda _: None)
        node = {"metadata": {"name": "n"}, "status": {"allocatable": ALLOCATABLE}}
        self.state.set_node(convert(Node, node))
        self.nominations = Nominations(self.state)
        self.retrying = Retrying(self.queue, self.nominations)
        self.fits: dict[str, Fitting] = {}
        for name in ("first", "second"):
            metadata = {"name": name, "namespace": "default", "uid": name}
            pod = convert(Pod, {"metadata": metadata, "spec": {}})
            self.queue.add(pod)
            outcome = Decider(self.state).round(0.0).consider(pod)
            assert isinstance(outcome, Fitting)
            self.fits[name] = outcome
        self.entries = {entry.key: entry for entry in self.queue.take(2, self.now)}

    def promise(self, name: str) -> None:
        """Room is kept for a pod."""
        fitting = self.fits[name]
        victims = Victims("n", (), 0, fitting.found)
        self.nominations.promise(fitting.demand.pod, fitting.demand.needs, victims)

    def no_node(self, name: str, *, retry: bool = False) -> None:
        why = NoNode(self.fits[name].demand, NotFound({}, retry))
        self.retrying.refused(self.entries[name], why, self.now)

    def in_line(self) -> list[str]:
        return [entry.key for entry in self.queue.take(2, self.now)]


def lacking(at: Desk) -> None:
    error = ClaimsNotReadyError("not there", ClaimLack.CLAIM, "c")
    at.retrying.refused(at.entries["first"], Lacking(error), at.now)


def being_written(at: Desk) -> None:
    at.retrying.refused(at.entries["first"], BeingWritten(CLAIM), at.now)


def promised_away(at: Desk) -> None:
    at.promise("second")
    nomination = at.nominations.get("second")
    assert nomination is not None
    at.retrying.refused(at.entries["first"], PromisedAway(CLAIM, nomination), at.now)


def no_node(at: Desk) -> None:
    at.no_node("first")
    at.no_node("second")


def gave_up(at: Desk) -> None:
    at.no_node("first", retry=True)


def asked_others_to_go(at: Desk) -> None:
    at.promise("first")
    no_node(at)


def overdue_soon(at: Desk) -> None:
    at.retrying.awaits_others(at.entries["first"], until=5.0)


def failed(at: Desk) -> None:
    at.retrying.failed(at.entries["first"], at.now)


def wakes(reason: Wake) -> Callable[[Desk], None]:
    return lambda at: at.queue.wake(reason)


def passes(seconds: float) -> Callable[[Desk], None]:
    def pass_(at: Desk) -> None:
        at.now += seconds

    return pass_


def is_written(at: Desk) -> None:
    at.retrying.settled([CLAIM])


def concerns_it(at: Desk) -> None:
    at.queue.wake_pods(["first"])


class Case(NamedTuple):
    """Why a pod was not placed, what happens then, and who is in line after that."""

    why: Callable[[Desk], None]
    happens: Callable[[Desk], None]
    in_line: list[str]


CASES = {
    "who lacks a claim is not helped by nodes": Case(lacking, wakes(Wake.ANYTHING), []),
    "who lacks a claim hears of it": Case(lacking, concerns_it, ["first"]),
    "who waits for a write is not helped by nodes": Case(being_written, wakes(Wake.ANYTHING), []),
    "who waits for a write hears of it": Case(being_written, is_written, ["first"]),
    "whose claim is promised away sees what happens": Case(
        promised_away, wakes(Wake.DEVICES), ["first"]
    ),
    "one tries for all copies": Case(no_node, wakes(Wake.NODES), ["first"]),
    "who wants no devices is not helped by any": Case(no_node, wakes(Wake.DEVICES), []),
    "a refusal does not end by itself": Case(no_node, passes(100 * FIRST_BACKOFF_S), []),
    "a search that gave up is not helped by nodes": Case(gave_up, wakes(Wake.ANYTHING), []),
    "a search that gave up is tried again": Case(gave_up, passes(FIRST_BACKOFF_S), ["first"]),
    "who asked others to go tries for itself": Case(
        asked_others_to_go, wakes(Wake.NODES), ["first", "second"]
    ),
    "who asked others to go sees everything": Case(
        asked_others_to_go, wakes(Wake.DEVICES), ["first"]
    ),
    "who asked others to go does not wait for ever": Case(overdue_soon, passes(5.0), ["first"]),
    "an error is tried again": Case(failed, passes(FIRST_BACKOFF_S), ["first"]),
    "an error is not tried again at once": Case(failed, passes(0.0), []),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_next_after_a_refusal(case: Case) -> None:
    """Each reason not to place a pod has its own way back into line, and no other."""
    at = Desk()
    case.why(at)
    assert at.in_line() == []
    case.happens(at)
    assert at.in_line() == case.in_line


def test_a_pod_that_was_overtaken_is_tried_again_at_once() -> None:
    """But not for ever without a pause, should it be overtaken every time."""
    desk = Desk()
    entry = desk.entries["first"]
    desk.queue.placed(entry)
    attempts = 1
    while True:
        desk.retrying.overtaken(entry, desk.now)
        if desk.queue.take(1, desk.now) != [entry]:
            break
        attempts += 1
        desk.queue.placed(entry)
    assert attempts == IN_A_ROW
    assert desk.queue.take(1, desk.now + FIRST_BACKOFF_S) == [entry]

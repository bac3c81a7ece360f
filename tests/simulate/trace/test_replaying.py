"""Traces are replayed by the scheduler's own decisions, and measured as the published study does."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.small_trace import NODES, TASKS
from drayman.placement.prices import NO_PRICES
from drayman.simulate.trace.policies import POLICIES
from drayman.simulate.trace.replaying import as_recorded, at_random
from drayman.simulate.trace.report import Replay, summarised
from drayman.simulate.trace.rooms import (
    COUNT,
    CPU,
    FRACTION,
    MEMORY,
    MODEL,
    USABLE,
    Audience,
    NodeRoom,
)
from drayman.simulate.trace.tables import (
    TaskKind,
    Times,
    Trace,
    TraceNode,
    TraceTask,
    read_nodes,
    read_tasks,
)
from rounds import rounds

SMALL = Trace("small", read_nodes("n", NODES), read_tasks("t", TASKS))


def random_replay(trace: Trace, policy: str, seed: int = 0, load: float = 1.3) -> Replay:
    draw = Random(seed).randrange
    return at_random(trace, policy, seed, draw, load, NO_PRICES, lambda _: None)


def recorded_replay(trace: Trace, policy: str = "best") -> Replay:
    return as_recorded(trace, policy, Random(0).randrange, NO_PRICES, lambda _: None)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_is_the_same_replay(policy: str) -> None:
    """Another one is another."""
    assert random_replay(SMALL, policy) == random_replay(SMALL, policy)
    assert random_replay(SMALL, policy) != random_replay(SMALL, policy, seed=1)


@settings(max_examples=rounds(12))
@given(st.sampled_from(sorted(POLICIES)), st.integers(0, 1000), st.floats(0.1, 1.5))
def test_every_gpu_is_allocated_or_lost_to_something(policy: str, seed: int, load: float) -> None:
    """Shares add up to all GPUs; the curve ends where the replay does, and load only grows."""
    found = random_replay(SMALL, policy, seed, load)
    assert found.allocated + sum(found.lost.values()) == pytest.approx(1)
    assert found.curve[-1].allocated == found.allocated
    assert [point.at for point in found.curve] == sorted(point.at for point in found.curve)
    assert found.curve[-1].at >= load
    assert found.placed <= found.tasks


def node(name: str, gpus: int, cpu: int = 64_000) -> TraceNode:
    return TraceNode(name, cpu, 65_536, gpus, "A")


def task(name: str, gpus: int, milli: int = 1_000, cpu: int = 1_000) -> TraceTask:
    return TraceTask(name, TaskKind(cpu, 1_024, gpus, milli if gpus else 0))


PACKING = {
    "large tasks find whole nodes": (
        [node("a", 4), node("b", 4)],
        [task("one", 1), task("four", 4)],
    ),
    "CPU is left for GPUs": (
        [node("a", 4, 8_000), node("b", 0, 8_000), node("c", 4, 8_000)],
        [task("gpu", 1, cpu=2_000), task("cpu", 0, cpu=2_000)],
    ),
    "parts are put together": (
        [node("a", 2), node("b", 2), node("c", 2)],
        [task("third", 1, 300), task("most", 1, 700), task("two", 2)],
    ),
}


@pytest.mark.parametrize(("nodes", "tasks"), PACKING.values(), ids=PACKING)
def test_best_allocates_more_than_random(nodes: list[TraceNode], tasks: list[TraceTask]) -> None:
    """On average over some seeds, where it matters which node is chosen."""
    trace = Trace("t", tuple(nodes), tuple(tasks))
    replays = [
        random_replay(trace, policy, seed) for policy in ("best", "random") for seed in range(12)
    ]
    best, chance = summarised(replays)
    assert (best.policy, chance.policy) == ("best", "random")
    assert best.allocated > chance.allocated


def timed(name: str, created: int, runs_for: int, gpus: int = 1) -> TraceTask:
    return TraceTask(name, TaskKind(1_000, 1_024, gpus, 1_000), Times(created, runs_for))


def test_tasks_wait_until_they_fit() -> None:
    """Two GPUs: the third task waits for the first end, and the large one for both; a small one overtakes it."""
    tasks = (timed("a", 0, 10), timed("b", 0, 20), timed("two", 1, 5, 2), timed("c", 2, 4))
    found = recorded_replay(Trace("t", (node("n", 2),), tasks))
    assert found.waiting is not None
    # c starts at 10 and ends at 14, b ends at 20, and then the large one starts.
    assert (found.waiting.most, found.waiting.mean) == (19, (0 + 0 + 8 + 19) / 4)
    assert found.waiting.never_started == 0
    assert found.allocated == pytest.approx((10 + 20 + 4 + 2 * 5) / (2 * 25))


def test_causes_are_those_when_the_last_task_has_come() -> None:
    """In the end everything is free, which says nothing. What is lost sums up to the fragmentation of that moment."""
    tasks = (timed("a", 0, 10), timed("b", 5, 20, 2), timed("c", 6, 4, 2))
    found = recorded_replay(Trace("t", (node("n", 2),), tasks))
    assert sum(found.lost.values()) == pytest.approx(0.5)
    last = found.curve[-1]
    assert last.at == 6
    without = sum(share for cause, share in found.lost.items() if cause != "usable")
    assert (last.allocated, last.fragmented) == (0.5, pytest.approx(without))


def test_a_task_that_never_fits_waits_for_ever() -> None:
    """It holds up nobody."""
    tasks = (timed("eight", 0, 10, 8), timed("one", 1, 10))
    found = recorded_replay(Trace("t", (node("n", 2),), tasks))
    assert found.waiting is not None
    assert (found.placed, found.waiting.never_started, found.waiting.most) == (1, 1, 0)


def test_recorded_arrivals_need_times() -> None:
    """A trace without them is refused."""
    with pytest.raises(ValueError, match="task one has no creation_time"):
        recorded_replay(Trace("t", (node("n", 2),), (task("one", 1),)))


ROOMS = {
    "usable": (NodeRoom("A", 9_000, 9 << 30, (500, 1_000)), {USABLE: 1.5}),
    "too little of a GPU": (
        NodeRoom("A", 9_000, 9 << 30, (100, 1_000)),
        {FRACTION: 0.1, USABLE: 1.0},
    ),
    "another model": (NodeRoom("B", 9_000, 9 << 30, (1_000,)), {MODEL: 1.0}),
    "no CPU": (NodeRoom("A", 999, 9 << 30, (1_000,)), {CPU: 1.0}),
    "no memory": (NodeRoom("A", 1_000, 1 << 20, (1_000,)), {MEMORY: 1.0}),
}


@pytest.mark.parametrize(("room", "shares"), ROOMS.values(), ids=ROOMS)
def test_causes(room: NodeRoom, shares: dict[str, float]) -> None:
    """What keeps a task that wants half a GPU of model A from the free GPUs of a node."""
    wants = TraceTask("t", TaskKind(1_000, 1_024, 1, 500, ("A",)))
    found = Audience([wants]).shares([room])
    assert {cause: amount for cause, amount in found.items() if amount} == shares


def test_too_few_gpus() -> None:
    """A task with two GPUs cannot use the only one that is free; tasks count as often as they come."""
    tasks = [task("two", 2), task("one", 1), task("one", 1), task("none", 0)]
    found = Audience(tasks).shares([NodeRoom("A", 9_000, 9 << 30, (0, 1_000))])
    assert found[COUNT] == pytest.approx(1 / 3)
    assert found[USABLE] == pytest.approx(2 / 3)


def test_alignment_is_measured_where_places_are_known() -> None:
    """Two GPUs on a node with four on each of two NUMA nodes are on one of them."""
    nodes = (TraceNode("n", 64_000, 65_536, 8, "A", numa=2),)
    found = random_replay(Trace("t", nodes, (task("two", 2),)), "best", load=1.0)
    assert (found.aligned, found.allocated) == (1.0, 1.0)
    unknown = random_replay(Trace("t", (node("n", 8),), (task("two", 2),)), "best")
    assert unknown.aligned is None

"""Nodes are chosen by what the pods that come later lose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.decision.deciding import Decider
from drayman.placement.mix import Mix
from drayman.placement.outlook import DeviceWish, PodKind
from drayman.placement.prices import NO_PRICES
from drayman.simulate.trace.ground import Ground, Running
from drayman.simulate.trace.objects import claim_of, pod_of
from drayman.simulate.trace.tables import TaskKind, Trace, TraceNode


def node(name: str, gpus: int, cpu: int = 64, model: str = "A") -> TraceNode:
    return TraceNode(name, cpu * 1_000, 1 << 20, gpus, model)


def kind(gpus: int, milli: int = 1_000, cpu: int = 1, models: tuple[str, ...] = ()) -> TaskKind:
    return TaskKind(cpu * 1_000, 1_024, gpus, milli if gpus else 0, models)


def ground(nodes: list[TraceNode]) -> Ground:
    return Ground(Trace("t", tuple(nodes), ()), "best", lambda _: 0, NO_PRICES)


def show(played: Ground, kinds: list[TaskKind]) -> None:
    """Let pods of these kinds come and go, and make what holds devices at one moment the mix."""
    running: list[Running] = []
    for number in range(40):
        placed = played.place(f"seen-{number}", kinds[number % len(kinds)], 0.0)
        if placed is not None:
            running.append(placed)
        if len(running) > len(kinds):
            played.end(running.pop(0))
    assert played.state.mix.kinds
    for each in running:
        played.end(each)


CASES: dict[str, tuple[list[TraceNode], list[TaskKind], list[TaskKind], list[str]]] = {
    "a small pod leaves whole nodes to large ones": (
        [node("a", 8), node("b", 8), node("c", 8)],
        [kind(8), kind(1)],
        [kind(1), kind(1), kind(8), kind(8)],
        ["a", "a", "b", "c"],
    ),
    "parts of a GPU that complete each other are put together": (
        [node("a", 1), node("b", 1), node("c", 1)],
        [kind(1, 300), kind(1, 700)],
        [kind(1, 700), kind(1, 300), kind(1)],
        ["a", "a", "b"],
    ),
    "a pod without devices leaves CPU to GPUs that are free": (
        [node("gpus", 4, 8), node("plain", 0, 8)],
        [kind(1, cpu=2)],
        [kind(0, cpu=2)] * 4,
        ["plain"] * 4,
    ),
    "a model that others ask for is left to them": (
        [node("rare", 4, model="R"), node("common", 4, model="C")],
        [kind(1, models=("R",)), kind(1)],
        [kind(1)] * 4 + [kind(1, models=("R",))] * 4,
        ["common"] * 4 + ["rare"] * 4,
    ),
    "a pod that takes much CPU goes where fewer GPUs need it": (
        [node("four", 4, 16), node("one", 1, 16)],
        [kind(1, cpu=4)],
        [kind(0, cpu=12)],
        ["one"],
    ),
}


@pytest.mark.parametrize(("nodes", "mix", "tasks", "expected"), CASES.values(), ids=CASES)
def test_choice(
    nodes: list[TraceNode], mix: list[TaskKind], tasks: list[TaskKind], expected: list[str]
) -> None:
    """Pods of the mix were there; then these come, one after the other, to empty nodes."""
    played = ground(nodes)
    show(played, mix)
    placed = [played.place(f"task-{number}", each, 0.0) for number, each in enumerate(tasks)]
    assert ["" if each is None else each.node for each in placed] == expected


def test_without_a_mix_nodes_in_use_come_first() -> None:
    """Whole nodes stay whole while nobody knows what will come."""
    played = ground([node("a", 2), node("b", 2), node("c", 2)])
    placed = [played.place(f"task-{number}", kind(1), 0.0) for number in range(4)]
    assert [each.node for each in placed if each is not None] == ["a", "a", "b", "b"]


def test_a_trial_does_not_change_the_mix() -> None:
    """What is supposed is not what the cluster serves."""
    played = ground([node("a", 64)])
    show(played, [kind(1)])
    before = played.state.mix
    with played.state.trial():
        for number in range(200):
            running = played.place(f"task-{number}", kind(2), 0.0)
            if running is not None:
                played.end(running)
        assert played.state.mix is before
    assert played.state.mix is before


def pods(large: int, small: int) -> Mix:
    kinds = [PodKind(1, 1, (DeviceWish("gpu", (), number, ()),)) for number in (8, 1)]
    return Mix(zip(kinds, (large, small), strict=True))


def test_mixes_are_alike_by_their_shares() -> None:
    """However many pods there are; nothing is like no pods but no pods."""
    assert pods(10, 90).is_like(pods(110, 890))
    assert not pods(10, 90).is_like(pods(20, 80))
    assert not pods(10, 90).is_like(Mix())
    assert Mix().is_like(Mix())


KINDS = st.builds(kind, st.just(1), st.sampled_from([250, 500, 700, 1_000]), st.integers(1, 4))


@given(st.lists(KINDS | st.builds(kind, st.integers(0, 4)), min_size=1, max_size=25))
def test_no_placement_makes_a_node_worth_more(kinds: list[TaskKind]) -> None:
    """What later pods lose is never negative, whatever is on the nodes."""
    played = ground([node("a", 4, 8), node("b", 2, 16), node("c", 0, 16)])
    show(played, [kind(1, 500, 2), kind(2), kind(1, 300)])
    for number, each in enumerate(kinds):
        name = f"task-{number}"
        if each.gpus:
            played.state.set_claim(claim_of(name, each))
        round_ = Decider(played.state).round(0.0)
        demand = round_.demand(pod_of(name, each))
        losses = [standing.loss for standing in round_.placer(demand).standings(demand)]
        assert all(loss.worth >= 0 and loss.free >= 0 for loss in losses)
        played.place(name, each, 0.0)

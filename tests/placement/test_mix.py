"""Nodes are chosen by what the pods that come later lose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.decision.deciding import Decider
from drayman.placement.fit import PodNeeds
from drayman.placement.mix import NO_MIX, Mix
from drayman.placement.outlook import DeviceWish, PodKind
from drayman.placement.prices import NO_PRICES
from drayman.placement.state import ClusterState
from drayman.simulate.trace.ground import Ground, Running
from drayman.simulate.trace.objects import claim_of, pod_of
from drayman.simulate.trace.tables import TaskKind, Trace, TraceNode
from oracle.build import device, device_class, piece


def node(name: str, gpus: int, cpu: int = 64, model: str = "A") -> TraceNode:
    return TraceNode(name, cpu * 1_000, 1 << 20, gpus, model)


def kind(gpus: int, milli: int = 1_000, cpu: int = 1, models: tuple[str, ...] = ()) -> TaskKind:
    return TaskKind(cpu * 1_000, 1_024, gpus, milli if gpus else 0, models)


def ground(nodes: list[TraceNode]) -> Ground:
    return Ground(Trace("t", tuple(nodes), ()), "best", lambda _: 0, NO_PRICES)


SEEN = 8


def with_mix(nodes: list[TraceNode], kinds: list[TaskKind]) -> Ground:
    """A cluster in which pods of these kinds run on other nodes, which take no more pods."""
    others = [replace(each, name=f"{each.name}-{n}") for n in range(SEEN) for each in nodes]
    played = ground([*nodes, *others])
    close(played, [each.name for each in nodes], closed=True)
    for number in range(SEEN):
        assert played.place(f"seen-{number}", kinds[number % len(kinds)], 0.0) is not None
    close(played, [each.name for each in nodes], closed=False)
    close(played, [each.name for each in others], closed=True)
    assert played.state.mix.kinds
    return played


def close(played: Ground, names: list[str], *, closed: bool) -> None:
    for name in names:
        node = played.state.nodes[name].node
        spec = replace(node.spec, unschedulable=closed)
        played.state.set_node(replace(node, spec=spec))


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
    """Pods of the mix run elsewhere; then these come, in this order, to empty nodes."""
    played = with_mix(nodes, mix)
    placed = [played.place(f"task-{number}", each, 0.0) for number, each in enumerate(tasks)]
    assert ["" if each is None else each.node for each in placed] == expected


def test_without_a_mix_nodes_in_use_come_first() -> None:
    """Whole nodes stay whole while nobody knows what will come."""
    played = ground([node("a", 2), node("b", 2), node("c", 2)])
    placed = [played.place(f"task-{number}", kind(1), 0.0) for number in range(4)]
    assert [each.node for each in placed if each is not None] == ["a", "a", "b", "b"]


def test_a_trial_does_not_change_the_mix() -> None:
    """What is supposed is not what the cluster serves."""
    played = with_mix([node("a", 64)], [kind(1)])
    before = played.state.mix
    with played.state.trial():
        for number in range(200):
            running = played.place(f"task-{number}", kind(2), 0.0)
            if running is not None:
                played.end(running)
        assert played.state.mix is before
    assert played.state.mix is before


def test_nothing_is_left_of_pods_that_are_gone() -> None:
    """When all pods have ended, nodes are chosen as in a cluster that never had any."""
    played = ground([node("a", 8), node("b", 8)])
    running = [played.place(f"seen-{n}", kind(1), 0.0) for n in range(2 * SEEN)]
    assert played.state.mix.kinds
    for each in running:
        assert each is not None
        played.end(each)
    assert played.state.mix is NO_MIX


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=100))
def test_the_mix_follows_from_what_is_there(history: list[tuple[int, bool]]) -> None:
    """It is the same in a cluster with a history and in one that is read now, in a trial too."""
    played = ground([node("a", 64), node("b", 64)])
    running: dict[str, Running] = {}
    for number, (gpus, ends) in enumerate(history):
        if ends and running:
            played.end(running.pop(next(iter(running))))
        elif len(running) < 40:
            placed = played.place(f"task-{number}", kind(gpus), 0.0)
            assert placed is not None
            running[placed.name] = placed
    read = ground([node("a", 64), node("b", 64)])
    for name, each in running.items():
        for claim in each.claims:
            read.state.set_claim(claim)
        pod = pod_of(name, each.kind)
        spec = replace(pod.spec, node_name=each.node)
        read.state.set_pod(replace(pod, spec=spec))
    with read.state.trial():
        assert dict(read.state.mix.kinds) == dict(played.state.mix.kinds)


def pair(count: int, gpus: int, cards: int) -> tuple[PodKind, int]:
    """So many pods that want GPUs and network cards."""
    wishes = (("gpu", gpus), ("card", cards))
    found = [DeviceWish(name, (), number, ()) for name, number in wishes if number]
    return PodKind(1, 1, tuple(found)), count


def test_a_pod_that_wants_two_sorts_of_devices_has_no_use_for_one_of_them() -> None:
    """Where the GPUs of a node are taken, its network cards are worth nothing to pods that want both: a pod with four GPUs goes where four
    are left, and leaves the other node whole."""
    state = ClusterState(Features(), lambda _: None)
    for name in ("gpu", "card"):
        expression = f'device.attributes["gpu.example.com"].kind == "{name}"'
        state.set_class(convert(DeviceClass, device_class(name, expression)))
    allocatable = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    for name in ("used", "whole"):
        value = {"metadata": {"name": name}, "status": {"allocatable": allocatable}}
        state.set_node(convert(Node, value))
        kinds = ["gpu"] * (4 if name == "used" else 8) + ["card"] * 8
        made = [device(f"d{n}", attrs={"kind": each}) for n, each in enumerate(kinds)]
        state.set_slice(convert(ResourceSlice, piece(made, pool=name, name=name, nodeName=name)))
    mix = Mix([pair(4, 1, 1), pair(8, 1, 0)])
    four = PodNeeds.of(Pod(metadata=ObjectMeta(name="four", uid="four")))
    losses = {}
    for name in ("used", "whole"):
        view = state.view(state.nodes[name])
        taken = tuple((position, None) for position in range(4))
        losses[name] = mix.loss(view, state.nodes[name], four, taken, 0)
    assert losses["used"] < losses["whole"]


KINDS = st.builds(kind, st.just(1), st.sampled_from([250, 500, 700, 1_000]), st.integers(1, 4))


@given(st.lists(KINDS | st.builds(kind, st.integers(0, 4)), min_size=1, max_size=25))
def test_no_placement_makes_a_node_worth_more(kinds: list[TaskKind]) -> None:
    """What later pods lose is never negative, whatever is on the nodes."""
    nodes = [node("a", 4, 8), node("b", 2, 16), node("c", 0, 16)]
    played = with_mix(nodes, [kind(1, 500, 2), kind(2), kind(1, 300)])
    for number, each in enumerate(kinds):
        name = f"task-{number}"
        if each.gpus:
            played.state.set_claim(claim_of(name, each))
        round_ = Decider(played.state).round(0.0)
        demand = round_.demand(pod_of(name, each))
        losses = [standing.loss for standing in round_.placer(demand).standings(demand)]
        assert all(loss.worth >= 0 and loss.free >= 0 for loss in losses)
        played.place(name, each, 0.0)

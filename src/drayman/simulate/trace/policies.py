"""Ways to choose a node for a task: the scheduler's own, and those that it is compared with. All of them ask the same allocator.

| name | node | devices on it |
|---|---|---|
| `best` | the scheduler's order | policy `best` |
| `best-fit` | the one with the least CPU, memory and GPUs left, each as a part of what the largest node has | policy `best` |
| `first-fit` | the first that takes it, in the order of the table | policy `first-fit` |
| `random` | any that takes it | policy `first-fit` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.placement.answering import Answer, Key
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Outcome
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState

Draw = Callable[[int], int]
"""A random number below another."""


class Chooser(Protocol):
    """Places tasks one after the other."""

    def place(self, pod: Pod, now: float) -> Outcome: ...


class _ByOrder:
    """Takes the first node in an order."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    def place(self, pod: Pod, now: float) -> Outcome:
        return self._decider.round(now).decide(pod)


class _AtRandom:
    """Takes any node."""

    def __init__(self, decider: Decider, draw: Draw) -> None:
        self._decider = decider
        self._draw = draw
        self._names = list(decider.state.nodes)

    def place(self, pod: Pod, now: float) -> Outcome:
        round_ = self._decider.round(now)
        demand = round_.demand(pod)
        placer, nodes = round_.placer(demand), self._decider.state.nodes
        names = self._names
        for tried in range(len(names)):
            # One more step of a shuffle: the names so far are those that were tried.
            other = tried + self._draw(len(names) - tried)
            names[tried], names[other] = names[other], names[tried]
            if placer.verdict_on(demand, nodes[names[tried]]) is FITS:
                return round_.decide(pod, names[tried])
        return round_.decide(pod)


class _LeastLeft:
    """Ranks nodes by what a pod leaves of them."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        shapes = [node.facts.shape for node in state.nodes.values()]
        self._cpu = max([shape.cpu for shape in shapes], default=0) or 1
        self._memory = max([shape.memory for shape in shapes], default=0) or 1
        devices = [len(state.view(node).hardware.records) for node in state.nodes.values()]
        self._devices = max(devices, default=0) or 1

    def __call__(self, demand: Demand, node: NodeState, answer: Answer) -> Key:
        shape, usage, needs = node.facts.shape, node.usage, demand.needs.shape
        devices = self._state.view(node).usage
        free = sum(
            float(left[0]) * found.bit_count() / float(devices.hardware.capacity_limits[kind][0])
            for kind, left, found in devices.capacity_groups
        )
        left = (shape.cpu - usage.cpu - needs.cpu) / self._cpu
        left += (shape.memory - usage.memory - needs.memory) / self._memory
        return (round(left + free / self._devices, 9),)


def _in_order(demand: Demand, node: NodeState, answer: Answer) -> Key:
    return (node.index,)


def _best(state: ClusterState, draw: Draw) -> Chooser:
    return _ByOrder(Decider(state))


def _best_fit(state: ClusterState, draw: Draw) -> Chooser:
    return _ByOrder(Decider(state, order=_LeastLeft(state)))


def _first_fit(state: ClusterState, draw: Draw) -> Chooser:
    return _ByOrder(Decider(state, policy=Policy.FIRST_FIT, order=_in_order))


def _random(state: ClusterState, draw: Draw) -> Chooser:
    return _AtRandom(Decider(state, policy=Policy.FIRST_FIT), draw)


POLICIES: Final[Mapping[str, Callable[[ClusterState, Draw], Chooser]]] = {
    "best": _best,
    "best-fit": _best_fit,
    "first-fit": _first_fit,
    "random": _random,
}

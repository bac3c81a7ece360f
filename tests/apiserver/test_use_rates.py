"""How fast something is used: from two samples, kept and taken when needed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.reaching.rates import NodeRates, Rate, rate, rates
from drayman.apiserver.reaching.sampling import BETWEEN_S, FRESH_S, LONGEST_S, NodeSamples
from drayman.node.streams.model import NodeApiError
from drayman.node.streams.use import ContainerKey, NodeUse, Use


@dataclass(frozen=True)
class Case:
    says: str
    before: Use | None
    after: Use | None
    want: Rate | None


CASES = [
    Case("half a CPU", Use(10, 1, 1000), Use(11, 7, 3000), Rate(500_000_000, 7, 2000, 3000)),
    Case("nothing used", Use(10, 1, 1000), Use(10, 7, 3000), Rate(0, 7, 2000, 3000)),
    Case("a container that was not there before", None, Use(11, 7, 3000), None),
    Case("a container that was started anew", Use(10, 1, 1000), Use(1, 7, 3000), None),
    Case("the same sample twice", Use(10, 1, 1000), Use(10, 1, 1000), None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_two_samples(case: Case) -> None:
    """Each case says what was sampled."""
    assert rate(case.before, case.after) == case.want


@given(st.floats(0, 1e9), st.floats(0, 1e6), st.integers(1, 10**6))
def test_what_was_used_is_rate_by_time(cpu_s: float, spent: float, window: int) -> None:
    """The rate over the window is what the counter has grown by."""
    found = rate(Use(cpu_s, 0, 0), Use(cpu_s + spent, 0, window))
    assert found is not None
    assert found.nano_cpu * window / 1e12 == pytest.approx(spent, rel=1e-6, abs=1e-6)


def test_only_what_both_samples_have() -> None:
    """Containers that came or went between two samples are left out."""
    stays, gone, new = (ContainerKey("n", name, "c") for name in ("stays", "gone", "new"))
    before = NodeUse(None, {stays: Use(0, 0, 0), gone: Use(0, 0, 0)})
    after = NodeUse(None, {stays: Use(1, 5, 1000), new: Use(1, 5, 1000)})
    assert rates(before, after) == NodeRates(None, {stays: Rate(10**9, 5, 1000, 1000)})


class Node:
    """A node that has used as much CPU time as has passed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked = 0
        self.is_there = True

    def clock(self) -> float:
        return self.now

    async def read(self) -> NodeUse:
        self.asked += 1
        self.now += 0.25
        if not self.is_there:
            raise NodeApiError(500, "gone")
        return NodeUse(Use(self.now, 1, int(self.now * 1000)), {})


async def window(samples: NodeSamples, node: Node) -> int:
    """Of what is answered, in milliseconds; 0 for no answer."""
    found = await samples.rates("n", node.read)
    return 0 if found is None or found.node is None else found.node.window_ms


async def test_samples_are_kept() -> None:
    """The first answer takes two samples, a quick second question none, a later one another, and a late one two again."""
    node = Node()
    samples = NodeSamples(node.clock)
    assert (await window(samples, node), node.asked) == (250, 2)
    node.now += FRESH_S / 2
    assert (await window(samples, node), node.asked) == (250, 2)
    node.now += FRESH_S
    assert (await window(samples, node), node.asked) == (7750, 3)
    node.now += LONGEST_S + BETWEEN_S
    assert (await window(samples, node), node.asked) == (250, 5)


async def test_a_node_that_is_away() -> None:
    """Nothing is said about a node that does not answer, and it starts afresh when it is back."""
    node = Node()
    samples = NodeSamples(node.clock)
    await window(samples, node)
    node.now += FRESH_S
    node.is_there = False
    assert await window(samples, node) == 0
    node.is_there = True
    assert await window(samples, node) == 250

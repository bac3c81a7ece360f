"""The law of entitlement on random clusters with queues of Kueue: what a queue may have of its own, it gets; and preemption ends."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.quota.decisions import Preempted
from quota.fitting.clusters import HOST, add_node, make_node, make_state, template
from quota.fitting.hall import Hall, work
from quota.fitting.test_preempting_for_room import FAIR, Q, said
from quota.queues import queue

EXAMPLES = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 60
BOTH = {
    "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
}


@dataclass(frozen=True)
class Market:
    """Nodes with processors, queues with a quota of them, and what runs."""

    hall: Hall
    nodes: dict[str, int]
    quota: dict[str, int]
    owner: dict[str, str]
    """The queue of each workload that runs."""
    sizes: dict[str, int]
    """What each of its pods takes."""
    held: dict[str, Counter[str]]
    """What each of these has of each node."""

    def free(self, without: frozenset[str]) -> dict[str, int]:
        """What is free of each node without some workloads."""
        used = Counter[str]()
        for name, amounts in self.held.items():
            if name not in without:
                used.update(amounts)
        return {node: size - used[node] for node, size in self.nodes.items()}

    def has_room(self, pods: int, size: int, without: frozenset[str]) -> bool:
        """Whether so many pods find room without some workloads."""
        return sum(each // size for each in self.free(without).values()) >= pods

    def are_owed(self, gone: frozenset[str]) -> bool:
        """Whether queues that borrow owe these workloads, if the largest of each goes last."""
        for name, quota in self.quota.items():
            sizes = [self.held[each].total() for each in gone if self.owner[each] == name]
            used = sum(a.total() for each, a in self.held.items() if self.owner[each] == name)
            if sizes and used - (sum(sizes) - max(sizes)) <= quota:
                return False
        return True

    def can_start(self, pods: int, size: int) -> bool:
        """Whether there are victims that are owed, without whom a workload of `fb` has quota and room."""
        others = [name for name in self.held if self.owner[name] != "fb"]
        used = sum(amounts.total() for amounts in self.held.values())
        for number in range(len(others) + 1):
            for chosen in combinations(others, number):
                gone = frozenset(chosen)
                left = used - sum(self.held[each].total() for each in gone)
                has_quota = left + pods * size <= sum(self.quota.values())
                if has_quota and self.are_owed(gone) and self.has_room(pods, size, gone):
                    return True
        return False


@st.composite
def markets(draw: st.DrawFn) -> Market:
    """Two or three nodes that borrowers fill, in queues of one cohort."""
    nodes = {name: draw(st.integers(3, 8)) for name in "abc"[: draw(st.integers(2, 3))]}
    total = sum(nodes.values())
    own = draw(st.integers(1, max(nodes.values())))
    first = draw(st.integers(0, total - own))
    quota = {"fa": first, "fb": own, "fc": total - own - first}
    state = make_state()
    for name, size in nodes.items():
        add_node(state, make_node(name, size))
    config: Any = draw(st.sampled_from([None, FAIR, BOTH]))
    made = [queue(name, amount, "c", reclaim="Any") for name, amount in quota.items()]
    hall = Hall(state, *made, config=config)
    market = Market(hall, nodes, quota, {}, {}, {})
    for number in range(draw(st.integers(6, 11))):
        owner = draw(st.sampled_from(["fa", "fc"] * 4 + ["fb"]))
        name, node = f"w{number}", draw(st.sampled_from(["", *nodes]))
        pods, size = draw(st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]))
        if not market.has_room(pods, size, frozenset()):
            continue
        chosen = {"nodeSelector": {HOST: node}} if node else {}
        hall.submit(work(name, owner, template([], size, **chosen), pods, at=number))
        hall.settle()
        if name not in hall.admitted() or hall.leaving():
            hall.rest()
        if name not in hall.admitted():
            hall.finish(Q + name)
            continue
        for gone in set(market.owner) - hall.admitted():
            hall.finish(Q + gone)
            del market.held[gone], market.owner[gone]
        market.owner[name], market.sizes[name] = owner, size
        for each in market.owner:
            hall.start(each)
            nodes_of = (pod.spec.node_name for pod in hall.pods[Q + each])
            market.held[each] = Counter()
            for place in nodes_of:
                market.held[each][place] += market.sizes[each]
    return market


@settings(max_examples=EXAMPLES)
@given(markets(), st.data())
def test_a_queue_gets_its_nominal_quota_if_any_victims_that_owe_it_make_room(
    market: Market, data: st.DataObject
) -> None:
    """All sets of victims are compared. If none of those that policy permits makes room, all workloads stay."""
    hall = market.hall
    used = sum(a.total() for name, a in market.held.items() if market.owner[name] == "fb")
    left = market.quota["fb"] - used
    shapes = [
        (pods, size)
        for pods in (1, 2, 3)
        for size in range(1, 9)
        if left / 2 <= pods * size <= left
    ]
    if not shapes:
        return
    pods, size = data.draw(st.sampled_from(shapes))
    wanted = market.can_start(pods, size)
    running = len(hall.admitted())
    hall.submit(work("entitled", "fb", template([], size), pods, at=30))
    hall.rest()
    evictions = [each for each in hall.log if isinstance(each, Preempted)]
    assert ("entitled" in hall.admitted()) == wanted, said(hall.log, "entitled")
    by_it = [each for each in evictions if each.by == Q + "entitled"]
    if wanted:
        assert len(evictions) <= running * (running + 1)
    else:
        assert not by_it

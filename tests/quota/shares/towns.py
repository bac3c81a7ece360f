"""Random towns: trees of queues with bounds of all kinds, and groups with minima, subgroups, wishes for levels, and times.

Everything is drawn as objects, so that whoever judges an outcome can read them without asking the engine.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from drayman.simulate.queue_scenarios import (
    GivenGroup,
    GivenNode,
    GivenPod,
    GivenQueue,
    GivenTopology,
    Scenario,
)
from quota.shares.town import queue

ZONE, RACK = "zone", "rack"
LEVELS = (ZONE, RACK)

bounds = st.sampled_from([-1, -1, 0, 1, 2, 3, 4, 6])
seconds = st.sampled_from([None, None, None, None, "0s", "600s"])


@st.composite
def trees(draw: st.DrawFn) -> tuple[GivenQueue, ...]:
    """Up to three levels; every queue is below an earlier one, or at the top."""
    found: list[GivenQueue] = []
    depths: dict[str, int] = {}
    for number in range(draw(st.integers(1, 7))):
        above = [None, *(name for name, depth in depths.items() if depth < 3)]
        parent = draw(st.sampled_from(above))
        name = f"q{number}"
        depths[name] = 1 + (0 if parent is None else depths[parent])
        found.append(
            queue(
                name,
                draw(bounds),
                parent=parent,
                limit=draw(st.sampled_from([-1, -1, -1, 2, 4, 6])),
                weight=draw(st.integers(0, 3)),
                age=draw(st.integers(1, 4)),
                priority=draw(st.sampled_from([50, 100, 100, 200])),
                preempt_min_runtime=draw(seconds),
                reclaim_min_runtime=draw(seconds),
            )
        )
    return tuple(found)


@st.composite
def nodes(draw: st.DrawFn) -> tuple[GivenNode, ...]:
    """Some nodes have labels of both levels, some of one or none."""
    labels = st.fixed_dictionaries(
        {ZONE: st.sampled_from("ab")}, optional={RACK: st.sampled_from("xy")}
    )
    return tuple(
        GivenNode(
            name=f"n{number}", gpus=draw(st.integers(1, 4)), labels=draw(labels | st.just({}))
        )
        for number in range(draw(st.integers(1, 4)))
    )


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, str] | None:
    fields = {
        key: draw(st.sampled_from(LEVELS))
        for key in ("requiredTopologyLevel", "preferredTopologyLevel")
        if draw(st.integers(0, 7)) == 7
    }
    return {"topology": "t", **fields} if fields else None


@st.composite
def subgroups(draw: st.DrawFn) -> tuple[dict[str, Any], ...]:
    """One to three at the top, the first of them perhaps with two below it."""
    found: list[dict[str, Any]] = []

    def one(name: str, parent: str | None, minimum: str, value: int | None) -> None:
        given = {
            "name": name,
            "parent": parent,
            minimum: value,
            "topologyConstraint": draw(wishes()),
        }
        found.append({key: each for key, each in given.items() if each is not None})

    for number in range(draw(st.integers(1, 3))):
        if number == 0 and draw(st.booleans()):
            one("s0", None, "minSubGroup", draw(st.none() | st.integers(1, 2)))
            for name in ("s00", "s01"):
                one(name, "s0", "minMember", draw(st.integers(1, 2)))
        else:
            one(f"s{number}", None, "minMember", draw(st.integers(1, 2)))
    return tuple(found)


@st.composite
def groups(draw: st.DrawFn, name: str, leaves: list[str], free: dict[str, int]) -> GivenGroup:
    """A group of which all, some or none have a place. Takes the places from what is free."""
    parts = draw(
        st.sampled_from([False, False, True]).flatmap(
            lambda has: subgroups() if has else st.just(())
        )
    )
    inner = {each.get("parent") for each in parts}
    innermost = [each["name"] for each in parts if each["name"] not in inner]
    top = [each["name"] for each in parts if "parent" not in each]
    running = draw(st.sampled_from(["all", "all", "none", "none", "some"]))
    pods: list[GivenPod] = []
    for number in range(draw(st.integers(1, 5))):
        size = draw(st.sampled_from([1, 1, 1, 2]))
        places = [node for node, left in free.items() if left >= size]
        runs = running == "all" or (running == "some" and draw(st.booleans()))
        node = draw(st.sampled_from(places)) if places and runs else ""
        if node:
            free[node] -= size
        part = draw(st.sampled_from(innermost)) if innermost else ""
        pods.append(GivenPod(name=f"{name}-{number}", gpus=size, sub_group=part, node_name=node))
    is_placed = any(each.node_name for each in pods)
    return GivenGroup(
        name=name,
        queue=draw(st.sampled_from(leaves)),
        priority=draw(st.sampled_from([25, 50, 75, 100])),
        min_member=None if parts else draw(st.integers(1, len(pods))),
        min_sub_group=draw(st.none() | st.integers(1, len(top))) if parts else None,
        sub_groups=parts,
        topology_constraint=draw(wishes()),
        preemptibility=draw(st.sampled_from(["", "preemptible", "preemptible", "non-preemptible"])),
        preemption_delay=draw(st.sampled_from([None] * 6 + ["300s"])),
        staleness_grace_period=draw(st.sampled_from([None, "0s", "-1s"])),
        created_seconds_ago=draw(st.integers(1, 900)),
        started_seconds_ago=draw(st.sampled_from([30, 300, 3000])) if is_placed else None,
        stale_seconds_ago=draw(st.sampled_from([None, 30, 300])) if is_placed else None,
        pods=tuple(pods),
    )


@st.composite
def any_towns(draw: st.DrawFn) -> Scenario:
    queues, there = draw(trees()), draw(nodes())
    inner = {each.parent_queue for each in queues}
    leaves = [each.name for each in queues if each.name not in inner]
    free = {each.name: each.gpus for each in there}
    number = draw(st.integers(3, 8))
    return Scenario(
        name="any",
        nodes=there,
        topologies=(GivenTopology(name="t", levels=LEVELS),),
        queues=queues,
        pod_groups=tuple(draw(groups(f"g{n}", leaves, free)) for n in range(number)),
    )

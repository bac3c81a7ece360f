"""A small cluster with queues, written down in a few words, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from drayman.simulate.queue_scenarios import (
    GivenAmounts,
    GivenGroup,
    GivenNode,
    GivenPod,
    GivenQueue,
    GivenTopology,
    Result,
    Scenario,
    replayed,
)


def queue(
    name: str,
    quota: float = 0,
    *,
    parent: str | None = None,
    limit: float = -1,
    weight: float = 1,
    age: float = 1000,
    **fields: Any,
) -> GivenQueue:
    """Ages are in seconds: the greater, the older."""
    amounts = GivenAmounts(quota=quota, limit=limit, over_quota_weight=weight)
    return GivenQueue(
        name=name, parent_queue=parent, gpu=amounts, created_seconds_ago=age, **fields
    )


def group(
    name: str,
    in_queue: str,
    *pods: str,
    least: int | None = 1,
    priority: int = 50,
    age: float = 1000,
    **fields: Any,
) -> GivenGroup:
    """Each pod is written as its GPUs, its subgroup and its node: `1`, `2/x`, `1@n1`."""
    given = []
    for number, text in enumerate(pods):
        size, _, node = text.partition("@")
        size, _, part = size.partition("/")
        given.append(
            GivenPod(name=f"{name}-{number}", gpus=int(size), sub_group=part, node_name=node)
        )
    return GivenGroup(
        name=name,
        queue=in_queue,
        priority=priority,
        min_member=None if "sub_groups" in fields else least,
        created_seconds_ago=age,
        pods=tuple(given),
        **fields,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a town comes to rest."""

    result: Result
    running: dict[str, int]
    evicted: dict[str, int]
    first: dict[str, dict[str, int]]
    """What the first cycle evicted, by action and group."""


def outcome(
    nodes: dict[str, int],
    queues: list[GivenQueue],
    groups: list[GivenGroup],
    racks: dict[str, str] | None = None,
) -> Outcome:
    """Nodes with their GPUs, queues and groups. `racks` label the nodes, by the only level of the topology `t`."""
    labels = racks or {}
    scenario = Scenario(
        name="town",
        nodes=tuple(
            GivenNode(name=n, gpus=g, labels={"rack": labels[n]} if n in labels else {})
            for n, g in nodes.items()
        ),
        topologies=(GivenTopology(name="t", levels=("rack",)),),
        queues=tuple(queues),
        pod_groups=tuple(groups),
    )
    return outcome_of(scenario)


def outcome_of(scenario: Scenario) -> Outcome:
    result = replayed(scenario)
    owner = {pod.name: each.name for each in scenario.pod_groups for pod in each.pods}
    running = Counter(owner[name] for name in result.placement)
    first: dict[str, dict[str, int]] = {}
    for name, counts in result.first.evicted.items():
        for action, number in counts.items():
            first.setdefault(action, {})[name] = number
    names = [each.name for each in scenario.pod_groups]
    return Outcome(
        result,
        {name: running[name] for name in names},
        {name: number for name, number in result.evicted.items() if number},
        first,
    )

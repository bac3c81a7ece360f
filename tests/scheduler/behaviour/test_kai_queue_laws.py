"""What holds for any queues and any work in them, whatever happens in between."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from controllers.world import NAMESPACE
from drayman.cluster.resources import PODS
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import Stage
from scheduler.behaviour.test_kai_queues import gpus, group, nodes, pod, queue

LEAVES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
NO_LIMIT = -1
ROUNDS = 40
"""So many looks in a row at a cluster in which nothing changes are rest."""


@dataclass(slots=True)
class Watched:
    """What queues may have, and what they were seen to have."""

    quotas: dict[str, int]
    limits: dict[str, int]
    sizes: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    """Of each pod: queue, GPUs, whether it is not preemptible."""
    most: dict[str, int] = field(default_factory=dict)
    """The most that a queue was seen to use, up to its quota: it never falls below that again."""

    def look(self, placed: set[str]) -> None:
        for name, quota in self.quotas.items():
            own = [
                self.sizes[p]
                for p in placed
                if name in (self.sizes[p][0], LEAVES[self.sizes[p][0]])
            ]
            used = sum(size for _, size, _ in own)
            assert used <= self.limits[name] or self.limits[name] == NO_LIMIT, (name, placed)
            assert sum(size for _, size, firm in own if firm) <= quota, (name, placed)
            if name in LEAVES:
                assert used >= self.most.get(name, 0), (name, placed)
                self.most[name] = max(self.most.get(name, 0), min(used, quota))


@pytest.mark.parametrize("seed", range(3))
async def test_no_queue_is_beyond_its_limit_or_loses_its_quota(cluster: Cluster, seed: int) -> None:
    """At no time: limits and quotas of firm work hold at each level, what is reclaimed was beyond quota. And it comes to rest."""
    rng = random.Random(seed)
    quotas = {name: rng.randint(0, 3) for name in LEAVES}
    quotas |= {top: sum(quotas[leaf] for leaf in LEAVES if LEAVES[leaf] == top) for top in "ab"}
    limits = {name: rng.choice((NO_LIMIT, quota + 2)) for name, quota in quotas.items()}
    watched = Watched(quotas, limits)
    async with cluster() as stage:
        await nodes(stage, 2, each=5)
        for name in ("a", "b", *LEAVES):
            above = {"parentQueue": LEAVES[name]} if name in LEAVES else {}
            await queue(stage, name, gpus(quotas[name], limits[name], rng.randint(0, 3), **above))
        for number in range(16):
            await submit(stage, f"w{number}", rng, watched)
            watched.look(await placed_in(stage))
        before, rounds = await placed_in(stage), 0
        for _ in range(1000):
            await asyncio.sleep(0.01)
            placed = await placed_in(stage)
            watched.look(placed)
            rounds = rounds + 1 if placed == before else 0
            before = placed
            if rounds == ROUNDS:
                return
        raise AssertionError("it does not come to rest")


async def submit(stage: Stage, name: str, rng: random.Random, watched: Watched) -> None:
    """A pod on its own, or one that may not be preempted."""
    leaf = rng.choice(list(LEAVES))
    if rng.random() < 0.3:
        size = rng.choice((1, 2))
        watched.sizes[f"{name}-0"] = (leaf, size, True)
        await group(stage, name, leaf, 1, size, group={"preemptibility": "non-preemptible"})
    else:
        watched.sizes[name] = (leaf, 1, False)
        await pod(stage, name, leaf)


async def placed_in(stage: Stage) -> set[str]:
    listed = (await stage.client.list(PODS, NAMESPACE)).items
    return {each.metadata.name for each in listed if each.spec.node_name}

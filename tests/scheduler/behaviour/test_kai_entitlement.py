"""A queue of KAI gets what it is entitled to: of pods of queues that have more than their share, those go without which its work fits."""

from __future__ import annotations

import pytest

from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import POD_VALUES, Stage
from scheduler.behaviour.test_kai_queues import gpus, group, nodes, pod, queue, running


async def two_teams(stage: Stage) -> None:
    """Two nodes with 8 GPUs each, and two queues with half of them each."""
    await nodes(stage, 2)
    for name in ("a", "b"):
        await queue(stage, name, gpus(quota=8))


@pytest.mark.parametrize("size", [8, 6, 4])
async def test_pods_of_one_node_are_reclaimed_for_a_large_pod(cluster: Cluster, size: int) -> None:
    """A queue with twice its quota has small pods on two nodes. Those that go for a pod of the other queue are on one of them."""
    async with cluster() as stage:
        await two_teams(stage)
        for index in range(8):
            await pod(stage, f"a{index}", "a", 2)
        assert await running(stage, 8) == {"a": 8}
        await pod(stage, "b0", "b", size)
        await stage.bound("b0")
        assert await running(stage, 9 - size // 2, b=1) == {"a": 8 - size // 2, "b": 1}


@pytest.mark.parametrize(("least", "number"), [(2, 2), (3, 2), (4, 2), (2, 4), (1, 8)], ids=str)
async def test_the_surplus_of_an_elastic_gang_goes_first(
    cluster: Cluster, least: int, number: int
) -> None:
    """A gang of any size that its queue is entitled to starts on what another gang can do without, and that keeps its quorum."""
    async with cluster() as stage:
        await two_teams(stage)
        elastic = await group(stage, "a-el", "a", 8, 2, group={"minMember": 2})
        await stage.bound(*elastic)
        await stage.bound(*await group(stage, "b-gang", "b", least, number))
        left = 8 - least * number // 2
        assert await running(stage, left + least, b=least) == {"a": left, "b": least}


async def test_a_gang_reclaims_nodes_and_not_the_newest_pods_anywhere(cluster: Cluster) -> None:
    """Four nodes are full of pods of a queue that owes two of them; the pods that came last are spread over all of them."""
    async with cluster() as stage:
        await nodes(stage, 4, each=4)
        await queue(stage, "a", gpus(quota=8))
        await queue(stage, "b", gpus(quota=8))
        for index in range(4):
            for node in range(4):
                chosen = {"kubernetes.io/hostname": f"n{node}"}
                await pod(stage, f"a{index}{node}", "a", 1, nodeSelector=chosen)
        assert await running(stage, 16) == {"a": 16}
        names = await group(stage, "b-gang", "b", 2, 4)
        await stage.bound(*names)
        assert await running(stage, 10, b=2) == {"a": 8, "b": 2}


async def test_no_pod_goes_where_no_permitted_pods_are_enough(cluster: Cluster) -> None:
    """A pod of eight GPUs fits on neither node if one pod of each has to stay: then all others stay as well."""
    async with cluster() as stage:
        await two_teams(stage)
        for node in range(2):
            chosen = {"kubernetes.io/hostname": f"n{node}"}
            firm = await group(
                stage,
                f"a-firm{node}",
                "a",
                1,
                2,
                group={"preemptibility": "non-preemptible"},
                nodeSelector=chosen,
            )
            await stage.bound(*firm)
        for index in range(6):
            await pod(stage, f"a{index}", "a", 2)
        await running(stage, 8)
        await pod(stage, "b0", "b", 8)
        await stage.refused("b0", "NodesFull")
        await stage.keeps_waiting("b0")
        await running(stage, 8)
        await stage.delete(POD_VALUES, "a-firm0-0")
        await stage.bound("b0")

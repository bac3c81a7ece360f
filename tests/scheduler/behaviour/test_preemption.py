"""Room that a pod gets because less important ones go: as few as needed, nobody twice, and kept until the pod has it.

There is no kubelet: a pod that was asked to go is there until the test lets it go. Where the tests say so there is no claim
controller either, so that claims give back their devices when the test says.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from controllers.world import CLAIM_VALUES, NAMESPACE, POD_VALUES, eventually, over_http, stays
from drayman.api.core import Pod
from drayman.cluster import DeleteOptions
from drayman.cluster.resources import DISRUPTION_BUDGETS, EVENTS, PODS, JsonObject, generic
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import Stage, devices_of, from_template, wants

PRIORITY_CLASSES = generic(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False
)
BUDGET_VALUES = DISRUPTION_BUDGETS.as_values()
NODES = ("node-a", "node-b")


class Clock:
    """The scheduler's. A test may put it forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


@asynccontextmanager
async def scheduler_alone(folder: Path, clock: Clock) -> AsyncIterator[Stage]:
    """A server and a scheduler: what controllers and kubelets do, the test does."""
    settings = SchedulerOptions(first_backoff_s=0.05, longest_backoff_s=0.2)
    async with over_http(folder) as client:
        stage = Stage(
            client,
            (
                lambda client, informers: Scheduler(
                    client, informers, settings, clock=clock, wall_clock=clock
                ),
            ),
        )
        await stage.start()
        try:
            yield stage
        finally:
            await stage.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def alone(tmp_path: Path, clock: Clock) -> AbstractAsyncContextManager[Stage]:
    return scheduler_alone(tmp_path, clock)


async def two_full_nodes(stage: Stage, *, grace: int = 30) -> None:
    """Two nodes with two devices each, and a pod on each that has both."""
    await classes(stage)
    for node, pod in zip(NODES, ("first", "second"), strict=True):
        await stage.node(node, "gpu-0", "gpu-1")
        await stage.make_claim(f"{pod}-claim", wants(count=2))
        await stage.start_pod(pod, f"{pod}-claim", terminationGracePeriodSeconds=grace)
    await stage.bound("first", "second")


async def one_node_for_two(stage: Stage) -> None:
    """A node with two devices, and two pods that have one each."""
    await classes(stage)
    await stage.node("node-a", "gpu-0", "gpu-1")
    for name in ("first", "second"):
        await stage.make_claim(f"{name}-claim")
        await stage.start_pod(name, f"{name}-claim")
    await stage.bound("first", "second")


async def classes(stage: Stage) -> None:
    await stage.device_class()
    for name, value, policy in (
        ("high", 1000, "PreemptLowerPriority"),
        ("higher", 2000, "PreemptLowerPriority"),
        ("polite", 1000, "Never"),
    ):
        made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        await stage.create(PRIORITY_CLASSES, made)


async def important(stage: Stage, name: str, count: int = 1, *, rank: str = "high") -> None:
    """A pod that may preempt others, with a claim of its own."""
    await stage.make_claim(f"{name}-claim", wants(count=count))
    await stage.start_pod(name, f"{name}-claim", priorityClassName=rank)


async def asked(stage: Stage) -> list[str]:
    """The pods that have been asked to go for somebody, gone or not: events tell."""
    listed = (await stage.client.list(EVENTS, NAMESPACE)).items
    return sorted({e["regarding"]["name"] for e in listed if e["reason"] == "Preempted"})


async def until_asked(stage: Stage, count: int = 1) -> list[str]:
    return await eventually(lambda: asked(stage), lambda names: len(names) >= count)


async def alive(stage: Stage) -> list[str]:
    """The pods that nobody has asked to go."""
    listed = (await stage.client.list(PODS, NAMESPACE)).items
    return sorted(p.metadata.name for p in listed if p.metadata.deletion_timestamp is None)


async def nominated(stage: Stage, name: str) -> str:
    pod = await stage.until_pod(name, lambda pod: bool(pod.status.nominated_node_name))
    return pod.status.nominated_node_name or ""


async def let_go(stage: Stage, *pods: str) -> None:
    """What a kubelet does when the containers of a pod have ended."""
    for name in pods:
        pod = await stage.get_pod(name)
        if pod is not None:
            options = DeleteOptions(grace_period_seconds=0)
            await stage.client.delete(POD_VALUES, name, NAMESPACE, options=options)


async def give_back(stage: Stage, *pods: str) -> None:
    """What the claim controller does when the users of a claim are gone."""
    for pod in pods:
        empty: JsonObject = {"status": {"allocation": None, "reservedFor": None}}
        await stage.patch(CLAIM_VALUES, f"{pod}-claim", empty, "status")


async def protect(stage: Stage, *pods: str) -> None:
    """A disruption budget under which none of the pods may go."""
    for name in pods:
        await stage.patch(POD_VALUES, name, {"metadata": {"labels": {"app": "kept"}}})
    budget = {"selector": {"matchLabels": {"app": "kept"}}, "minAvailable": len(pods)}
    await stage.create(BUDGET_VALUES, {"metadata": {"name": "kept"}, "spec": budget})
    await eventually(
        lambda: stage.client.get(BUDGET_VALUES, "kept", NAMESPACE),
        lambda found: found.get("status", {}).get("expectedPods") == len(pods),
    )


@pytest.mark.parametrize("grace", [0, 30])
async def test_one_victim_where_one_suffices(cluster: Cluster, grace: int) -> None:
    """A pod that needs one device of one node costs one pod, though a replacement of it waits in line at once."""
    async with cluster() as stage:
        await classes(stage)
        await stage.make_template("t", wants(count=2))
        for node, pod in zip(NODES, ("first", "second"), strict=True):
            await stage.node(node, "gpu-0", "gpu-1")
            await stage.start_pod(pod, from_template(), terminationGracePeriodSeconds=grace)
        await stage.bound("first", "second")
        await important(stage, "urgent")
        (victim,) = await until_asked(stage)
        await stage.start_pod("replacement", from_template())
        if grace:
            assert await nominated(stage, "urgent")
            await let_go(stage, victim)
        await stage.bound("urgent")
        await stage.refused("replacement")
        (survivor,) = {"first", "second"} - {victim}
        await stage.stays_bound(survivor)
        assert await asked(stage) == [victim]


async def test_a_claim_that_outlives_its_pod_costs_no_second_victim(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """The pod waits for the devices of its victim, however long after the victim they are given back."""
    async with alone as stage:
        await two_full_nodes(stage)
        await important(stage, "urgent")
        (victim,) = await until_asked(stage)
        await let_go(stage, victim)
        await stage.keeps_waiting("urgent")
        # Whatever else happens meanwhile is no reason to ask anybody else.
        await stage.node("node-c")
        await stage.keeps_waiting("urgent")
        assert await asked(stage) == [victim]
        await give_back(stage, victim)
        await stage.bound("urgent")
        assert await asked(stage) == [victim]


async def test_a_scheduler_that_begins_meanwhile_asks_nobody_else(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """Who is leaving, and which claims are about to be free, is seen by a scheduler that asked for none of it."""
    async with alone as stage:
        await two_full_nodes(stage)
        await important(stage, "urgent")
        (victim,) = await until_asked(stage)
        await stage.stop()
        await stage.start()
        await stage.keeps_waiting("urgent")
        await stage.stop()
        await let_go(stage, victim)
        await stage.start()
        await stage.keeps_waiting("urgent")
        assert await asked(stage) == [victim]
        await give_back(stage, victim)
        await stage.bound("urgent")
        assert await asked(stage) == [victim]


async def test_two_that_come_together_share_the_room_of_one_victim(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """The second of them gets what the first leaves of the room that is about to be there."""
    async with alone as stage:
        await two_full_nodes(stage)
        await stage.stop()
        await important(stage, "one")
        await important(stage, "two")
        await stage.start()
        assert await nominated(stage, "one") == await nominated(stage, "two")
        (victim,) = await until_asked(stage)
        await let_go(stage, victim)
        await give_back(stage, victim)
        await stage.bound("one", "two")
        assert await asked(stage) == [victim]


async def test_room_is_kept_while_it_comes_bit_by_bit(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """What one victim leaves is not given to others while the pod waits for the next victim."""
    async with alone as stage:
        await one_node_for_two(stage)
        await important(stage, "urgent", 2)
        assert await until_asked(stage, 2) == ["first", "second"]
        await stage.make_claim("late-claim")
        await stage.start_pod("late", "late-claim")
        await let_go(stage, "first")
        await give_back(stage, "first")
        await stage.keeps_waiting("late")
        await let_go(stage, "second")
        await give_back(stage, "second")
        await stage.bound("urgent")
        await stage.keeps_waiting("late")


async def test_cpu_is_kept_like_devices(alone: AbstractAsyncContextManager[Stage]) -> None:
    """A pod that would fit into the CPUs of the first victim waits until the preemptor has its room."""
    async with alone as stage:
        await classes(stage)
        await stage.node("node-a")
        for name in ("first", "second"):
            await stage.start_pod(name, requests={"cpu": "4"})
        await stage.bound("first", "second")
        await stage.start_pod("urgent", requests={"cpu": "8"}, priorityClassName="high")
        await until_asked(stage, 2)
        await stage.start_pod("late", requests={"cpu": "1"})
        await let_go(stage, "first")
        await stage.keeps_waiting("late")
        await let_go(stage, "second")
        await stage.bound("urgent")


async def test_who_is_more_important_may_take_what_is_kept(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """Room that is promised to a pod goes to one of higher priority that comes meanwhile."""
    async with alone as stage:
        await classes(stage)
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.make_claim("first-claim", wants(count=2))
        await stage.start_pod("first", "first-claim")
        await stage.bound("first")
        await important(stage, "urgent", 2)
        await until_asked(stage)
        await important(stage, "utmost", 2, rank="higher")
        assert await nominated(stage, "utmost") == "node-a"
        await let_go(stage, "first")
        await give_back(stage, "first")
        await stage.bound("utmost")
        await stage.keeps_waiting("urgent")
        assert await asked(stage) == ["first"]


async def test_a_claim_that_is_given_back_is_not_taken_up_again(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """A pod that names the claim of a victim does not keep its devices from the preemptor."""
    async with alone as stage:
        await two_full_nodes(stage)
        await important(stage, "urgent")
        (victim,) = await until_asked(stage)
        await let_go(stage, victim)
        await stage.start_pod("heir", f"{victim}-claim")
        await stage.refused("heir", "kept for pod default/urgent")
        await give_back(stage, victim)
        await stage.bound("urgent")
        assert await asked(stage) == [victim]


async def test_room_is_everybodys_when_the_preemptor_goes(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """A preemptor that is deleted while it waits leaves its room to whoever waits for some."""
    async with alone as stage:
        await one_node_for_two(stage)
        await important(stage, "urgent", 2)
        await until_asked(stage, 2)
        await let_go(stage, "first")
        await give_back(stage, "first")
        await stage.make_claim("late-claim")
        await stage.start_pod("late", "late-claim")
        await stage.keeps_waiting("late")
        await let_go(stage, "urgent")
        await stage.bound("late")


async def test_nobody_goes_for_nothing(alone: AbstractAsyncContextManager[Stage]) -> None:
    """Where no set of victims would make enough room, everybody stays and no room is kept."""
    async with alone as stage:
        await two_full_nodes(stage)
        await important(stage, "huge", 3)
        await stage.refused("huge")
        await stage.keeps_waiting("huge")
        assert await asked(stage) == []
        assert await alive(stage) == ["first", "huge", "second"]


async def test_nobody_goes_for_a_pod_that_preempts_never(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """`preemptionPolicy: Never` puts a pod first in line, and no more."""
    async with alone as stage:
        await two_full_nodes(stage)
        await important(stage, "polite", rank="polite")
        await stage.refused("polite")
        await stage.keeps_waiting("polite")
        assert await asked(stage) == []
        await let_go(stage, "first")
        await give_back(stage, "first")
        assert await stage.bound("polite") == "node-a"


async def test_pods_under_a_budget_are_spared(cluster: Cluster) -> None:
    """Where another node will do, the pod that a disruption budget protects stays."""
    async with cluster() as stage:
        await two_full_nodes(stage)
        await protect(stage, "first")
        await important(stage, "urgent")
        assert await until_asked(stage) == ["second"]
        await let_go(stage, "second")
        assert await stage.bound("urgent") == "node-b"
        await stage.stays_bound("first")


async def test_a_budget_gives_way_where_nobody_else_could_go(cluster: Cluster) -> None:
    """Where all who could go are protected, one of them goes all the same: a budget is a wish, as in Kubernetes."""
    async with cluster() as stage:
        await two_full_nodes(stage)
        await protect(stage, "first", "second")
        await important(stage, "urgent")
        (victim,) = await until_asked(stage)
        await let_go(stage, victim)
        await stage.bound("urgent")
        assert await asked(stage) == [victim]


async def test_victims_make_way_for_a_pod_that_minds_them(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """Anti-affinity goes with the pod that it is about, and its replacement does not come back first."""
    spec: JsonObject = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": {"app": "x"}},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        }
    }

    async def start(name: str, **fields: object) -> None:
        container = {"name": "main", "image": "example.com/image:1"}
        made = {"containers": [container], **spec, **fields}
        metadata = {"name": name, "labels": {"app": "x"}}
        await stage.create(POD_VALUES, {"metadata": metadata, "spec": made})

    async with alone as stage:
        await classes(stage)
        await stage.node("node-a")
        await start("first")
        await stage.bound("first")
        await start("urgent", priorityClassName="high")
        assert await until_asked(stage) == ["first"]
        await start("replacement")
        await let_go(stage, "first")
        await stage.bound("urgent")
        await stage.keeps_waiting("replacement")


async def test_room_is_no_longer_kept_for_a_pod_that_found_other_room(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """A preemptor that fits elsewhere before its victim is gone goes there, and the room of its victim is everybody's."""
    async with alone as stage:
        await two_full_nodes(stage)
        await important(stage, "urgent")
        (victim,) = await until_asked(stage)
        await stage.node("node-c", "gpu-0")
        assert await stage.bound("urgent") == "node-c"

        async def is_cleared() -> Pod | None:
            return await stage.get_pod("urgent")

        await stays(is_cleared, lambda pod: pod is not None and not pod.status.nominated_node_name)
        # The room is no longer kept: the next who is in line has it.
        await stage.make_claim("late-claim", wants(count=2))
        await stage.start_pod("late", "late-claim")
        await let_go(stage, victim)
        await give_back(stage, victim)
        await stage.bound("late")
        claim = await stage.allocated("late-claim")
        assert len(devices_of(claim)) == 2


async def test_who_does_not_go_is_not_waited_for_or_asked_again(
    alone: AbstractAsyncContextManager[Stage], clock: Clock
) -> None:
    """A victim that is still there long after its grace makes no room: the pod turns to another, and to nobody where there is none."""
    async with alone as stage:
        await two_full_nodes(stage, grace=1)
        await important(stage, "urgent", count=2)
        (stuck,) = await until_asked(stage)
        clock.ahead_s += 120
        await stage.node("node-c")  # something happens
        (other,) = set(await until_asked(stage, 2)) - {stuck}
        clock.ahead_s += 120
        await stage.node("node-d")
        await stage.until_pod("urgent", lambda pod: not pod.status.nominated_node_name)
        before = await notes_of_preemption(stage)
        await stage.node("node-e")
        await stage.keeps_waiting("urgent")
        assert await notes_of_preemption(stage) == before
        await let_go(stage, other)
        await give_back(stage, other)
        await stage.bound("urgent")


async def notes_of_preemption(stage: Stage) -> int:
    """How often anybody was told to have been preempted."""
    listed = (await stage.client.list(EVENTS, NAMESPACE)).items
    told = [event for event in listed if event["reason"] == "Preempted"]
    return sum(event.get("series", {}).get("count", 1) for event in told)

"""Queues in the sense of the KAI Scheduler: limits, quotas of work that is not preemptible, and the order in which work starts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from controllers.world import NAMESPACE, eventually
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS, JsonObject, generic
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import POD_VALUES, Stage, from_template, wants

QUEUES = generic("scheduling.run.ai/v2", "queues", "Queue", namespaced=False)
KAI_GROUPS = generic("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup")
GPU = "example.com/gpu"


def gpus(quota: float = 0, limit: float = -1, weight: float = 1, **more: Any) -> JsonObject:
    """The spec of a queue."""
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": weight}
    return {"resources": {"gpu": gpu, **more.pop("resources", {})}, **more}


async def queue(stage: Stage, name: str, spec: JsonObject) -> None:
    await stage.create(QUEUES, {"metadata": {"name": name}, "spec": spec})


async def pod(stage: Stage, name: str, queue: str, number: int = 1, **fields: Any) -> None:
    """A pod on its own that asks for GPUs as an extended resource."""
    labels = {"kai.scheduler/queue": queue} if queue else {}
    requests: JsonObject = {GPU: str(number), **fields.pop("requests", {})}
    amounts = {"requests": requests, "limits": {GPU: str(number)}}
    container = {"name": "main", "image": "example.com/image:1", "resources": amounts}
    metadata = {"name": name, "labels": labels, "annotations": fields.pop("annotations", {})}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **fields}
    await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})


async def group(
    stage: Stage, name: str, queue: str, pods: int, number: int = 1, **spec: Any
) -> list[str]:
    """A group of KAI with its pods, all of which start together unless it says otherwise."""
    fields = {"minMember": pods, "queue": queue, **spec.pop("group", {})}
    await stage.create(KAI_GROUPS, {"metadata": {"name": name}, "spec": fields})
    names = [f"{name}-{each}" for each in range(pods)]
    for each in names:
        await pod(stage, each, "", number, annotations={"pod-group-name": name}, **spec)
    return names


async def nodes(stage: Stage, number: int = 1, each: int = 8) -> None:
    for index in range(number):
        await stage.node(f"n{index}", allocatable={GPU: str(each), "cpu": "64", "memory": "512Gi"})


async def test_limits_hold_at_each_level(cluster: Cluster) -> None:
    """The condition names the queue whose limit it is, the amounts and who holds what. What is left is for others."""
    async with cluster() as stage:
        await nodes(stage)
        await queue(stage, "all", gpus(limit=5))
        await queue(stage, "a", gpus(limit=4, parentQueue="all"))
        await queue(stage, "b", gpus(parentQueue="all"))
        await pod(stage, "first", "a", 3)
        await stage.bound("first")
        await pod(stage, "second", "a", 2)
        await stage.refused(
            "second",
            "OverLimit (not now): Queue a has a limit of 4: 2 GPUs wanted, 3 in use, by pod default/first (3).",
        )
        names = await group(stage, "third", "b", pods=3)
        await stage.refused(
            names[0], "Queue all, above b, has a limit of 5: 3 GPUs wanted, 3 in use"
        )
        await pod(stage, "fourth", "b", 2)
        await stage.bound("fourth")
        await stage.delete(POD_VALUES, "first")
        await stage.bound("second")


async def test_the_status_of_queues_is_kept(cluster: Cluster) -> None:
    """What the work of a queue holds and asks for, with that of the queues below it."""
    async with cluster() as stage:
        await nodes(stage)
        await queue(stage, "all", gpus(quota=3, limit=4))
        await queue(stage, "a", gpus(quota=3, parentQueue="all"))
        names = await group(stage, "firm", "a", 1, 3, group={"preemptibility": "non-preemptible"})
        await stage.bound(*names)
        await pod(stage, "more", "a", 2)

        async def status() -> JsonObject:
            return dict((await stage.client.get(QUEUES, "all")).get("status") or {})

        def is_so(found: JsonObject) -> bool:
            kinds = ("allocated", "allocatedNonPreemptible", "requested")
            amounts = [found.get(kind, {}).get("nvidia.com/gpu") for kind in kinds]
            return amounts == ["3", "3", "5"] and found.get("childQueues") == ["a"]

        await eventually(status, is_so)


async def test_a_limit_that_is_raised_lets_work_start(cluster: Cluster) -> None:
    """The queue is followed, and so is whether it exists."""
    async with cluster() as stage:
        await nodes(stage)
        await queue(stage, "a", gpus(limit=1))
        await pod(stage, "large", "a", 4)
        await stage.refused("large", "OverLimit")
        await pod(stage, "astray", "b", 1)
        await stage.refused("astray", "QueueDoesNotExist (held): There is no queue b.")
        await stage.patch(QUEUES, "a", {"spec": gpus(limit=4)})
        await stage.bound("large")
        await queue(stage, "b", gpus())
        await stage.bound("astray")


async def test_work_that_is_not_preemptible_stays_within_quota(cluster: Cluster) -> None:
    """Preemptible work of the same queue may go beyond, where room is free."""
    async with cluster() as stage:
        await nodes(stage)
        await queue(stage, "a", gpus(quota=2))
        firm = await group(stage, "firm", "a", 3, group={"preemptibility": "non-preemptible"})
        await stage.refused(
            firm[0],
            "NonPreemptibleOverQuota (not now): pod group default/firm: Queue a has a quota of 2 for work that is not preemptible",
        )
        await stage.bound(*await group(stage, "loose", "a", 3))


async def test_devices_of_claims_count_like_extended_resources(cluster: Cluster) -> None:
    """By the class of the request: `gpu` is one by its name, `nic` is none."""
    async with cluster() as stage:
        await stage.device_class("gpu")
        await stage.device_class("nic")
        await stage.make_template("two", wants(count=2))
        await stage.make_template("free", wants(device_class="nic", count=4))
        await stage.node("n0", *(f"gpu-{each}" for each in range(10)))
        await queue(stage, "a", gpus(limit=3))
        for name in ("one", "other"):
            await claiming(stage, name, "two")
        await claiming(stage, "nics", "free")
        await stage.bound("one", "nics")
        await stage.refused("other", "2 GPUs wanted, 2 in use, by pod default/one (2)")


async def claiming(stage: Stage, name: str, template: str, queue: str = "a") -> None:
    container = {"name": "main", "image": "example.com/image:1"}
    spec = {
        "containers": [container],
        "resourceClaims": [from_template(template)],
        "terminationGracePeriodSeconds": 0,
    }
    metadata = {"name": name, "labels": {"kai.scheduler/queue": queue}}
    await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})


async def test_limits_of_processors_and_memory_hold_too(cluster: Cluster) -> None:
    """Processors are given in thousandths, memory in megabytes."""
    async with cluster() as stage:
        await nodes(stage)
        bounds = {"cpu": {"quota": -1, "limit": 2000}, "memory": {"quota": -1, "limit": 1000}}
        await queue(stage, "a", gpus(resources=bounds))
        await pod(stage, "one", "a", requests={"cpu": "1500m"})
        await stage.bound("one")
        await pod(stage, "two", "a", requests={"cpu": "1"})
        await stage.refused("two", "Queue a has a limit of 2: 1 cpu wanted, 1.5 in use")
        await pod(stage, "three", "a", requests={"memory": "2G"})
        await stage.refused("three", "Queue a has a limit of 1G: 2G memory wanted, 0 in use.")


async def test_queues_share_what_comes_free_by_weight(cluster: Cluster) -> None:
    """Of eight GPUs that come free at once, weights of 1 and 3 give 2 and 6, whichever pods came first."""
    async with cluster() as stage:
        await queue(stage, "a", gpus(weight=1))
        await queue(stage, "b", gpus(weight=3))
        for index in range(8):
            await pod(stage, f"a{index}", "a")
        for index in range(8):
            await pod(stage, f"b{index}", "b")
        await stage.refused("b7", "NoNodes")
        await nodes(stage)
        assert await running(stage, 8) == {"a": 2, "b": 6}


async def running(stage: Stage, pods: int, **of_letters: int) -> dict[str, int]:
    """Waits until so many pods have nodes, and so many of some letters; returns how many that are, by the first letter of their names."""

    async def read() -> Counter[str]:
        listed = (await stage.client.list(PODS, NAMESPACE)).items
        return Counter(each.metadata.name[0] for each in listed if each.spec.node_name)

    def is_so(counts: Counter[str]) -> bool:
        return counts.total() == pods and all(counts[k] == n for k, n in of_letters.items())

    return dict(await eventually(read, is_so))


async def fill(stage: Stage, letter: str, queue: str, pods: int, **fields: Any) -> list[str]:
    """Pods with a GPU each that run, one after the other, so that the last is the youngest."""
    names = [f"{letter}{index}" for index in range(pods)]
    for name in names:
        await pod(stage, name, queue, **fields)
        await stage.bound(name)
    return names


async def test_a_queue_gets_its_quota_back_and_not_more(cluster: Cluster) -> None:
    """A queue with nothing of its quota takes it from one that is beyond its own; no further than the quota of that one."""
    async with cluster() as stage:
        await nodes(stage)
        await queue(stage, "a", gpus(quota=5, weight=0))
        await queue(stage, "b", gpus(quota=3, weight=0))
        await fill(stage, "b", "b", 8)
        for index in range(7):
            await pod(stage, f"a{index}", "a")
        assert await running(stage, 8, a=5) == {"a": 5, "b": 3}
        await stage.refused("a6", "NodesFull")
        await stage.until_event("Preempted")


async def test_surplus_goes_by_weight_and_is_reclaimed_by_weight(cluster: Cluster) -> None:
    """Weights of 1 and 3 are 2 and 6 of eight GPUs, also if the first queue had all of them before."""
    async with cluster() as stage:
        await nodes(stage)
        await queue(stage, "a", gpus(weight=1))
        await queue(stage, "b", gpus(weight=3))
        await fill(stage, "a", "a", 8)
        for index in range(8):
            await pod(stage, f"b{index}", "b")
        # Pods that were evicted do not come back here, and with them goes what their queue wants.
        assert (await running(stage, 8, b=6))["b"] == 6
        await stage.refused("b7", "NodesFull")


async def test_a_gang_reclaims_whole_nodes_for_all_its_pods(cluster: Cluster) -> None:
    """It starts as one; the pods of its own queue, and those that are not preemptible, stay."""
    async with cluster() as stage:
        await nodes(stage, 4, each=2)
        await queue(stage, "a", gpus(quota=5))
        await queue(stage, "b", gpus(quota=1))
        await fill(stage, "a", "a", 1)
        firm = await group(stage, "f", "b", 1, group={"preemptibility": "non-preemptible"})
        await stage.bound(*firm)
        await fill(stage, "b", "b", 6)
        names = await group(stage, "a-gang", "a", pods=2, number=2)
        await stage.bound(*names)
        assert await running(stage, 6, b=2) == {"a": 3, "f": 1, "b": 2}


async def test_within_a_queue_priority_decides_and_never_across(cluster: Cluster) -> None:
    """A pod that is more important takes the place of one of its own queue, and not that of a queue within its share."""
    async with cluster() as stage:
        await priorities(stage)
        await nodes(stage, each=4)
        await queue(stage, "a", gpus(quota=2))
        await queue(stage, "b", gpus(quota=2))
        await fill(stage, "a", "a", 2, priorityClassName="low")
        await fill(stage, "b", "b", 2, priorityClassName="low")
        await pod(stage, "c0", "a", priorityClassName="high")
        await stage.bound("c0")
        assert await running(stage, 4, c=1) == {"a": 1, "b": 2, "c": 1}


async def test_a_limit_makes_room_within_the_queue(cluster: Cluster) -> None:
    """Where the limit is what keeps more important work out, less important work of the queue goes, though nodes have room."""
    async with cluster() as stage:
        await priorities(stage)
        await nodes(stage)
        await queue(stage, "a", gpus(quota=1, limit=2))
        await fill(stage, "a", "a", 2, priorityClassName="low")
        names = await group(stage, "c", "a", pods=2, priorityClassName="high")
        await stage.bound(*names)
        await pod(stage, "d0", "a", priorityClassName="high")
        await stage.refused("d0", "OverLimit")


async def test_work_that_has_just_begun_is_not_reclaimed(cluster: Cluster) -> None:
    """`reclaimMinRuntime` of the queue that would have to give."""
    async with cluster() as stage:
        await nodes(stage, each=2)
        await queue(stage, "a", gpus(quota=2))
        await queue(stage, "b", gpus(reclaimMinRuntime="1h"))
        await fill(stage, "b", "b", 2)
        await pod(stage, "a0", "a")
        await stage.refused("a0", "NodesFull")
        await stage.keeps_waiting("a0")
        await stage.patch(QUEUES, "b", {"spec": {"reclaimMinRuntime": "0s"}})
        await stage.bound("a0")


async def priorities(stage: Stage) -> None:
    classes = generic("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False)
    for name, value in (("low", 10), ("high", 50)):
        await stage.create(classes, {"metadata": {"name": name}, "value": value})


async def share(stage: Stage, name: str, queue: str, **annotations: str) -> None:
    """A pod for KAI's scheduler with annotations that ask for a share of a GPU; underscores stand for hyphens."""
    given = {key.replace("_", "-"): value for key, value in annotations.items()}
    labels = {"kai.scheduler/queue": queue}
    container = {"name": "main", "image": "example.com/image:1"}
    spec = {"containers": [container], "schedulerName": "kai-scheduler"}
    metadata = {"name": name, "labels": labels, "annotations": given}
    await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})


def shared(name: str) -> JsonObject:
    """A GPU of 80 GiB that claims share."""
    memory = {"value": "80Gi", "requestPolicy": {"default": "80Gi"}}
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": memory}}


async def test_shares_of_gpus_are_charged_as_fractions(cluster: Cluster) -> None:
    """Two halves are one GPU of the queue and of the cluster; the name of KAI's scheduler is served."""
    async with cluster() as stage:
        await stage.device_class("gpu.example.com", 'device.driver == "gpu.example.com"')
        await stage.node("n0", shared("gpu-0"), shared("gpu-1"))
        await queue(stage, "a", gpus(limit=1))
        await share(stage, "one", "a", gpu_fraction="0.5")
        await share(stage, "two", "a", gpu_memory="40960")
        await stage.bound("one", "two")
        claims = (await stage.client.list(RESOURCE_CLAIMS, NAMESPACE)).items
        held = [
            (r.device, str(r.consumed_capacity["memory"])) for c in claims for r in c.status.results
        ]
        assert held == [("gpu-0", "40Gi"), ("gpu-0", "40Gi")]
        await share(stage, "three", "a", gpu_fraction="0.25")
        await stage.refused(
            "three", "OverLimit (not now): Queue a has a limit of 1: 0.25 GPUs wanted, 1 in use"
        )
        await stage.remove(POD_VALUES, "one")
        await stage.bound("three")


async def test_a_wrong_or_unserved_share_waits_with_its_annotation(cluster: Cluster) -> None:
    """Nothing starts without the GPU that it asks for. A class that is created later serves it, and so does a corrected value."""
    async with cluster() as stage:
        await stage.node("n0", shared("gpu-0"))
        await queue(stage, "a", gpus())
        await share(stage, "wrong", "a", gpu_fraction="1.5")
        await share(stage, "early", "a", gpu_memory="1024")
        await stage.refused(
            "wrong", "ClaimInvalid (never): Annotation gpu-fraction must be a number"
        )
        await stage.refused(
            "early", "NoSuchDevice (never): Annotation gpu-memory asks for a share of a GPU"
        )
        await stage.device_class("gpu.example.com", 'device.driver == "gpu.example.com"')
        await stage.bound("early")
        corrected = {"metadata": {"annotations": {"gpu-fraction": "0.5"}}}
        await stage.patch(POD_VALUES, "wrong", corrected)
        await stage.bound("wrong")

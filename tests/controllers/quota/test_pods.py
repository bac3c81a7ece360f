"""Pods in queues, alone, in groups and of sets (cases G7 to G12 of the specification), through the API."""

from __future__ import annotations

from typing import Any

from controllers.quota.waiting_room import (
    CLASS,
    CLASSES,
    FLAVORS,
    QUEUE,
    WORKLOADS,
    Room,
    admitted,
    has,
    pod,
    waiting,
    waiting_room,
)
from controllers.workloads.stage import NAMESPACE
from drayman.api.workloads import Deployment, StatefulSet
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import EVENTS, PODS, typed
from drayman.workloads.queued.pods import is_gated

GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
DEPLOYMENTS, STATEFUL_SETS = typed(Deployment), typed(StatefulSet)


def free(found: Any) -> bool:
    return not is_gated(found)


async def member(room: Room, name: str, total: int = 2, **more: Any) -> None:
    """Creates a pod of a group."""
    annotations = {TOTAL: str(total)} | more.pop("annotations", {})
    labels = {GROUP: "group"} | more.pop("labels", {})
    await room.place.create(PODS, pod(name, labels=labels, annotations=annotations, **more))


async def end(room: Room, name: str, phase: str = "Succeeded") -> None:
    await room.place.set_phase(await room.place.get(PODS, name), phase)


async def test_a_pod_waits_behind_its_gate_and_starts_with_what_the_flavor_says() -> None:
    """It is marked, held and counted; when it has ended, its quota is free and nothing holds it any more."""
    async with waiting_room() as room:
        await room.place.patch(FLAVORS, "standard", {"spec": {"nodeLabels": {"kind": "std"}}})
        await room.queue(cpu=1)
        await room.place.create(PODS, pod("a"))
        await room.place.create(PODS, pod("b"))
        started = await room.place.until_one(PODS, "a", free)
        assert started.spec.node_selector == {"kind": "std"}
        assert started.metadata.labels["kueue.x-k8s.io/managed"] == "true"
        await room.workload(waiting("WaitingForQuota"), "b")
        assert is_gated(await room.place.get(PODS, "b"))
        await end(room, "a")
        await room.workload(has("Finished", "True", "Succeeded"), "a")
        await room.place.until_one(PODS, "a", lambda found: not found.metadata.finalizers)
        await room.place.until_one(PODS, "b", free)


async def test_an_evicted_pod_is_deleted_and_its_workload_goes_with_it() -> None:
    """It cannot be held again, so whoever made it has to make another."""
    async with waiting_room() as room:
        await room.place.create(CLASSES, {"metadata": {"name": "high"}, "value": 10})
        await room.queue(cpu=1, preemption={"withinClusterQueue": "LowerPriority"})
        await room.place.create(PODS, pod("low"))
        await room.place.until_one(PODS, "low", free)
        await room.place.create(PODS, pod("high", labels={CLASS: "high"}))
        await room.place.until_one(PODS, "high", free)
        await room.no_workload("low")
        assert [each.metadata.name for each in await room.place.pods()] == ["high"]


async def test_a_pod_that_waits_may_change_its_queue() -> None:
    """As a suspended Job may: its Workload follows, and the pod starts. Without the label it stays where it is."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.place.create(PODS, pod("a", queue="nowhere"))
        await room.workload(waiting("Misconfigured"), "a")
        await room.place.patch(PODS, "a", {"metadata": {"labels": {QUEUE: None}}})
        await room.place.patch(PODS, "a", {"metadata": {"labels": {QUEUE: "q"}}})
        await room.place.until_one(PODS, "a", free)
        assert (await room.workload(admitted, "a")).spec.queue_name == "q"


async def test_a_group_that_waits_changes_its_queue_with_its_last_pod() -> None:
    """As long as its pods disagree, its Workload stays where it is."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        for name in ("a", "b"):
            await member(room, name, queue="nowhere")
        await room.workload(waiting("Misconfigured"))
        for name in ("a", "b"):
            await room.place.patch(PODS, name, {"metadata": {"labels": {QUEUE: "q"}}})
        for name in ("a", "b"):
            await room.place.until_one(PODS, name, free)


async def test_a_gate_that_somebody_removes_does_not_help() -> None:
    """A pod that runs without quota is deleted."""
    async with waiting_room() as room:
        await room.queue(cpu=0)
        await room.place.create(PODS, pod("a"))
        await room.workload(waiting("ExceedsMaxQuota"), "a")
        await room.place.patch(PODS, "a", {"spec": {"schedulingGates": None}})
        await room.pods(0)


async def test_g7_a_group_waits_until_it_is_whole() -> None:
    """One of two has no Workload, and an event says why; with the second, both start."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await member(room, "a")
        await member(room, "lone", labels={GROUP: "other"}, total=1)
        await room.workload(admitted, "other")
        await room.place.told("ErrWorkloadCompose")
        await room.no_workload("group")
        await room.place.client.delete(
            PODS, "lone", NAMESPACE, options=DeleteOptions(grace_period_seconds=0)
        )
        await member(room, "b")
        found = await room.workload(admitted, "group")
        assert found.name == "group"
        assert {owner.name for owner in found.workload.metadata.owner_references} == {"a", "b"}
        await room.place.until(PODS, lambda pods: [free(each) for each in pods] == [True, True])


async def test_a_group_whose_name_no_object_can_have() -> None:
    """A label may have capitals and underscores, a Workload may not: an event of the pod has the reason."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await member(room, "a", labels={GROUP: "My_Group"}, total=1)
        await room.place.told("ErrWorkloadCompose")
        notes = [each["note"] for each in (await room.place.client.list(EVENTS, NAMESPACE)).items]
        assert any("My_Group" in note and "lowercase RFC 1123" in note for note in notes), notes


async def test_g8_a_group_with_fast_admission_starts_with_its_first_pod() -> None:
    """Quota is reserved for all of them, and the second starts when it comes."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        fast = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
        await member(room, "a", annotations=fast)
        found = await room.workload(admitted, "group")
        assert found.status.admission.pod_set_assignments[0].count == 2
        await room.place.until_one(PODS, "a", free)
        await member(room, "b", annotations=fast)
        await room.place.until_one(PODS, "b", free)


async def test_g9_members_that_disagree_get_nothing() -> None:
    """No Workload, and an event."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await member(room, "a")
        await member(room, "b", total=3)
        await member(room, "witness", labels={GROUP: "witness"}, total=1)
        await room.workload(admitted, "witness")
        await room.no_workload("group")


async def test_g10_a_group_ends_with_its_pods() -> None:
    """All succeeded, or one failed that must not be retried and none runs."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        for name in ("a", "b"):
            await member(room, name)
        await room.place.until(PODS, lambda pods: len(pods) == 2 and all(map(free, pods)))
        await end(room, "a")
        await end(room, "b")
        found = await room.workload(has("Finished", "True", "Succeeded"), "group")
        assert found.status.condition("Finished").message == "Pods succeeded: 2/2."
        await room.place.until(PODS, lambda pods: not any(p.metadata.finalizers for p in pods))
    async with waiting_room() as room:
        await room.queue(cpu=2)
        final = {"kueue.x-k8s.io/retriable-in-group": "false"}
        for name in ("a", "b"):
            await member(room, name, annotations=final)
        await room.place.until(PODS, lambda pods: len(pods) == 2 and all(map(free, pods)))
        await end(room, "a")
        await end(room, "b", "Failed")
        await room.workload(has("Finished", "True", "Failed"), "group")


async def test_g11_a_failed_member_is_replaced_and_a_surplus_one_deleted() -> None:
    """The Workload stays, says that it waits, and lets the replacement go at once; a third pod is too many."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        for name in ("a", "b"):
            await member(room, name)
        before = await room.workload(admitted, "group")
        await room.place.until(PODS, lambda pods: len(pods) == 2 and all(map(free, pods)))
        await end(room, "b", "Failed")
        await room.workload(has("WaitingForReplacementPods", "True", "PodsFailed"), "group")
        await member(room, "c")
        await room.place.until_one(PODS, "c", free)
        after = await room.workload(
            has("WaitingForReplacementPods", "False", "PodsAvailable"), "group"
        )
        assert after.workload.metadata.uid == before.workload.metadata.uid
        await member(room, "d")
        await room.place.until(
            PODS, lambda pods: "d" not in [p.metadata.name for p in pods] and len(pods) >= 2
        )


async def test_g12_a_workload_of_somebody_else_with_the_name_of_the_group() -> None:
    """It is neither taken over nor deleted nor finished, and the pods wait."""
    async with waiting_room() as room:
        await room.queue(cpu=5)
        container = {"name": "c", "image": "i"}
        spec = {
            "queueName": "q",
            "podSets": [{"count": 1, "template": {"spec": {"containers": [container]}}}],
        }
        await room.place.create(WORKLOADS, {"metadata": {"name": "group"}, "spec": spec})
        foreign = await room.workload(admitted, "group")
        for name in ("a", "b"):
            await member(room, name)
        await member(room, "witness", labels={GROUP: "witness"}, total=1)
        await room.workload(admitted, "witness")
        assert all(is_gated(each) for each in await room.place.pods() if each.metadata.name in "ab")
        still = await room.workload(lambda _: True, "group")
        assert still.workload.metadata.uid == foreign.workload.metadata.uid
        assert still.workload.metadata.owner_references == ()


async def test_an_evicted_group_is_deleted_and_its_quota_is_free() -> None:
    """Pods of a group go together."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        for name in ("a", "b"):
            await member(room, name)
        await room.place.until(PODS, lambda pods: len(pods) == 2 and all(map(free, pods)))
        await room.place.patch(WORKLOADS, "group", {"spec": {"active": False}})
        await room.pods(0)
        await room.no_workload("group")


async def test_the_pods_of_a_deployment_wait_one_by_one() -> None:
    """Its template gets the queue; two of three have quota, and the third when one goes."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        made = pod("web")
        spec = made["spec"] | {"restartPolicy": "Always"}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
        body = {
            "metadata": made["metadata"],
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template,
            },
        }
        await room.place.create(DEPLOYMENTS, body)
        await room.place.until(PODS, lambda pods: sorted(map(free, pods)) == [False, True, True])
        assert all(each.metadata.labels[QUEUE] == "q" for each in await room.place.pods())
        await room.place.scale(DEPLOYMENTS, "web", 2)
        await room.place.until(PODS, lambda pods: [free(each) for each in pods] == [True, True])


async def test_the_pods_of_a_stateful_set_are_a_group() -> None:
    """Quota for all of them is reserved with the first; they are started one after the other as such a set does it."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        made = pod("db")
        spec = made["spec"] | {"restartPolicy": "Always"}
        template = {"metadata": {"labels": {"app": "db"}}, "spec": spec}
        body = {
            "metadata": made["metadata"],
            "spec": {
                "replicas": 2,
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": template,
            },
        }
        await room.place.create(STATEFUL_SETS, body)
        first = await room.place.until_one(PODS, "db-0", free)
        group = first.metadata.labels[GROUP]
        assert group.startswith("statefulset-db-")
        found = await room.workload(admitted, group)
        assert found.status.admission.pod_set_assignments[0].count == 2
        await room.place.run_pod(first)
        await room.place.until_one(PODS, "db-1", free)

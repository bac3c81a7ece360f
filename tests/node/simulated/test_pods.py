"""Pods on simulated nodes go through the phases that a kubelet takes them through."""

from __future__ import annotations

import asyncio

from drayman.api.struct import Json
from drayman.cluster import DeleteOptions, merge_patch
from drayman.cluster.resources import PODS
from node.simulated.world import NAMESPACE, NODE_VALUES, POD_VALUES, connected, simulated, world


def conditions(pod: dict[str, Json]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in pod["status"]["conditions"]}


async def test_a_pod_runs() -> None:
    """It gets addresses, a start time, running containers, and is ready."""
    async with world() as w:
        await w.pod("p", "example-0")
        pod = await w.until_phase("p", "Running")
        status = pod["status"]
        assert status["podIP"]
        assert status["hostIP"]
        assert status["startTime"]
        (container,) = status["containerStatuses"]
        assert container["ready"]
        assert container["started"]
        assert "running" in container["state"]
        holds = conditions(pod)
        assert all(holds[kind] == "True" for kind in ("Ready", "ContainersReady", "Initialized"))


async def test_a_pod_ends_when_its_time_has_passed() -> None:
    """`drayman.dev/run-for` ends it in success, and its Ready condition says that it has completed."""
    async with world() as w:
        await w.pod(
            "p", "example-0", annotations={"drayman.dev/run-for": "20ms"}, restartPolicy="Never"
        )
        pod = await w.until_phase("p", "Succeeded")
        (container,) = pod["status"]["containerStatuses"]
        assert container["state"]["terminated"]["exitCode"] == 0
        ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")


async def test_an_exit_code_makes_a_pod_fail() -> None:
    """`drayman.dev/exit-code` is what the containers end with."""
    async with world() as w:
        wishes = {"drayman.dev/run-for": "10ms", "drayman.dev/exit-code": "3"}
        await w.pod("p", "example-0", annotations=wishes, restartPolicy="Never")
        pod = await w.until_phase("p", "Failed")
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


async def test_containers_that_fail_are_started_again() -> None:
    """With restart policy OnFailure they run again, and the restarts are counted."""
    async with world() as w:
        wishes = {"drayman.dev/run-for": "10ms", "drayman.dev/exit-code": "1"}
        await w.pod("p", "example-0", annotations=wishes, restartPolicy="OnFailure")
        pod = await w.until(
            POD_VALUES,
            "p",
            lambda pod: any(
                c["restartCount"] >= 2 and "running" in c["state"]
                for c in pod["status"].get("containerStatuses", ())
            ),
        )
        assert pod["status"]["phase"] == "Running"
        last = pod["status"]["containerStatuses"][0]["lastState"]
        assert last["terminated"]["exitCode"] == 1


async def test_readiness_can_come_later() -> None:
    """With `drayman.dev/ready-after` a pod runs before it is ready."""
    async with world() as w:
        await w.pod("p", "example-0", annotations={"drayman.dev/ready-after": "50ms"})
        pod = await w.until_phase("p", "Running")
        assert conditions(pod)["Ready"] == "False"
        await w.until(POD_VALUES, "p", lambda pod: conditions(pod).get("Ready") == "True")


async def test_init_containers_end_before_the_others_start() -> None:
    """While they run the pod is not initialised; then they have ended, sidecars apart."""
    async with world() as w:
        inits = [
            {"name": "side", "image": "busybox", "restartPolicy": "Always"},
            {"name": "init", "image": "busybox"},
        ]
        await w.pod("p", "example-0", initContainers=inits)
        pod = await w.until(POD_VALUES, "p", lambda pod: "initContainerStatuses" in pod["status"])
        assert conditions(pod)["Initialized"] == "False"
        pod = await w.until_phase("p", "Running")
        side, init = pod["status"]["initContainerStatuses"]
        assert "running" in side["state"]
        assert init["state"]["terminated"]["exitCode"] == 0


async def test_a_wrong_annotation_is_told() -> None:
    """A duration that is none is reported as an event, and the pod runs without it."""
    async with world() as w:
        await w.pod("p", "example-0", annotations={"drayman.dev/run-for": "soon"})
        event = await w.event("FailedSimulation")
        assert "'soon' is not a duration" in event["note"]
        await w.until_phase("p", "Running")


async def test_a_deleted_pod_goes() -> None:
    """Its containers are stopped and it is removed within its grace period."""
    async with world() as w:
        await w.pod("p", "example-0")
        await w.until_phase("p", "Running")
        await w.client.delete(PODS, "p", NAMESPACE)
        await w.until_gone("p")


async def test_a_pod_with_a_finalizer_is_reported_as_ended() -> None:
    """Whoever holds it back sees that it has failed: a pod that was stopped did not succeed."""
    async with world() as w:
        await w.pod("p", "example-0")
        await w.until_phase("p", "Running")
        hold = merge_patch({"metadata": {"finalizers": ["example.com/hold"]}})
        await w.client.patch(POD_VALUES, "p", hold, NAMESPACE)
        await w.client.delete(PODS, "p", NAMESPACE)
        pod = await w.until_phase("p", "Failed")
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
        release = merge_patch({"metadata": {"finalizers": None}})
        await w.client.patch(POD_VALUES, "p", release, NAMESPACE)
        await w.until_gone("p")


async def test_other_nodes_are_left_alone() -> None:
    """A pod on a node that is not simulated stays as it is while others run."""
    async with world() as w:
        await w.client.create(NODE_VALUES, {"metadata": {"name": "real"}})
        await w.pod("other", "real")
        await w.pod("p", "example-0")
        await w.until_phase("p", "Running")
        other = await w.client.get(POD_VALUES, "other", NAMESPACE)
        assert other["status"]["phase"] == "Pending"
        assert "containerStatuses" not in other["status"]


async def test_running_pods_go_on_after_a_restart() -> None:
    """A second process takes over what the first left: a pod keeps its start time and ends when it should."""
    async with connected() as client:
        async with simulated(client) as w:
            await w.pod(
                "p", "example-0", annotations={"drayman.dev/run-for": "1s"}, restartPolicy="Never"
            )
            before = await w.until_phase("p", "Running")
        async with simulated(client) as w:
            after = await w.until_phase("p", "Succeeded")
            assert after["status"]["startTime"] == before["status"]["startTime"]


async def test_force_deletion_leaves_nothing_behind() -> None:
    """A pod that is removed at once is forgotten by its node."""
    async with world() as w:
        await w.pod("p", "example-0")
        await w.until_phase("p", "Running")
        await w.client.delete(PODS, "p", NAMESPACE, options=DeleteOptions(grace_period_seconds=0))
        while w.nodes.pods:
            await asyncio.sleep(0.01)

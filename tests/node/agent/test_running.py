"""Pods on a real node: the API server, the agent, the driver and the processes are all real."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from drayman.cluster import merge_patch
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import CONFIG_MAPS, NODES, PODS, SERVICE_ACCOUNTS, JsonObject
from drayman.node.agent.processes.attempts import may_mount
from drayman.node.agent.running import AtEnd, NodeAgent
from node.agent.world import NAMESPACE, NODE, container, is_up, logs, world
from patience import PATIENCE_S

NAMED_CLAIM = [{"name": "gpu", "resourceClaimName": "c"}]
USES_CLAIM = {"resources": {"claims": [{"name": "gpu"}]}}


async def test_a_pod_ends_and_reports_how() -> None:
    """Init containers run first, exit codes are reported, and the pod stays until it is deleted."""
    async with world() as here, here.agent() as agent:
        node = await here.client.get(NODES.as_values(), NODE)
        assert node["status"]["capacity"]["pods"] == "110"
        pod = await here.pod(
            "p",
            container("echo second; exit 3"),
            initContainers=[container("echo first", "init")],
        )
        failed = await here.phase("p", "Failed")
        status = failed["status"]
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (3, "Error")
        assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert logs(agent, pod, "init") == ["first"]
        assert logs(agent, pod) == ["second"]
        await here.client.delete(PODS, "p", NAMESPACE, options=DeleteOptions())
        await here.gone("p")


async def test_devices_come_before_containers_and_go_after_them() -> None:
    """A container sees what CDI adds for its claim; nothing is prepared when the pod is gone. Two pods can share a claim."""
    async with world() as here, here.agent() as agent:
        pods = [
            await here.pod(
                name,
                container("env; trap 'exit 0' TERM; while :; do sleep 0.05; done", **USES_CLAIM),
                resourceClaims=NAMED_CLAIM,
            )
            for name in ("p", "q")
        ]
        first = await here.until("p", lambda pod: pod["status"].get("containerStatuses"))
        assert first["status"]["phase"] == "Pending"
        async with here.plugin():
            uid = await here.claim("c", "gpu-0", *(pod["metadata"]["uid"] for pod in pods))
            for pod in pods:
                await here.phase(pod["metadata"]["name"], "Running")
            assert [held.uid for held in agent.claims.held] == [uid]
            for pod in pods:
                while not any("GPU_DEVICE" in line for line in logs(agent, pod)):
                    await asyncio.sleep(0.02)
            await here.client.delete(PODS, "p", NAMESPACE)
            await here.gone("p")
            assert len(agent.claims.held) == 1
            await here.client.delete(PODS, "q", NAMESPACE)
            await here.gone("q")
            assert agent.claims.held == ()
            assert not list(here.options.cdi_dir.iterdir())
        assert await here.events("FailedPrepareDynamicResources")


async def test_a_container_has_a_signal_of_its_own_for_its_end() -> None:
    """It gets that, and no other before its time is up."""
    script = "trap 'exit 7' USR1; trap 'exit 8' TERM; echo up; while :; do sleep 0.02; done"
    async with world() as here, here.agent():
        signalled = container(script, lifecycle={"stopSignal": "SIGUSR1"})
        pod = await here.pod(
            "p", signalled, os={"name": "linux"}, terminationGracePeriodSeconds=int(PATIENCE_S)
        )
        await is_up(here, pod)
        too_late = merge_patch({"spec": {"activeDeadlineSeconds": 1}})
        await here.client.patch(PODS, "p", too_late, NAMESPACE)
        found = await here.phase("p", "Failed")
        (main,) = found["status"]["containerStatuses"]
        assert main["state"]["terminated"]["exitCode"] == 7


async def test_an_agent_finds_what_another_left() -> None:
    """Containers run on without an agent. The next one does not start them again, and ends what was deleted meanwhile."""
    script = "echo up; while :; do sleep 0.05; done"
    async with world() as here, here.plugin():
        async with here.agent() as agent:
            stays = await here.pod("stays", container(script))
            goes = await here.pod(
                "goes", container(script, **USES_CLAIM), resourceClaims=NAMED_CLAIM
            )
            await here.claim("c", "gpu-0", goes["metadata"]["uid"])
            await here.phase("stays", "Running")
            await here.phase("goes", "Running")
            before = agent.workers[stays["metadata"]["uid"]].containers.attempt("main")
            assert before is not None
            pid = before.pid
        force = DeleteOptions(grace_period_seconds=0)
        await here.client.delete(PODS, "goes", NAMESPACE, options=force)
        async with here.agent() as agent:
            while agent.claims.held or len(agent.workers) > 1:
                await asyncio.sleep(0.02)
            after = agent.workers[stays["metadata"]["uid"]].containers.attempt("main")
            assert after is not None
            assert (after.number, after.pid) == (0, pid)
            await here.client.delete(PODS, "stays", NAMESPACE, options=DeleteOptions())
            while agent.workers:
                await asyncio.sleep(0.02)
        assert not list(here.options.pods_dir.iterdir())


@pytest.mark.skipif(not may_mount(), reason="this machine permits no mount namespaces")
async def test_volumes_and_variables() -> None:
    """Files and variables come from the objects that the pod names; a missing one is named and awaited."""
    script = "cat /nowhere/config/key /nowhere/about/name /nowhere/token/token; echo; echo $WORD $POD $BOTH"
    mounts = [
        {"name": "config", "mountPath": "/nowhere/config"},
        {"name": "about", "mountPath": "/nowhere/about"},
        {"name": "token", "mountPath": "/nowhere/token"},
    ]
    reference = {"configMapKeyRef": {"name": "m", "key": "word"}}
    env = [
        {"name": "WORD", "valueFrom": reference},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "BOTH", "value": "$(WORD)-$(POD)-$$(POD)"},
    ]
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "config", "configMap": {"name": "m"}},
        {"name": "about", "downwardAPI": {"items": [name]}},
        {
            "name": "token",
            "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
        },
    ]
    async with world() as here, here.agent() as agent:
        account = {"metadata": {"name": "default"}}
        await here.client.create(SERVICE_ACCOUNTS.as_values(), account, NAMESPACE)
        pod = await here.pod(
            "p",
            container(script, volumeMounts=mounts, env=env),
            volumes=volumes,
            serviceAccountName="default",
        )
        waiting = await here.until("p", lambda pod: _waiting(pod).get("message"))
        assert _waiting(waiting) == {
            "reason": "CreateContainerConfigError",
            "message": 'configmap "m" not found',
        }
        data = {"key": "from the map\n", "word": "hello"}
        await here.client.create(CONFIG_MAPS, {"metadata": {"name": "m"}, "data": data}, NAMESPACE)
        await here.phase("p", "Succeeded")
        lines = logs(agent, pod)
        assert lines[0] == "from the map"
        assert lines[1].startswith("p")
        assert lines[1].count(".") == 2, "a token follows the name"
        assert lines[2] == "hello p hello-p-$(POD)"


def _waiting(pod: dict) -> dict:  # type: ignore[type-arg]
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    found: dict[str, str] = statuses[0]["state"].get("waiting", {})
    return found


async def test_an_image_without_a_meaning_is_refused() -> None:
    """The container says why, and nothing is started."""
    async with world() as here, here.agent():
        await here.pod("p", {"name": "main", "image": "nginx:1", "command": ["true"]})
        found = await here.until("p", lambda pod: _waiting(pod).get("message"))
        assert _waiting(found)["reason"] == "ErrImageNeverPull"
        assert _waiting(found)["message"].startswith("image nginx:1 means nothing on this node")


async def test_a_container_is_restarted() -> None:
    """At once the first time, and then only after a while, which the status says."""
    async with world() as here, here.agent():
        await here.pod("p", container("exit 1"), restartPolicy="Always")
        found = await here.until("p", lambda pod: _waiting(pod).get("reason") == "CrashLoopBackOff")
        status = found["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.gone("p")


async def test_a_container_that_ended_with_its_node_is_started_at_once() -> None:
    """It has not crashed, however often its node was started anew; as after a kubelet's machine was switched off."""
    async with world() as here:
        await here.pod("p", container("sleep 1000"), restartPolicy="Always")
        for times in range(3):

            def is_decided(pod: JsonObject, times: int = times) -> bool:
                status = (pod["status"].get("containerStatuses") or [{}])[0]
                is_back = status.get("restartCount") == times and "running" in status["state"]
                return is_back or _waiting(pod).get("reason") == "CrashLoopBackOff"

            async with NodeAgent(here.client, replace(here.options, at_end=AtEnd.KILL)):
                assert not _waiting(await here.until("p", is_decided))


async def test_a_node_that_is_simulated_is_left_alone() -> None:
    """A real node does not take over the name of a simulated one."""
    async with world() as here:
        await here.cluster.add_node(NODE)
        labels = {"metadata": {"labels": {"drayman.dev/simulated": "true"}}}
        await here.client.patch(NODES, NODE, merge_patch(labels))
        with pytest.raises(Exception, match="node node-1 is simulated"):
            async with here.agent():
                pass


async def test_a_clock_that_is_set_back_delays_no_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod whose ConfigMap comes late starts soon after, although the clock of the machine was set back by a day in between."""
    async with world() as here, here.agent():
        volume = {"name": "v", "configMap": {"name": "late"}}
        container = {"name": "main", "image": "host", "command": ["true"]}
        await here.pod("p", container, volumes=[volume])
        await here.notes("Failed")
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() - 86_400)
        await here.client.create(
            CONFIG_MAPS, {"metadata": {"name": "late"}, "data": {"a": "b"}}, NAMESPACE
        )
        await here.phase("p", "Succeeded")

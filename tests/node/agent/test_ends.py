"""How pods end: what is reported of them, how long their containers have, and that somebody else may end them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from drayman.cluster import merge_patch
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import PODS, JsonObject
from drayman.node.agent import stopping
from node.agent.world import NAMESPACE, World, container, is_up, logs, world
from patience import PATIENCE_S

_PODS = PODS.as_values()
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.05; done"
KEPT = {"finalizers": ["example.com/look"]}
"""So that the pod can be looked at when its node has done with it."""


async def let_go(here: World) -> None:
    patch = merge_patch({"metadata": {"finalizers": None}})
    await here.client.patch(_PODS, "p", patch, NAMESPACE)
    await here.gone("p")


async def keep(here: World) -> None:
    await here.client.patch(_PODS, "p", merge_patch({"metadata": KEPT}), NAMESPACE)


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
async def test_a_deleted_pod_ends_as_its_containers_do(code: int, phase: str) -> None:
    """One that puts its work away in time has succeeded, whatever its restart policy."""
    script = f"trap 'exit {code}' TERM; echo up; while :; do sleep 0.02; done"
    async with world() as here, here.agent():
        value = await here.pod("p", container(script), restartPolicy="Always")
        await is_up(here, value)
        await keep(here)
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.phase("p", phase)
        await let_go(here)


async def test_a_container_is_told_to_end_though_its_hook_took_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has a while from then on, as with a kubelet."""
    assert stopping.LEAST_S == 2.0
    monkeypatch.setattr(stopping, "LEAST_S", PATIENCE_S)
    script = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    hook = {"preStop": {"sleep": {"seconds": 1}}}
    async with world() as here, here.agent() as agent:
        value = await here.pod(
            "p", container(script, lifecycle=hook), terminationGracePeriodSeconds=1
        )
        await is_up(here, value)
        await keep(here)
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.phase("p", "Succeeded")
        assert "told" in logs(agent, value)
        await let_go(here)


async def test_a_time_that_was_shortened_is_shorter_for_sidecars_too() -> None:
    """They are stopped after the others, and have what is left then."""
    sidecar = container(STUBBORN, "side", restartPolicy="Always")
    async with world() as here, here.agent():
        await here.pod(
            "p", container(STUBBORN), initContainers=[sidecar], terminationGracePeriodSeconds=600
        )
        await here.phase("p", "Running")
        await here.client.delete(PODS, "p", NAMESPACE)
        options = DeleteOptions(grace_period_seconds=1)
        await here.client.delete(PODS, "p", NAMESPACE, options=options)
        await here.gone("p")


async def test_a_pod_that_somebody_else_has_ended_is_stopped() -> None:
    """It stays as it was ended, and its devices are given back."""
    async with world() as here, here.plugin(), here.agent() as agent:
        uses = {"resources": {"claims": [{"name": "gpu"}]}}
        claims = [{"name": "gpu", "resourceClaimName": "c"}]
        pod = await here.pod("p", container("exec sleep 600", **uses), resourceClaims=claims)
        await here.claim("c", "gpu-0", pod["metadata"]["uid"])
        await here.phase("p", "Running")
        ended: JsonObject = {"phase": "Failed", "reason": "Evicted", "message": "by an operator"}
        patch = merge_patch({"status": ended})
        await here.client.patch(_PODS, "p", patch, NAMESPACE, subresource="status")
        found = await here.until("p", has_terminated)
        assert {name: found["status"].get(name) for name in ended} == ended
        async with asyncio.timeout(PATIENCE_S):
            while agent.claims.held:
                await asyncio.sleep(0.02)
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.gone("p")


def has_terminated(pod: JsonObject) -> bool:
    return all("terminated" in each["state"] for each in pod["status"]["containerStatuses"])


async def test_a_pod_whose_init_container_fails_is_not_initialized() -> None:
    """Its condition says which one it was."""
    async with world() as here, here.agent():
        await here.pod("p", container("true"), initContainers=[container("exit 1", "first")])
        found = await here.phase("p", "Failed")
        conditions: dict[str, Any] = {c["type"]: c for c in found["status"]["conditions"]}
        assert conditions["Initialized"]["status"] == "False"
        assert conditions["Initialized"]["message"] == "containers with incomplete status: [first]"


async def test_events_tell_that_containers_have_started() -> None:
    """Once for each start, and not by an agent that finds them."""
    async with world() as here:
        async with here.agent():
            await here.pod("p", container("exec sleep 600"), terminationGracePeriodSeconds=0)
            await here.phase("p", "Running")
            assert await here.notes("Started") == {"Started container main"}
        async with here.agent():
            await here.pod("q", container("true", "other"))
            await here.phase("q", "Succeeded")
            async with asyncio.timeout(PATIENCE_S):
                while len(found := await here.events("Started")) < 2:
                    await asyncio.sleep(0.02)
            assert [each.get("series") for each in found] == [None, None]
            await here.client.delete(PODS, "p", NAMESPACE)
            await here.gone("p")


async def test_events_tell_of_containers_that_cannot_be_started() -> None:
    """A program that cannot be run is a failure and no start; that it is tried again later is told, too."""
    async with world() as here, here.agent():
        await here.pod("p", container("") | {"command": ["/no/such"]}, restartPolicy="Always")
        waits = await here.until("p", lambda pod: "CrashLoopBackOff" in str(pod["status"]))
        assert await here.notes("Failed") == {"Error: /no/such: No such file or directory"}
        where = f"p_{NAMESPACE}({waits['metadata']['uid']})"
        back_off = f"Back-off restarting failed container main in pod {where}"
        assert await here.notes("BackOff") == {back_off}
        assert not await here.events("Started")


async def test_changes_that_a_node_does_nothing_about_are_named() -> None:
    """An ephemeral container counts as one that cannot be started, and a container runs on whose image was changed."""
    async with world() as here, here.agent():
        await here.pod("p", container("exec sleep 600"), terminationGracePeriodSeconds=0)
        await here.phase("p", "Running")
        values = PODS.as_values()
        patch = strategic_merge_patch(
            {"spec": {"containers": [{"name": "main", "image": "other"}]}}
        )
        await here.client.patch(values, "p", patch, NAMESPACE)
        later = "container main: it runs on, and has image other when it is next started"
        assert await here.notes("NotActedOn") == {later}
        debugger = {"name": "debugger", "image": "host", "terminationMessagePolicy": "File"}
        patch = strategic_merge_patch({"spec": {"ephemeralContainers": [debugger]}})
        await here.client.patch(values, "p", patch, NAMESPACE, subresource="ephemeralcontainers")
        found = await here.until("p", lambda pod: "ephemeralContainerStatuses" in pod["status"])
        (status,) = found["status"]["ephemeralContainerStatuses"]
        none = "this node runs no ephemeral containers"
        assert status["state"]["terminated"]["message"] == none
        async with asyncio.timeout(PATIENCE_S):
            while len(told := await here.notes("NotActedOn")) < 2:
                await asyncio.sleep(0.02)
        assert told == {later, f"ephemeral container debugger: {none}"}
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.gone("p")


async def test_fields_that_a_node_does_nothing_about_are_named() -> None:
    """The pod runs, and an event says what it does not get."""
    async with world() as here, here.agent():
        dropped = {"securityContext": {"capabilities": {"drop": ["ALL"]}}}
        await here.pod("p", container("true", **dropped))
        await here.phase("p", "Succeeded")
        assert await here.notes("NotActedOn") == {"container main: this node ignores capabilities"}

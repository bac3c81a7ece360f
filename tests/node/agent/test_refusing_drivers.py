"""Drivers that do not take devices back: what is known of pods meanwhile, and who answers to their names."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drayman.cluster import merge_patch
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import PODS, JsonObject
from drayman.drivers.example.drivers import ExampleGpuDriver
from drayman.drivers.kit.model import Claim
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.plugin import Plugin
from node.agent.test_ends import has_terminated
from node.agent.test_serving import kubectl, served
from node.agent.world import DRIVER, NAMESPACE, NODE, World, container, world
from patience import PATIENCE_S

CLAIMS = [{"name": "gpu", "resourceClaimName": "c"}]
USES = {"resources": {"claims": [{"name": "gpu"}]}}
STOPPED: JsonObject = {"phase": "Failed", "reason": "Evicted", "message": "by an operator"}


class RefusingDriver(ExampleGpuDriver):
    """Prepares, and takes nothing down before it is willing."""

    is_willing = False

    def unprepare(self, claim: Claim) -> None:
        if not self.is_willing:
            raise OSError(f"the device of {claim.name} is busy")


@asynccontextmanager
async def refusing(here: World) -> AsyncIterator[RefusingDriver]:
    driver = RefusingDriver(NODE)
    options = PluginOptions(
        plugin_dir=here.options.plugins_dir / DRIVER,
        registry_dir=here.options.registry_dir,
        cdi_dir=here.options.cdi_dir,
    )
    async with Plugin(driver, here.client, options):
        yield driver


async def claiming(here: World, main: JsonObject) -> JsonObject:
    """A pod `p` that has a device."""
    pod = await here.pod("p", main, resourceClaims=CLAIMS)
    await here.claim("c", "gpu-0", pod["metadata"]["uid"])
    return pod


def ready(pod: JsonObject) -> dict[str, Any]:
    return {each["type"]: each["status"] for each in pod["status"]["conditions"]}


@pytest.mark.parametrize(
    ("main", "want"),
    [
        (container("exit 3", **USES), (3, "Error")),
        (container("", **USES) | {"command": ["/no/such"]}, (128, "StartError")),
    ],
    ids=["a container that has failed", "a container that was never started"],
)
async def test_containers_have_ended_before_their_pod(main: JsonObject, want: object) -> None:
    """Nobody takes the pod for one that is ready, or that is over."""
    async with world() as here, refusing(here) as driver, here.agent():
        await claiming(here, main)
        found = await here.until("p", has_terminated)
        (status,) = found["status"]["containerStatuses"]
        ended = status["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == want
        assert (status["ready"], status["started"]) == (False, False)
        assert found["status"]["phase"] == "Running"
        assert (ready(found)["Ready"], ready(found)["ContainersReady"]) == ("False", "False")
        assert await here.notes("FailedUnprepareDynamicResources")
        assert (await here.until("p", has_terminated))["status"]["phase"] == "Running"
        driver.is_willing = True
        await here.phase("p", "Failed")


async def test_containers_of_a_pod_that_was_deleted_have_ended() -> None:
    """An agent that is started meanwhile goes on with it, and the pod is gone once its device is."""
    async with world() as here, refusing(here) as driver:
        async with here.agent():
            await claiming(here, container("exec sleep 600", **USES))
            await here.phase("p", "Running")
            await here.client.delete(PODS, "p", NAMESPACE)
            found = await here.until("p", has_terminated)
            assert ready(found)["Ready"] == "False"
        async with here.agent():
            assert (await here.until("p", has_terminated))["status"]["phase"] == "Running"
            driver.is_willing = True
            await here.gone("p")


async def test_a_pod_that_somebody_else_has_ended_stays_as_it_was_ended() -> None:
    """Its containers have ended, too."""
    async with world() as here, refusing(here) as driver, here.agent():
        await claiming(here, container("exec sleep 600", **USES))
        await here.phase("p", "Running")
        patch = merge_patch({"status": STOPPED})
        await here.client.patch(PODS.as_values(), "p", patch, NAMESPACE, subresource="status")
        found = await here.until("p", has_terminated)
        assert {name: found["status"].get(name) for name in STOPPED} == STOPPED
        driver.is_willing = True
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.gone("p")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_a_name_is_that_of_the_pod_that_is_there() -> None:
    """And not of one that was removed, of which the node still has a device."""
    async with world() as here, refusing(here) as driver, served(here) as agent:
        old = await claiming(here, container("echo old; exec sleep 600", **USES))
        await here.phase("p", "Running")
        force = DeleteOptions(grace_period_seconds=0)
        await here.client.delete(PODS, "p", NAMESPACE, options=force)
        assert await here.notes("FailedUnprepareDynamicResources")
        assert old["metadata"]["uid"] in agent.workers
        new = await here.pod("p", container("echo new; exec sleep 600"))
        await here.phase("p", "Running")
        async with asyncio.timeout(PATIENCE_S):
            while not (log := await kubectl(here, "logs", "p"))[1]:
                await asyncio.sleep(0.02)
        assert log == (0, "new\n", "")
        assert await kubectl(here, "exec", "p", "--", "echo", "in") == (0, "in\n", "")
        assert agent.workers.keys() == {old["metadata"]["uid"], new["metadata"]["uid"]}
        driver.is_willing = True
        await here.client.delete(PODS, "p", NAMESPACE, options=force)

"""A node goes on when something is wrong with one of its pods, or when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from drayman.api.struct import Json
from drayman.cluster.resources import CONFIG_MAPS, PODS, RESOURCE_SLICES
from drayman.node.agent.devices.wiping import SliceWiper
from node.agent.world import NAMESPACE, NODE, World, container, logs, world
from patience import PATIENCE_S

_PODS = PODS.as_values()
VALUE: dict[str, Json] = {"metadata": {"name": "settings"}, "data": {"depth": "1"}}


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


def impatient(here: World) -> World:
    return replace(here, options=replace(here.options, attend_again_s=0.05))


async def test_one_pod_that_cannot_be_looked_after_does_not_keep_others() -> None:
    """It is tried again until it works."""
    async with world() as found:
        here = impatient(found)
        broken = await here.pod("broken", container("true"))
        here.options.pods_dir.mkdir(parents=True)
        in_the_way = here.options.pods_dir / broken["metadata"]["uid"]
        in_the_way.touch()
        async with here.agent():
            await here.pod("fine", container("true"))
            await here.phase("fine", "Succeeded")
            in_the_way.unlink()
            await here.phase("broken", "Succeeded")


async def test_a_worker_that_fails_is_followed_by_another() -> None:
    """Containers run on meanwhile, and their devices stay prepared."""
    uses = {"resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    async with world() as found:
        here = impatient(found)
        async with here.plugin(), here.agent() as agent:
            pod = await here.pod("p", container("exec sleep 600", **uses), resourceClaims=claims)
            uid = pod["metadata"]["uid"]
            await here.claim("c", "gpu-0", uid)
            await here.phase("p", "Running")
            first = agent.workers[uid]
            before = first.containers.attempt("main")
            assert before is not None
            # What no server would send: a container that was not there when the worker began.
            sidecar = container("exec sleep 600", "late", restartPolicy="Always")
            changed = {**first.value["spec"], "initContainers": [sidecar]}
            async with asyncio.timeout(PATIENCE_S):
                while agent.workers.get(uid) is first:  # the server's own version may come between
                    first.update({**first.value, "spec": changed})
                    await asyncio.sleep(0.02)
            await until(lambda: uid in agent.workers)
            await agent.clean_up()
            assert [held.name for held in agent.claims.held] == ["c"]
            found_again = agent.workers[uid].containers.attempt("main")
            assert found_again is not None
            assert found_again.pid == before.pid
            await here.client.delete(PODS, "p", NAMESPACE)
            await here.gone("p")


async def test_the_end_of_a_pod_is_told_when_the_server_is_back(tmp_path: Path) -> None:
    """Whoever waits for the pod would wait for ever otherwise."""
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    async with world() as here, here.agent() as agent:
        pod = await here.pod("p", container(script))
        await here.phase("p", "Running")
        worker = agent.workers[pod["metadata"]["uid"]]
        await here.cluster.stop()
        (tmp_path / "go").touch()
        await until(lambda: worker.containers.count_running() == 0)
        await here.cluster.start()
        await here.phase("p", "Succeeded")


async def test_a_container_is_restarted_while_the_server_is_away(tmp_path: Path) -> None:
    """With the variables and files that are known."""
    reference = {"configMapKeyRef": {"name": "settings", "key": "depth"}}
    script = f"echo depth $DEPTH; until [ -e {tmp_path}/go ]; do sleep 0.02; done; rm {tmp_path}/go; exit 1"
    main = container(script, env=[{"name": "DEPTH", "valueFrom": reference}])
    async with world() as here, here.agent() as agent:
        await here.client.create(CONFIG_MAPS, VALUE, NAMESPACE)
        pod = await here.pod("p", main, restartPolicy="Always", terminationGracePeriodSeconds=0)
        await here.phase("p", "Running")
        worker = agent.workers[pod["metadata"]["uid"]]
        await here.cluster.stop()
        (tmp_path / "go").touch()
        await until(lambda: worker.containers.next_number("main") == 2)
        await until(lambda: logs(agent, pod) == ["depth 1"])
        await here.cluster.start()
        await here.client.delete(PODS, "p", NAMESPACE)
        await here.gone("p")


async def test_slices_of_a_lost_driver_go_when_the_server_is_back() -> None:
    """They are not forgotten because it was away at the wrong moment."""
    async with world() as here:
        async with here.agent(), here.plugin():
            await until_slices(here, 1)
        await here.cluster.stop()
        client = here.cluster.impatient_client()
        wiper = SliceWiper(client, NODE, wipe_after_s=0.01)
        wiper.changed("gpu.example.com", is_there=False)
        await asyncio.sleep(0.1)
        await here.cluster.start()
        await until_slices(here, 0)
        await wiper.stop()
        await client.close()


async def until_slices(here: World, number: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len((await here.client.list_all(RESOURCE_SLICES)).items) != number:
            await asyncio.sleep(0.02)

"""A node makes itself known, with its own rights, and stays known."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drayman.api.codec import convert
from drayman.api.times import micro_timestamp
from drayman.apiserver.instance.folder import Folder
from drayman.apiserver.instance.node_access import node_kubeconfig
from drayman.cluster import DeleteOptions, HttpClient, merge_patch
from drayman.cluster.client import Client
from drayman.cluster.errors import ForbiddenError, NotFoundError
from drayman.cluster.resources import LEASES, NODES, PODS, JsonObject, generic
from drayman.node.agent.identity import AgentIdentity
from drayman.node.agent.machine import Machine
from drayman.node.agent.reading import request_token
from drayman.node.agent.registering import NodeTakenError, Registration, SimulatedNodeError
from drayman.node.agent.spec import RunnablePod, TokenSource
from drayman.node.reporting import LEASE_NAMESPACE, LEASE_SECONDS, SIMULATED
from drayman.testing import TestCluster
from patience import PATIENCE_S

NODE = "node-1"
PORT = 10250
NODE_VALUES = NODES.as_values()


@dataclass(frozen=True)
class Here:
    admin: Client
    node: Client
    """With the rights of the node."""
    machine: Machine
    folder: Path

    def registration(self, agent: str = "a", put_back_s: float = 0.01) -> Registration:
        """By the agent with this root folder."""
        root = self.folder / agent
        root.mkdir(exist_ok=True)
        identity = AgentIdentity.here(root)
        return Registration(self.node, NODE, self.machine, identity, lambda: PORT, put_back_s)

    async def known(self) -> tuple[str, str]:
        """The uids of the Node and of its lease."""
        node = await self.admin.get(NODES, NODE)
        lease = await self.admin.get(LEASES, NODE, LEASE_NAMESPACE)
        assert lease["spec"]["holderIdentity"] == NODE
        assert node.status.capacity
        return node.metadata.uid, lease["metadata"]["uid"]


@asynccontextmanager
async def registered(folder: Path) -> AsyncIterator[Here]:
    async with TestCluster(folder) as cluster:
        running = Folder(cluster.kubeconfig.parent).running()
        assert running is not None
        config = folder / "node.conf"
        own = Folder(cluster.kubeconfig.parent)
        config.write_bytes(node_kubeconfig(own, running.url, NODE, datetime.now(UTC)))
        async with HttpClient.from_environment(config) as client:
            machine = Machine.here(folder, "127.0.0.1")
            here = Here(cluster.client, client, machine, folder)
            await here.registration("a").register()
            yield here


async def nothing(_client: Client) -> None: ...


async def without_lease(client: Client) -> None:
    await client.delete(LEASES, NODE, LEASE_NAMESPACE)


async def without_node(client: Client) -> None:
    await client.delete(NODES, NODE, options=DeleteOptions())


@pytest.mark.parametrize(("happens", "lease_stays"), [(nothing, True), (without_lease, False)])
async def test_a_lease_that_was_deleted_is_made_again(
    tmp_path: Path, happens: Callable[[Client], Awaitable[None]], lease_stays: bool
) -> None:
    """By the next heartbeat; one that was not deleted is the same as before."""
    async with registered(tmp_path) as here:
        node, lease = await here.known()
        await happens(here.admin)
        await here.registration().beat(reports=False)
        again, lease_again = await here.known()
        assert again == node
        assert (lease_again == lease) is lease_stays


async def test_a_node_that_was_deleted_stays_away(tmp_path: Path) -> None:
    """Until its agent is started again, as with a kubelet."""
    async with registered(tmp_path) as here:
        await without_node(here.admin)
        with pytest.raises(NotFoundError):
            await here.registration().beat(reports=True)
        with pytest.raises(NotFoundError):
            await here.admin.get(NODES, NODE)
        await here.registration().register()
        assert await here.admin.get(NODES, NODE)


async def test_a_simulated_node_that_took_the_place_is_left_alone(tmp_path: Path) -> None:
    """A node does not take over one that the simulation has."""
    async with registered(tmp_path) as here:
        await without_node(here.admin)
        value = {"metadata": {"name": NODE, "labels": {SIMULATED: "true"}}}
        await here.admin.create(NODE_VALUES, value)
        with pytest.raises(SimulatedNodeError):
            await here.registration().register()


async def long_silent(here: Here) -> None:
    """The lease was last renewed when it has just ceased to be good."""
    then = micro_timestamp(datetime.now(UTC) - timedelta(seconds=LEASE_SECONDS))
    patch = merge_patch({"spec": {"renewTime": then}})
    await here.admin.patch(LEASES, NODE, patch, LEASE_NAMESPACE)


async def released(here: Here) -> None:
    await here.registration().release()


async def still_there(_here: Here) -> None: ...


async def deleted_lease(here: Here) -> None:
    await without_lease(here.admin)


@pytest.mark.parametrize(
    ("agent", "happens", "is_refused"),
    [
        ("b", still_there, True),
        ("a", still_there, False),
        ("b", long_silent, False),
        ("b", released, False),
        ("b", deleted_lease, False),
    ],
    ids=["another folder", "it comes back", "long silent", "it has ended", "no lease"],
)
async def test_a_node_has_one_agent(
    tmp_path: Path, agent: str, happens: Callable[[Here], Awaitable[None]], is_refused: bool
) -> None:
    """An agent with another root folder is refused while the first one lives, and told where that is; nothing of the node is changed."""
    async with registered(tmp_path) as here:
        await happens(here)
        before = await here.admin.get(NODE_VALUES, NODE)
        if is_refused:
            says = f"run by another agent \\(process {os.getpid()} on .*/a\\); .* --name"
            with pytest.raises(NodeTakenError, match=says):
                await here.registration(agent).register()
            assert await here.admin.get(NODE_VALUES, NODE) == before
        else:
            await here.registration(agent).register()


async def test_a_node_that_comes_back_keeps_what_others_gave_it(tmp_path: Path) -> None:
    """Its own labels are written anew, which its rights allow; labels and taints that an administrator gave it stay."""
    async with registered(tmp_path) as here:
        taint = {"key": "a", "effect": "NoSchedule"}
        labels = {"node-restriction.kubernetes.io/a": "b", "kubernetes.io/os": "other"}
        patch = merge_patch({"metadata": {"labels": labels}, "spec": {"taints": [taint]}})
        await here.admin.patch(NODE_VALUES, NODE, patch)
        await here.registration().register()
        found = await here.admin.get(NODES, NODE)
        assert found.metadata.labels["node-restriction.kubernetes.io/a"] == "b"
        assert found.metadata.labels["kubernetes.io/os"] == "linux"
        assert [each.key for each in found.spec.taints] == ["a"]


@asynccontextmanager
async def following(registration: Registration) -> AsyncIterator[None]:
    task = asyncio.create_task(registration.follow())
    await asyncio.sleep(0)  # so that it has begun
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def overwrite(here: Here, status: JsonObject) -> str:
    """Returns the version of the Node with it."""
    patch = merge_patch({"status": status})
    found = await here.admin.patch(NODE_VALUES, NODE, patch, subresource="status")
    version: str = found["metadata"]["resourceVersion"]
    return version


WRONG: dict[str, JsonObject] = {
    "another address": {"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]},
    "an address too many": {
        "addresses": [
            {"type": "Hostname", "address": "elsewhere"},
            {"type": "InternalIP", "address": "127.0.0.1"},
        ]
    },
    "no address": {"addresses": None},
    "another port": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 22}}},
    "no port": {"daemonEndpoints": None},
    "less room": {"allocatable": {"cpu": "0"}},
    "not ready": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
}


@pytest.mark.parametrize("status", WRONG.values(), ids=WRONG)
async def test_a_status_that_somebody_writes_over_is_put_back(
    tmp_path: Path, status: JsonObject
) -> None:
    """As soon as the node sees it; what others have added stays."""
    async with registered(tmp_path) as here:
        patch = {
            "capacity": {"example.com/dongle": "4"},
            "allocatable": {"example.com/dongle": "4"},
        }
        await overwrite(here, patch)
        before = (await here.admin.get(NODE_VALUES, NODE))["status"]
        async with following(here.registration()), asyncio.timeout(PATIENCE_S):
            await overwrite(here, status)
            while _told(found := (await here.admin.get(NODE_VALUES, NODE))["status"]) != _told(
                before
            ):
                await asyncio.sleep(0.02)
            assert found["capacity"]["example.com/dongle"] == "4"


def _told(status: JsonObject) -> JsonObject:
    """What a node says of itself, without the times."""
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return {**status, "conditions": conditions}


async def test_quantities_that_the_server_writes_in_another_way_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """1048576Ki become 1Gi, which is the same."""
    caplog.set_level("INFO", "drayman.node")
    async with registered(tmp_path) as here:
        here = replace(here, machine=replace(here.machine, memory_bytes=2**30))
        registration = here.registration()
        await registration.register()
        found = await here.admin.get(NODE_VALUES, NODE)
        assert found["status"]["capacity"]["memory"] == "1Gi"
        async with following(registration), asyncio.timeout(PATIENCE_S):
            await registration.informer.wait_seen(found["metadata"]["resourceVersion"])
            for _ in range(10):
                await asyncio.sleep(0)
    assert "put back" not in caplog.text


async def test_two_who_write_the_same_do_not_fight(tmp_path: Path) -> None:
    """What was put back and is changed again waits for a while; nothing is written that is right already."""
    async with registered(tmp_path) as here:
        registration = here.registration(put_back_s=1000)
        async with following(registration), asyncio.timeout(PATIENCE_S):
            await registration.informer.wait_synced()
            untouched = await here.admin.get(NODE_VALUES, NODE)
            await overwrite(here, WRONG["another port"])
            while True:
                found = await here.admin.get(NODE_VALUES, NODE)
                if _told(found["status"]) == _told(untouched["status"]):
                    break
                await asyncio.sleep(0.02)
            for _ in range(5):
                version = await overwrite(here, WRONG["another port"])
                await registration.informer.wait_seen(version)
                found = await here.admin.get(NODE_VALUES, NODE)
                assert (
                    found["status"]["daemonEndpoints"] == WRONG["another port"]["daemonEndpoints"]
                )


async def test_tokens_of_pods(tmp_path: Path) -> None:
    """A node gets the tokens that its pods have in their volumes, and no others."""
    async with registered(tmp_path) as here:
        accounts = generic("v1", "serviceaccounts", "ServiceAccount")
        await here.admin.create(accounts, {"metadata": {"name": "used"}}, "default")
        sources = [
            {"serviceAccountToken": {"path": name, "audience": name} if name else {"path": "t"}}
            for name in ("", "vault")
        ]
        spec = {
            "nodeName": NODE,
            "serviceAccountName": "used",
            "containers": [{"name": "c", "image": "host"}],
            "volumes": [{"name": "v", "projected": {"sources": sources}}],
        }
        made = await here.admin.create(
            PODS.as_values(), {"metadata": {"name": "p"}, "spec": spec}, "default"
        )
        pod = convert(RunnablePod, made)
        (volume,) = pod.spec.volumes
        assert volume.projected is not None
        for source in volume.projected.sources:
            assert source.service_account_token is not None
            assert (await request_token(here.node, pod, source.service_account_token)).value
        with pytest.raises(ForbiddenError, match="in no volume of the pod"):
            await request_token(here.node, pod, TokenSource(audience="bank"))

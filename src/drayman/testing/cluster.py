"""A cluster for tests: the embedded API server over HTTP, without scheduler and controllers, so that only happens what a test does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from drayman.api.core import Node
from drayman.api.resource import ResourceClaim
from drayman.api.struct import Json
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.running import Instance
from drayman.cluster import HttpClient, merge_patch
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import NODES, RESOURCE_CLAIMS, JsonObject
from drayman.testing.ports import kept_port

NAMESPACE: Final = "default"
_CLAIMS: Final = RESOURCE_CLAIMS.as_values()


class TestCluster:
    """Use it in `async with`."""

    __test__ = False  # not a test, whatever pytest makes of the name

    def __init__(self, folder: Path) -> None:
        self._folder = Folder(folder / "cluster")
        self._instance: Instance | None = None
        self._undoing = AsyncExitStack()
        self._port = 0
        self._client: HttpClient | None = None

    @property
    def client(self) -> HttpClient:
        assert self._client is not None, "the cluster has not been started"
        return self._client

    @property
    def kubeconfig(self) -> Path:
        assert self._instance is not None, "the cluster has not been started"
        return self._instance.kubeconfig

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as undoing:
            self._port = undoing.enter_context(kept_port())
            await self.start()
            undoing.push_async_callback(self.stop)
            self._client = HttpClient.from_environment(self.kubeconfig)
            undoing.push_async_callback(self._client.close)
            self._undoing = undoing.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._undoing.aclose()

    async def start(self) -> None:
        """Serve; after `stop`, at the same address and with the same objects."""
        options = Options(folder=self._folder, port=self._port, control_plane=None)
        self._instance = await start(options)

    async def stop(self) -> None:
        """Be gone, as a server that has crashed."""
        if self._instance is not None:
            await self._instance.stop()
            self._instance = None

    def impatient_client(self) -> HttpClient:
        """A client that does not wait for a server that is gone. The caller closes it."""
        return HttpClient(self.client.connection, retries=NO_RETRIES)

    async def add_node(self, name: str) -> Node:
        value: JsonObject = {"metadata": {"name": name}}
        await self.client.create(NODES.as_values(), value)
        return await self.client.get(NODES, name)

    async def allocate(
        self,
        name: str,
        driver: str,
        pool: str,
        devices: Mapping[str, str | Mapping[str, Json]],
        *,
        config: Sequence[JsonObject] = (),
    ) -> ResourceClaim:
        """A claim with devices, as a scheduler leaves it.

        `devices` are the devices by request or `request/subrequest`: a name, or a result with more in it, such as shareID. Entries of
        `config` are those of an allocation.
        """
        spec = {"devices": {"requests": [_request(name, driver) for name in devices]}}
        await self.client.create(_CLAIMS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
        results = [
            {"request": request, "driver": driver, "pool": pool}
            | ({"device": device} if isinstance(device, str) else dict(device))
            for request, device in devices.items()
        ]
        allocation = {"devices": {"results": results, "config": list(config)}}
        patch = merge_patch({"status": {"allocation": allocation}})
        await self.client.patch(_CLAIMS, name, patch, NAMESPACE, subresource="status")
        return await self.client.get(RESOURCE_CLAIMS, name, NAMESPACE)

    async def remove_claim(self, name: str) -> None:
        """Deallocate a claim and delete it."""
        patch = merge_patch({"status": {"allocation": None, "devices": None}})
        await self.client.patch(_CLAIMS, name, patch, NAMESPACE, subresource="status")
        await self.client.delete(RESOURCE_CLAIMS, name, NAMESPACE)


def _request(name: str, driver: str) -> JsonObject:
    main, _, alternative = name.partition("/")
    if alternative:
        return {
            "name": main,
            "firstAvailable": [{"name": alternative, "deviceClassName": driver}],
        }
    return {"name": main, "exactly": {"deviceClassName": driver}}

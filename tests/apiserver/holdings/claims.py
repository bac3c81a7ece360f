"""A server that guards devices, with claims whose status tests write as any client could."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from building import decoded
from drayman.apiserver.holdings.exclusive import ExclusiveDevices
from drayman.apiserver.holdings.in_use import ClaimsInUse
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.protocol.exchange import LongResponse, Query, Request, Response
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded.store import Store

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"
DRIVER = "gpu.example.com"
MERGE = "application/merge-patch+json"


def result(device: str, share: str = "", pool: str = "p", **consumed: str) -> dict[str, Any]:
    """One device of an allocation, or a share of it."""
    made: dict[str, Any] = {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
    if share:
        made["shareID"] = share
    if consumed:
        made["consumedCapacity"] = consumed
    return made


def status(*results: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": list(results)}}}}


@dataclass(slots=True)
class Guarded:
    server: ApiServer
    store: Store

    async def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, Query(), {"content-type": kind}, data)
        answer = await self.server.handle(request)
        if isinstance(answer, LongResponse):
            answer = answer.whole()
        assert isinstance(answer, Response)
        return answer.status, decoded(answer)

    async def make(self, path: str, body: Mapping[str, Any]) -> Any:
        code, made = await self.send("POST", path, body)
        assert code == 201, made
        return made

    async def publish(
        self, *devices: Mapping[str, Any], generation: int = 1, slices: int = 1, **spec: Any
    ) -> None:
        """A slice of the pool `p`."""
        pool = {"name": "p", "generation": generation, "resourceSliceCount": slices}
        whole = {"driver": DRIVER, "pool": pool, "allNodes": True, **spec}
        if devices:
            whole["devices"] = list(devices)
        await self.make(SLICES, {"metadata": {"generateName": "s-"}, "spec": whole})

    async def claim(self, name: str) -> None:
        exactly = {"deviceClassName": "gpu", "count": 1}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        await self.make(CLAIMS, {"metadata": {"name": name}, "spec": spec})

    async def allocate(self, name: str, *results: Mapping[str, Any]) -> tuple[int, str]:
        """Give a claim devices. The code, and what a refusal says."""
        code, answer = await self.send("PATCH", f"{CLAIMS}/{name}/status", status(*results), MERGE)
        return code, "" if code == 200 else answer["message"]

    async def free(self, name: str) -> None:
        body = {"status": {"allocation": None}}
        code, answer = await self.send("PATCH", f"{CLAIMS}/{name}/status", body, MERGE)
        assert code == 200, answer


@asynccontextmanager
async def guarded(*claims: str, path: Path | None = None) -> AsyncIterator[Guarded]:
    """A server with some claims, over a store in memory or in a file."""
    with Store.open(path) as store:
        server = make_server(store)
        store.constrain(ExclusiveDevices(store))
        server.core.admission.plugins.append(ClaimsInUse())
        await create_first_objects(server.core)
        made = Guarded(server, store)
        if path is None or store.count("resourceslices.resource.k8s.io") == 0:
            await made.publish(*({"name": f"gpu-{number}"} for number in range(8)), generation=0)
        for name in claims:
            await made.claim(name)
        yield made

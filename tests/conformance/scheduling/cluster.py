"""A cluster of its own for a scenario: API server, controllers and scheduler as `drayman up` runs them, reached over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import aiohttp

from conformance.records import JsonObject
from conformance.scheduling.scenarios import Target
from conformance.scheduling.state import Objects
from drayman.allocator import Policy
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.cluster.embedded import Store
from drayman.scheduler.options import SchedulerOptions

_RECORDED_WITH: Final = SchedulerOptions(binding_timeout_s=15.0, longest_backoff_s=2.0)
"""The settings of the scheduler that was recorded."""
_CORE: Final = "/api/v1"
_DEVICES: Final = "/apis/resource.k8s.io/v1"
_GROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2"
_PATHS: Final = {
    "Namespace": (_CORE, "namespaces", False),
    "Node": (_CORE, "nodes", False),
    "Pod": (_CORE, "pods", True),
    "DeviceClass": (_DEVICES, "deviceclasses", False),
    "ResourceSlice": (_DEVICES, "resourceslices", False),
    "ResourceClaim": (_DEVICES, "resourceclaims", True),
    "ResourceClaimTemplate": (_DEVICES, "resourceclaimtemplates", True),
    "DeviceTaintRule": ("/apis/resource.k8s.io/v1beta2", "devicetaintrules", False),
    "PodGroup": (_GROUPS, "podgroups", True),
    "Workload": (_GROUPS, "workloads", True),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets", True),
}
"""Where the objects of a kind are: the version, the name of the resource, and whether they are in namespaces."""
_MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}


class Cluster:
    """What a scenario can do to a cluster, and see of it."""

    def __init__(self, session: aiohttp.ClientSession, store: Store) -> None:
        self._session = session
        self.store = store

    async def create(self, obj: JsonObject) -> int:
        """The HTTP status of creating an object."""
        namespace = obj["metadata"].get("namespace", "default")
        async with self._session.post(_path(obj["kind"], namespace), json=obj) as answer:
            return answer.status

    async def patch(self, target: Target) -> int:
        """The HTTP status of a merge patch."""
        path = f"{_path(target.kind, target.namespace)}/{target.name}"
        if target.subresource:
            path += f"/{target.subresource}"
        request = self._session.patch(path, data=json.dumps(target.body), headers=_MERGE_PATCH)
        async with request as answer:
            return answer.status

    async def delete(self, target: Target) -> int:
        """The HTTP status of a deletion."""
        path = f"{_path(target.kind, target.namespace)}/{target.name}"
        options = {} if target.grace is None else {"gracePeriodSeconds": target.grace}
        async with self._session.delete(path, json=options) as answer:
            return answer.status

    async def objects(self) -> Objects:
        """Everything that the state at a checkpoint is made of."""
        paths = [_path(kind, None) for kind in ("Pod", "ResourceClaim", "PodGroup")]
        paths += [f"{_CORE}/events", _path("ResourceSlice", None)]
        return Objects(*await asyncio.gather(*map(self._items, paths)))

    async def _items(self, path: str) -> list[JsonObject]:
        async with self._session.get(path) as answer:
            assert answer.status == 200, f"{path}: {answer.status}"
            return list((await answer.json())["items"])


def _path(kind: str, namespace: str | None) -> str:
    version, resource, is_namespaced = _PATHS[kind]
    inside = f"/namespaces/{namespace}" if is_namespaced and namespace else ""
    return f"{version}{inside}/{resource}"


@asynccontextmanager
async def cluster(folder: Path, policy: Policy) -> AsyncIterator[Cluster]:
    """A new cluster with nothing in it. Certificates and tokens that are in the folder already are used."""
    control_plane = ControlPlane(scheduler=replace(_RECORDED_WITH, policy=policy))
    options = Options(folder=Folder(folder), durable=False, control_plane=control_plane)
    instance = await start(options)
    try:
        config = json.loads(instance.kubeconfig.read_text())
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        trusted = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        session = aiohttp.ClientSession(
            instance.url,
            connector=aiohttp.TCPConnector(ssl=trusted),
            headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        )
        async with session:
            yield Cluster(session, instance.store)
    finally:
        await instance.stop()

"""Spares the first users a wait.

How objects of a kind are read, checked, defaulted and written is worked out when the first of them arrives, and Python runs what it has
run a few times in half the time. So right after the start some pods are created, given devices and bound for show: on a cluster in
memory that shares nothing with the real one but the code and the table of resources.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from drayman.apiserver.kinds import admission_plugins
from drayman.apiserver.lifecycle.admission import NamespaceLifecycle
from drayman.apiserver.protocol.exchange import Request, Response
from drayman.apiserver.served.resources import Resources
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.serving.server import ApiServer
from drayman.apiserver.verbs.core import Core
from drayman.cluster.embedded.model import Key
from drayman.cluster.embedded.store import Store
from drayman.cluster.informers import Informers
from drayman.cluster.inprocess import InProcessClient
from drayman.cluster.turns import Turns
from drayman.scheduler.running import Scheduler, SchedulerOptions

POD_COUNT: Final = 16
"""Python begins to make code fast when it has run eight times."""
PATIENCE_S: Final = 5.0
"""For all of them. On a machine where that is not enough, the first users wait no longer than they would anyway."""
_POLL_S: Final = 0.001

_CORE, _DEVICES = "/api/v1", "/apis/resource.k8s.io/v1"
_NAMESPACED, _CLAIMED = f"{_CORE}/namespaces/stage", f"{_DEVICES}/namespaces/stage"
_DRIVER: Final = "stage.drayman.dev"
_REQUEST: Final = {
    "name": "device",
    "exactly": {
        "deviceClassName": "stage",
        "selectors": [{"cel": {"expression": f'device.attributes["{_DRIVER}"].model == "show"'}}],
    },
}
_SCENERY: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    (f"{_CORE}/namespaces", {"metadata": {"name": "stage"}}),
    (
        f"{_CORE}/nodes",
        {
            "metadata": {"name": "stage"},
            "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
        },
    ),
    (
        f"{_DEVICES}/resourceslices",
        {
            "metadata": {"name": "stage"},
            "spec": {
                "driver": _DRIVER,
                "nodeName": "stage",
                "pool": {"name": "stage", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"device-{number}",
                        "attributes": {"index": {"int": number}, "model": {"string": "show"}},
                        "capacity": {"memory": {"value": "1Gi"}},
                    }
                    for number in range(POD_COUNT)
                ],
            },
        },
    ),
    (
        f"{_DEVICES}/deviceclasses",
        {
            "metadata": {"name": "stage"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]},
        },
    ),
    (
        f"{_CLAIMED}/resourceclaimtemplates",
        {
            "metadata": {"name": "device"},
            "spec": {"spec": {"devices": {"requests": [_REQUEST]}}},
        },
    ),
)


async def rehearse(resources: Resources, options: SchedulerOptions) -> int:
    """Place some pods for show. Returns how many were placed before patience ran out."""
    store = Store.open(None)
    try:
        stage = Core(store, resources)
        stage.admission.plugins.extend([NamespaceLifecycle(), *admission_plugins()])
        server = ApiServer(stage)
        for path, body in _SCENERY:
            await _create(server, path, body)
        async with _scheduled(stage, options):
            return await _perform(server, store, min(options.names))
    finally:
        store.close()


@asynccontextmanager
async def _scheduled(stage: Core, options: SchedulerOptions) -> AsyncIterator[None]:
    """With a scheduler."""
    client = InProcessClient(ServerBackend(stage))
    informers = Informers(client)
    scheduler = asyncio.create_task(
        Scheduler(client, informers, options, turns=Turns()).run(), name="rehearsal"
    )
    try:
        yield
    finally:
        scheduler.cancel()
        await asyncio.wait((scheduler,))
        await informers.stop()


async def _perform(server: ApiServer, store: Store, scheduler: str) -> int:
    placed = 0
    try:
        async with asyncio.timeout(PATIENCE_S):
            while placed < POD_COUNT:
                name = f"pod-{placed}"
                await _create(server, f"{_NAMESPACED}/pods", _pod(name, scheduler))
                while not _is_bound(store, name):
                    await asyncio.sleep(_POLL_S)
                placed += 1
    except TimeoutError:
        pass
    return placed


def _pod(name: str, scheduler: str) -> dict[str, object]:
    resources = {"claims": [{"name": "device"}], "requests": {"cpu": "1"}}
    return {
        "metadata": {"name": name},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "any", "resources": resources}],
            "resourceClaims": [{"name": "device", "resourceClaimTemplateName": "device"}],
            # New nodes take no pods until somebody says that they are ready, and here nobody does.
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _is_bound(store: Store, name: str) -> bool:
    stored = store.get(Key("pods", "stage", name))
    return stored is not None and bool(stored.value["spec"].get("nodeName"))


async def _create(server: ApiServer, path: str, body: object) -> None:
    headers = {"content-type": "application/json", "user-agent": "rehearsal"}
    answer = await server.handle(
        Request("POST", path, headers=headers, body=msgspec.json.encode(body))
    )
    if not isinstance(answer, Response) or answer.status >= 300:
        raise RuntimeError(f"the rehearsal cannot create something at {path}: {answer}")

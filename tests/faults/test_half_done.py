"""A scheduler over a bad wire: requests that get no answer, done or not, while the news of what was done is late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import pytest

from apiserver.e2e.writing import Connection
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.cluster import HttpClient, Informers
from drayman.cluster.errors import UnreachableError
from drayman.cluster.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from drayman.drivers.profiles import parse_profiles, simulate
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from faults.invariants import broken_promises, unsettled
from faults.snapshot import PATHS, take
from patience import PATIENCE_S

NAMESPACE: Final = "default"
GPUS: Final = 8
LATE_S: Final = 0.6
"""How late the news of claims are. Longer than the first back-off, so that pods are tried again before."""


class BadWire(HttpClient):
    """Loses the answer to some requests, and tells late what became of claims."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.losing: dict[str, int] = {}
        """How many requests of a sort are yet to be lost."""
        self.arriving = True
        """Whether what is lost is the answer, not the request."""

    def _is_lost(self, sort: str) -> bool:
        left = self.losing.get(sort, 0)
        self.losing[sort] = left - 1
        return left > 0

    async def _patch(self, target: Any, *rest: Any) -> Any:
        is_claim = target.resource == RESOURCE_CLAIMS.plural
        sort = "allocation" if is_claim and target.subresource == "status" else ""
        return await self._over(sort, super()._patch(target, *rest))

    async def _create(self, target: Any, *rest: Any) -> Any:
        is_claim = target.resource == RESOURCE_CLAIMS.plural
        sort = "creation" if is_claim else target.subresource
        return await self._over(sort, super()._create(target, *rest))

    async def _over(self, sort: str, request: Any) -> Any:
        lost = bool(sort) and self._is_lost(sort)
        if lost and not self.arriving:
            request.close()
            raise UnreachableError("the request is lost", outcome_unknown=True)
        answer = await request
        if lost:
            raise UnreachableError("the answer is lost", outcome_unknown=True)
        return answer

    @asynccontextmanager
    async def _watch(self, target: Any, resource: Any, options: Any) -> AsyncIterator[Any]:
        async with super()._watch(target, resource, options) as changes:
            yield _late(changes) if resource.plural == RESOURCE_CLAIMS.plural else changes


async def _late(changes: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """The same changes, each some time after it came. Later ones do not wait for the delay of earlier ones."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[tuple[float, Any]] = asyncio.Queue()

    async def receive() -> None:
        async for change in changes:
            arrived.put_nowait((loop.time() + LATE_S, change))

    receiving = asyncio.create_task(receive())
    try:
        while True:
            due, change = await arrived.get()
            await asyncio.sleep(due - loop.time())
            yield change
    finally:
        receiving.cancel()


async def create_pods(client: HttpClient, sort: str) -> None:
    """As many pods as there are GPUs."""
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}  # fmt: skip
    template = {"metadata": {"name": "gpu"}, "spec": {"spec": spec}}
    await client.create(RESOURCE_CLAIM_TEMPLATES.as_values(), template, NAMESPACE)
    for number in range(GPUS):
        pod: dict[str, Any] = {"containers": [{"name": "main", "image": "app"}]}
        if sort == "extended":
            pod["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
        else:
            pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        value = {"metadata": {"name": f"pod-{number}"}, "spec": pod}
        await client.create(PODS.as_values(), value, NAMESPACE)


def look(kubeconfig: Path) -> list[str]:
    with closing(Connection(kubeconfig)) as connection:
        now = take(connection, tuple(PATHS))
    assert not broken_promises(now), broken_promises(now)
    return unsettled(now)


@pytest.mark.parametrize("arriving", [True, False], ids=["answers", "requests"])
@pytest.mark.parametrize("pods", ["claims", "extended"])
@pytest.mark.parametrize("losing", ["allocation", "binding", "creation"])
async def test_lost_requests(tmp_path: Path, losing: str, pods: str, arriving: bool) -> None:
    """Whatever is lost, no device is given away twice, and in the end every pod has its own."""
    parts = ControlPlane(scheduler=None, hardware=simulate(parse_profiles("example=1")))
    async with AsyncExitStack() as end:
        instance = await start(Options(Folder(tmp_path), durable=False, control_plane=parts))
        end.push_async_callback(instance.stop)
        client = await end.enter_async_context(HttpClient.from_environment(instance.kubeconfig))
        wire = await end.enter_async_context(BadWire.from_environment(instance.kubeconfig))
        assert isinstance(wire, BadWire)
        wire.losing, wire.arriving = {losing: 3}, arriving
        informers = Informers(wire)
        end.push_async_callback(informers.stop)
        options = SchedulerOptions(first_backoff_s=0.2, longest_backoff_s=0.2)
        scheduler = asyncio.create_task(Scheduler(wire, informers, options).run())
        end.push_async_callback(asyncio.wait, (scheduler,))
        end.callback(scheduler.cancel)
        await create_pods(client, pods)
        wrong = ["nobody has looked"]
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while wrong and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.2)
            wrong = await asyncio.to_thread(look, instance.kubeconfig)
        assert not wrong
        assert wire.losing[losing] <= 0 or losing == "creation"

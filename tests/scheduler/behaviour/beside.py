"""Schedulers beside a server, each with its own connection and its own view of the cluster."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from controllers.world import NAMESPACE
from drayman.api.core import Pod
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.cluster import HttpClient, Informers
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from scheduler.behaviour.stage import Stage

Connect = Callable[[], HttpClient]


@asynccontextmanager
async def served(folder: Path, *, guard: bool) -> AsyncIterator[tuple[Stage, Connect]]:
    """A server with controllers and no scheduler. Without the guard it accepts what Kubernetes does."""
    options = Options(
        Folder(folder / "drayman"),
        durable=False,
        guard_devices=guard,
        control_plane=ControlPlane(scheduler=None),
    )
    instance = await start(options)
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            yield Stage(client, ()), lambda: HttpClient.from_environment(instance.kubeconfig)
    finally:
        await instance.stop()


@asynccontextmanager
async def scheduling(client: HttpClient, *names: str, **options: Any) -> AsyncIterator[Scheduler]:
    """A scheduler for these names."""
    async with client:
        informers = Informers(client)
        settings = {
            "first_backoff_s": 0.05,
            "longest_backoff_s": 0.2,
            "shielded_after_s": 0.05,
            **options,
        }
        made = Scheduler(client, informers, SchedulerOptions(names=frozenset(names), **settings))
        running = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            running.cancel()
            await asyncio.wait((running,))
            await informers.stop()


async def holders(stage: Stage) -> dict[str, list[str]]:
    """The claims that have each device."""
    found: dict[str, list[str]] = defaultdict(list)
    for claim in (await stage.client.list(RESOURCE_CLAIMS, NAMESPACE)).items:
        for result in claim.status.results:
            found[f"{result.pool}/{result.device}"].append(claim.metadata.name)
    return found


async def pods(stage: Stage) -> list[Pod]:
    return list((await stage.client.list(PODS, NAMESPACE)).items)

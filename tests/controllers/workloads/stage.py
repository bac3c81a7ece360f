"""A cluster for tests of controllers: the real server in this process, the controllers under test, and hands that do a kubelet's work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from controllers.world import eventually
from drayman.api.core import Pod
from drayman.api.times import timestamp_at
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.lifecycle.running import Lifecycle
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.verbs.core import Core
from drayman.cluster import Client, InProcessClient
from drayman.cluster.embedded import Store
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions, ListOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import EVENTS, PODS, SERVICE_ACCOUNTS, JsonObject, Resource
from patience import PATIENCE_S

NAMESPACE = "default"

Make = Callable[..., Any]
"""Makes a controller, something with `run`, from a client, informers and a clock."""


@dataclass(slots=True)
class Clock:
    """The system's clock, which tests may put forward."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@dataclass(slots=True)
class Running:
    """Controllers at work."""

    informers: Informers
    controllers: Sequence[Any]
    tasks: list[asyncio.Task[None]]


@dataclass(slots=True)
class Stage:
    client: Client
    core: Core
    clock: Clock = field(default_factory=Clock)
    running: Running | None = None
    _seen: Informers | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, *makes: Make) -> None:
        """Starts controllers, as after a restart of their process."""
        informers = Informers(self.client)
        controllers = [make(self.client, informers, clock=self.clock) for make in makes]
        await informers.start()
        await informers.wait_synced()
        tasks = [asyncio.create_task(controller.run()) for controller in controllers]
        self.running = Running(informers, controllers, tasks)

    async def crash(self) -> None:
        """Ends the controllers wherever they are."""
        running, self.running = self.running, None
        if running is None:
            return
        for task in running.tasks:
            task.cancel()
        await asyncio.wait(running.tasks)
        for task in running.tasks:
            if not task.cancelled():
                raise AssertionError("a controller ended by itself") from task.exception()
        await running.informers.stop()

    async def until(self, resource: Resource[Any], holds: Callable[[list[Any]], bool]) -> list[Any]:
        """The objects of the namespace once something holds of them. Looks again at each change."""
        informer = await self._follow(resource)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._changed.clear()
                    found = sorted(
                        (v for v in informer.cache if v.metadata.namespace in ("", NAMESPACE)),
                        key=lambda value: value.metadata.name,
                    )
                    if holds(found):
                        return found
                    await self._changed.wait()
        except TimeoutError:
            shown = "\n".join(map(repr, informer.cache))
            raise AssertionError(f"never came true of {resource.plural}:\n{shown}") from None

    async def until_one(
        self, resource: Resource[Any], name: str, holds: Callable[[Any], bool]
    ) -> Any:
        """One object, once something holds of it."""

        def held(values: list[Any]) -> bool:
            return any(value.metadata.name == name and holds(value) for value in values)

        found = await self.until(resource, held)
        return next(value for value in found if value.metadata.name == name)

    async def _follow(self, resource: Resource[Any]) -> Any:
        if self._seen is None:
            self._seen = Informers(self.client)
        informer = self._seen.informer(resource)
        if not informer.is_synced:
            informer.add_handler(lambda _notice: self._changed.set())
            await self._seen.start()
            await self._seen.wait_synced()
        return informer

    async def create(self, resource: Resource[Any], value: JsonObject) -> JsonObject:
        namespace = NAMESPACE if resource.namespaced else None
        return await self.client.create(resource.as_values(), value, namespace)

    async def patch(
        self, resource: Resource[Any], name: str, change: JsonObject, **more: Any
    ) -> Any:
        namespace = NAMESPACE if resource.namespaced else None
        return await self.client.patch(resource, name, merge_patch(change), namespace, **more)

    async def scale(self, resource: Resource[Any], name: str, replicas: int) -> None:
        """Through the subresource, as `kubectl scale` does."""
        change = merge_patch({"spec": {"replicas": replicas}})
        await self.client.patch(resource.as_values(), name, change, NAMESPACE, subresource="scale")

    async def get(self, resource: Resource[Any], name: str) -> Any:
        return await self.client.get(resource, name, NAMESPACE if resource.namespaced else None)

    async def pods(self) -> list[Pod]:
        return list((await self.client.list(PODS, NAMESPACE)).items)

    async def run_pod(self, pod: Pod, *, ready: bool = True) -> None:
        """A kubelet says that a pod runs."""
        await self.set_phase(pod, "Running", ready=ready)

    async def set_phase(
        self, pod: Pod, phase: str, *, ready: bool = False, exit_code: int | None = None
    ) -> None:
        now = timestamp_at(self.clock())
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": now}
        status: JsonObject = {"phase": phase, "conditions": [condition]}
        if exit_code is not None:
            ended = {"exitCode": exit_code, "finishedAt": now}
            status["containerStatuses"] = [
                {
                    "name": "main",
                    "image": "i",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": ended},
                }
            ]
        await self.patch(PODS, pod.metadata.name, {"status": status}, subresource="status")

    async def remove_pod(self, pod: Pod) -> None:
        """A kubelet, or a person in a hurry, ends a pod for good."""
        options = DeleteOptions(grace_period_seconds=0, uid=pod.metadata.uid)
        await self.client.delete(PODS, pod.metadata.name, NAMESPACE, options=options)

    async def reasons(self) -> list[str]:
        """The reasons of all events so far, those in the buffer included."""
        for controller in () if self.running is None else self.running.controllers:
            await controller.recorder.stop()
            controller.recorder.start()
        page = await self.client.list(EVENTS, NAMESPACE, options=ListOptions())
        return [str(event["reason"]) for event in page.items]

    async def told(self, *reasons: str) -> None:
        """Returns when there are events for these reasons. An event may be recorded a moment after what it is about is written."""
        await eventually(self.reasons, lambda found: set(reasons) <= set(found))

    async def close(self) -> None:
        await self.crash()
        if self._seen is not None:
            await self._seen.stop()


@asynccontextmanager
async def stage(*makes: Make, collecting: bool = False) -> AsyncIterator[Stage]:
    """A cluster with controllers at work; with `collecting`, owners take what they own along when they go."""
    store = Store.open(None)
    server = make_server(store)
    lifecycle = Lifecycle(server.core) if collecting else None
    try:
        await create_first_objects(server.core)
        if lifecycle is not None:
            lifecycle.start()
        async with InProcessClient(ServerBackend(server.core)) as client:
            place = Stage(client, server.core)
            await place.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}})
            try:
                if makes:
                    await place.start(*makes)
                yield place
            finally:
                await place.close()
    finally:
        if lifecycle is not None:
            await lifecycle.stop()
        store.close()


def template(**labels: str) -> JsonObject:
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }

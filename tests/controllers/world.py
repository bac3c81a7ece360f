"""A server, controllers that work on it, and the objects that their tests are about.

The controllers run as they do in production, against the embedded server in the same process or over HTTP, and a test says what it wants
to see through the API. What never comes fails with what was there instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from cluster.contract.clusters import in_process
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.api.struct import Json
from drayman.apiserver.instance import Folder, Options, start
from drayman.cluster import (
    Client,
    DeleteOptions,
    HttpClient,
    Informers,
    Resource,
    merge_patch,
)
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import (
    EVENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    JsonObject,
)
from patience import PATIENCE_S

POD_VALUES = PODS.as_values()
CLAIM_VALUES = RESOURCE_CLAIMS.as_values()
TEMPLATE_VALUES = RESOURCE_CLAIM_TEMPLATES.as_values()
FINALIZER = "resource.kubernetes.io/delete-protection"
NAMESPACE = "default"
DRIVER = "gpu.example.com"

T = TypeVar("T")


class Controller(Protocol):
    async def run(self) -> None: ...


Constructor = Callable[[Client, Informers], Controller]


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[Client]:
    """The embedded server behind TLS, without controllers of its own."""
    instance = await start(Options(folder=Folder(folder / "drayman"), control_plane=None))
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            yield client
    finally:
        await instance.stop()


PLACES = {"in-process": in_process, "http": over_http}


@dataclass(slots=True)
class World:
    """A cluster to act on. `stop` and `start` end and begin the controllers, as a restart would."""

    client: Client
    constructors: Sequence[Constructor]
    _informers: Informers | None = None
    _running: Sequence[asyncio.Task[None]] = ()
    _written: dict[str, str] = field(default_factory=dict)
    """The last versions that were written here, by resource."""

    async def start(self) -> None:
        self._informers = Informers(self.client)
        controllers = [make(self.client, self._informers) for make in self.constructors]
        await self._informers.start()
        self._running = [asyncio.create_task(controller.run()) for controller in controllers]

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        for outcome in await asyncio.gather(*self._running, return_exceptions=True):
            if not isinstance(outcome, asyncio.CancelledError):
                raise AssertionError("a controller ended by itself") from outcome
        self._running = ()
        if self._informers is not None:
            await self._informers.stop()
            self._informers = None

    async def create(self, resource: Resource[JsonObject], value: JsonObject) -> JsonObject:
        where = NAMESPACE if resource.namespaced else None
        return self._wrote(resource, await self.client.create(resource, value, where))

    def _wrote(self, resource: Resource[JsonObject], answer: JsonObject) -> JsonObject:
        self._written[resource.qualified] = answer["metadata"]["resourceVersion"]
        return answer

    async def heard(self, *, but: Resource[JsonObject] | None = None) -> None:
        """Returns when controllers and scheduler know what was written here. Each kind has its own watch, and some may be late."""
        if self._informers is not None:
            left = "" if but is None else but.qualified
            await self._informers.wait_seen({k: v for k, v in self._written.items() if k != left})

    async def pod(self, name: str, *entries: JsonObject, **spec: Json) -> Pod:
        await self.create(POD_VALUES, pod(name, *entries, **spec))
        return await self.client.get(PODS, name, NAMESPACE)

    async def template(self, name: str = "t", **metadata: Json) -> None:
        spec = {"metadata": metadata, "spec": claim_spec()}
        await self.create(TEMPLATE_VALUES, {"metadata": {"name": name}, "spec": spec})

    async def claim(self, name: str, **metadata: Json) -> ResourceClaim:
        value = {"metadata": {"name": name, **metadata}, "spec": claim_spec()}
        await self.create(CLAIM_VALUES, value)
        return await self.client.get(RESOURCE_CLAIMS, name, NAMESPACE)

    async def allocate(self, name: str, *pods: Pod, device: str = "gpu-0", **result: Json) -> None:
        """What a scheduler writes: finalizer, allocation, reservations."""
        await self.patch(CLAIM_VALUES, name, {"metadata": {"finalizers": [FINALIZER]}})
        found = {"request": "r", "driver": DRIVER, "pool": "pool", "device": device} | result
        status: dict[str, Json] = {"allocation": {"devices": {"results": [found]}}}
        if pods:
            status["reservedFor"] = [consumer(pod) for pod in pods]
        await self.patch(CLAIM_VALUES, name, {"status": status}, "status")

    async def patch(
        self, resource: Resource[JsonObject], name: str, change: JsonObject, subresource: str = ""
    ) -> None:
        where, patch = NAMESPACE if resource.namespaced else None, merge_patch(change)
        answer = await self.client.patch(resource, name, patch, where, subresource=subresource)
        self._wrote(resource, answer)

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        """What a kubelet reports at the end of a pod."""
        await self.patch(POD_VALUES, name, {"status": {"phase": phase}}, "status")

    async def remove(self, resource: Resource[JsonObject], name: str, grace: int = 0) -> None:
        options = DeleteOptions(grace_period_seconds=grace)
        answer = await self.client.delete(resource, name, NAMESPACE, options=options)
        if answer is not None:
            self._wrote(resource, answer)

    async def get_pod(self, name: str) -> Pod | None:
        try:
            return await self.client.get(PODS, name, NAMESPACE)
        except NotFoundError:
            return None

    async def get_claim(self, name: str) -> ResourceClaim | None:
        try:
            return await self.client.get(RESOURCE_CLAIMS, name, NAMESPACE)
        except NotFoundError:
            return None

    async def claims(self) -> tuple[ResourceClaim, ...]:
        return (await self.client.list(RESOURCE_CLAIMS, NAMESPACE)).items

    async def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and note of each event."""
        found = (await self.client.list(EVENTS, NAMESPACE)).items
        return [(event["type"], event["reason"], event["note"]) for event in found]

    async def until_claims(
        self, wanted: Callable[[tuple[ResourceClaim, ...]], bool]
    ) -> tuple[ResourceClaim, ...]:
        return await eventually(self.claims, wanted)

    async def until_claim(
        self, name: str, wanted: Callable[[ResourceClaim], bool]
    ) -> ResourceClaim:
        found = await eventually(
            lambda: self.get_claim(name), lambda claim: claim is not None and wanted(claim)
        )
        assert found is not None
        return found

    async def until_gone(self, name: str) -> None:
        await eventually(lambda: self.get_claim(name), lambda claim: claim is None)

    async def until_pod(self, name: str, wanted: Callable[[Pod], bool]) -> Pod:
        found = await eventually(
            lambda: self.get_pod(name), lambda pod: pod is not None and wanted(pod)
        )
        assert found is not None
        return found

    async def until_event(self, reason: str, words: str = "") -> None:
        await eventually(
            self.events,
            lambda events: any(reason == seen and words in note for _, seen, note in events),
        )

    async def generated(self, name: str) -> dict[str, str | None]:
        """The claims of a pod by entry, once each entry from a template has one."""

        def has_all(pod: Pod) -> bool:
            wanted = [
                entry.name
                for entry in pod.spec.resource_claims
                if entry.resource_claim_name is None
            ]
            return {s.name for s in pod.status.resource_claim_statuses} >= set(wanted)

        found = await self.until_pod(name, has_all)
        return {s.name: s.resource_claim_name for s in found.status.resource_claim_statuses}


async def eventually(read: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
    """What is read, once it is as wanted."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE_S
    while not wanted(found := await read()):
        assert loop.time() < end, f"it never was as wanted: {found}"
        await asyncio.sleep(0.01)
    return found


async def stays(read: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> None:
    """Checks that something is and remains so, while the controllers have time to disturb it."""
    for _ in range(20):
        found = await read()
        assert wanted(found), f"it did not stay as wanted: {found}"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def world(
    folder: Path, *constructors: Constructor, place: str = "in-process"
) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(PLACES[place](folder))
        made = World(client, constructors)
        stack.push_async_callback(made.stop)
        await made.start()
        yield made


def pod(name: str, *entries: JsonObject, **spec: Json) -> JsonObject:
    """A pod whose only container uses all of the pod's claims."""
    uses = [{"name": entry["name"]} for entry in entries]
    container = {"name": "main", "image": "example.com/image:1", "resources": {"claims": uses}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "resourceClaims": list(entries), **spec},
    }


def from_template(name: str, template: str = "t") -> JsonObject:
    return {"name": name, "resourceClaimTemplateName": template}


def named(name: str, claim: str) -> JsonObject:
    return {"name": name, "resourceClaimName": claim}


def claim_spec() -> JsonObject:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def consumer(pod: Pod) -> JsonObject:
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}

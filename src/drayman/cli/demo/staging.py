"""The demo's cluster: started, given the manifests, and watched until every pod runs or is known to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cli.progress import Gauge, gauged
from drayman.cluster import Client, InProcessClient, WatchOptions, generic
from drayman.cluster.resources import PODS
from drayman.drivers.profiles import HardwareCluster, parse_profiles, simulate
from drayman.placement.world import World
from drayman.questions.reading import read_world

PROFILES: Final = "dgx-h100=1,dgx-h100-mig=1,example-shared=1"
NAMESPACE: Final = "default"
PATIENCE_S: Final = 20.0
"""After this long the demo shows what it has; it always ends."""

_RESOURCES: Final = {
    "Pod": generic("v1", "pods", "Pod"),
    "ResourceClaimTemplate": generic(
        "resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"
    ),
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A file, and the description in its first sentence."""

    name: str
    title: str
    documents: tuple[dict[str, Any], ...]

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(d["metadata"]["name"] for d in self.documents if d["kind"] == "Pod")


@dataclass(frozen=True, slots=True)
class Result:
    """The cluster in the end."""

    hardware: HardwareCluster
    manifests: tuple[Manifest, ...]
    pods: dict[str, Pod]
    world: World

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return self.world.objects.claims

    def claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """The claims that are the pod's own."""
        return [
            claim
            for claim in self.claims
            if any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)
        ]


def manifests() -> tuple[Manifest, ...]:
    """The manifests that come with the package, in the order of their names."""
    folder = files("drayman.cli.demo") / "manifests"
    found = sorted((entry.name, entry.read_text()) for entry in folder.iterdir())
    return tuple(
        Manifest(name, _title(text), tuple(yaml.safe_load_all(text))) for name, text in found
    )


def _title(text: str) -> str:
    return text.removeprefix("# ").splitlines()[0].split(". ")[0].rstrip(".")


def play() -> Result:
    """Run everything and shut the cluster down."""
    with gauged("running the examples") as gauge:
        return asyncio.run(_play(gauge))


async def _play(gauge: Gauge) -> Result:
    hardware = simulate(parse_profiles(PROFILES))
    acts = manifests()
    async with _cluster(hardware) as client:
        for manifest in acts:
            for document in manifest.documents:
                await client.create(_RESOURCES[document["kind"]], document, NAMESPACE)
        names = [name for manifest in acts for name in manifest.pods]
        pods = await _settled(client, names, gauge)
        return Result(hardware, acts, pods, await read_world(client))


@asynccontextmanager
async def _cluster(hardware: HardwareCluster) -> AsyncIterator[Client]:
    with TemporaryDirectory(prefix="drayman-demo-") as folder:
        parts = ControlPlane(hardware=hardware)
        options = Options(Folder(Path(folder)), durable=False, control_plane=parts)
        instance = await start(options)
        try:
            async with InProcessClient(ServerBackend(instance.server.core)) as client:
                yield client
        finally:
            await instance.stop()


async def _settled(client: Client, names: Sequence[str], gauge: Gauge) -> dict[str, Pod]:
    """The pods once all but the last run, and the last runs or waits permanently."""
    *others, last = names
    found: dict[str, Pod] = {}
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            client.watch(PODS, NAMESPACE, options=WatchOptions()) as events,
        ):
            async for event in events:
                if hasattr(event, "object"):
                    found[event.object.metadata.name] = event.object
                settled = [name for name in others if _runs(found.get(name))]
                if _runs(found.get(last)) or _waits(found.get(last)):
                    settled.append(last)
                gauge.update(len(settled), len(names))
                if len(settled) == len(names):
                    break
    except TimeoutError:
        return found
    return found


def _runs(pod: Pod | None) -> bool:
    return pod is not None and pod.status.phase == "Running"


def _waits(pod: Pod | None) -> bool:
    return pod is not None and any(
        c.type_ == "PodScheduled" and c.reason == "Unschedulable" and "request" in c.message
        for c in pod.status.conditions
    )

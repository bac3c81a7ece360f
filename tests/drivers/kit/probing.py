"""A driver that does what a test tells it to, and the node that it runs on."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from drayman.api.resource import Device, ResourceClaim, ResourceSlice
from drayman.api.struct import Json, always
from drayman.cluster.options import ListOptions
from drayman.cluster.resources import NODES, RESOURCE_SLICES
from drayman.drivers.kit import (
    Claim,
    Config,
    DeviceNode,
    Driver,
    Health,
    Plugin,
    Prepared,
    PreparedDevice,
    PrepareError,
)
from drayman.testing import FakeKubelet, TestCluster
from patience import PATIENCE_S

NAME = "probe.example.com"
NODE = "node-1"


class ProbeConfig(Config):
    """What a claim may ask of a probe."""

    api_version: str = always("probe.example.com/v1")
    kind: str = always("ProbeConfig")
    depth: int = 1

    def problems(self) -> Iterable[str]:
        if self.depth < 1:
            yield "depth: must be at least 1"


class Probe(Driver):
    """Four probes; preparing one can be held up, and can fail."""

    name = NAME
    configs: ClassVar[tuple[type[Config], ...]] = (ProbeConfig,)

    def __init__(self, node: str = NODE, count: int = 4) -> None:
        super().__init__(node)
        self.count = count
        self.calls: list[tuple[str, str]] = []
        """What was done to which claim, in order."""
        self.inside = 0
        self.most_inside = 0
        self.while_preparing: Callable[[Claim], Awaitable[None]] | None = None
        self.failing: dict[str, Exception] = {}
        """By device."""
        self.state: Json = None

    def discover(self) -> Iterable[Device]:
        return [Device(name=f"probe-{index}") for index in range(self.count)]

    async def prepare(self, claim: Claim) -> Prepared:
        self.calls.append(("prepare", claim.name))
        self.inside += 1
        self.most_inside = max(self.inside, self.most_inside)
        try:
            if self.while_preparing is not None:
                await self.while_preparing(claim)
            for each in claim.devices:
                if each.name in self.failing:
                    raise self.failing[each.name]
        finally:
            self.inside -= 1
        return Prepared(
            devices=[
                PreparedDevice(
                    device=each,
                    env={f"PROBE_{each.request.replace('/', '_').upper()}": each.name}
                    | (
                        {"DEPTH": str(each.config.depth)}
                        if isinstance(each.config, ProbeConfig)
                        else {}
                    ),
                    device_nodes=[DeviceNode(path=f"/dev/{each.name}")],
                )
                for each in claim.devices
            ],
            state=self.state,
        )

    async def unprepare(self, claim: Claim) -> None:
        self.calls.append(("unprepare", claim.name))


class SerialProbe(Probe):
    serialize = True


class SickProbe(Probe):
    """Says how its devices are when a test changes it."""

    def __init__(self, node: str = NODE) -> None:
        super().__init__(node)
        self.news: asyncio.Queue[list[Health]] = asyncio.Queue()

    async def health(self) -> AsyncIterator[Iterable[Health]]:
        while True:
            yield await self.news.get()


@dataclass(slots=True)
class World:
    """A cluster, a node, and drivers on it."""

    cluster: TestCluster
    kubelet: FakeKubelet

    @asynccontextmanager
    async def plugin(
        self, driver: Driver, *, instance: str = "", impatient: bool = False
    ) -> AsyncIterator[Plugin]:
        options = self.kubelet.options(driver.name, instance=instance)
        client = self.cluster.impatient_client() if impatient else self.cluster.client
        try:
            async with Plugin(driver, client, options) as plugin:
                yield plugin
        finally:
            if impatient:
                await client.close()

    async def claim(self, name: str, *devices: str, **config: Json) -> ResourceClaim:
        """A claim with devices for the requests a, b and so on."""
        requests = {chr(ord("a") + at): device for at, device in enumerate(devices)}
        entries = [parameters(config)] if config else []
        return await self.cluster.allocate(name, NAME, NODE, requests, config=entries)

    async def slices(self, driver: str = NAME) -> tuple[ResourceSlice, ...]:
        options = ListOptions(field_selector=f"spec.driver={driver}")
        return (await self.cluster.client.list(RESOURCE_SLICES, options=options)).items

    async def until_slices(
        self, wanted: Callable[[tuple[ResourceSlice, ...]], bool], driver: str = NAME
    ) -> tuple[ResourceSlice, ...]:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        while not wanted(found := await self.slices(driver)):
            assert loop.time() < end, f"the slices never were as wanted: {found}"
            await asyncio.sleep(0.02)
        return found

    async def until_labelled(self, wanted: dict[str, str]) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        while True:
            labels = (await self.cluster.client.get(NODES, NODE)).metadata.labels
            if labels.items() >= wanted.items():
                return
            assert loop.time() < end, f"the node never was labelled as wanted: {labels}"
            await asyncio.sleep(0.02)


def parameters(config: dict[str, Json], *, source: str = "FromClaim") -> dict[str, Json]:
    """An entry of an allocation's configuration."""
    values = {"apiVersion": "probe.example.com/v1", "kind": "ProbeConfig"} | config
    return {"source": source, "opaque": {"driver": NAME, "parameters": values}}


def names(slices: Iterable[ResourceSlice]) -> list[str]:
    return [device.name for each in slices for device in each.spec.devices or ()]


@asynccontextmanager
async def world(*, wipe_after_s: float = 1e6) -> AsyncIterator[World]:
    # Sockets have paths of at most 107 bytes, and those of pytest are long.
    with tempfile.TemporaryDirectory(prefix="kit") as folder:
        async with (
            TestCluster(Path(folder)) as cluster,
            FakeKubelet(cluster.client, NODE, Path(folder), wipe_after_s=wipe_after_s) as kubelet,
        ):
            await cluster.add_node(NODE)
            yield World(cluster, kubelet)


def broken(message: str = "the probe is stuck") -> PrepareError:
    return PrepareError(message)

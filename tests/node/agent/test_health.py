"""How devices are, from the reports of their drivers to the status of the pods that use them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.cluster.resources import JsonObject
from drayman.drivers.example.drivers import ExampleGpuDriver
from drayman.drivers.kit.model import Health
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.plugin import Plugin
from drayman.node.agent.devices.device_status import device_statuses
from drayman.node.agent.devices.health import (
    DEVICES_PER_REPORT,
    MOST_REPORTS,
    PAUSE_S,
    UNKNOWN,
    Condition,
    DeviceHealth,
)
from drayman.node.claims import Held, HeldDevice
from drayman.plugins.model import HealthState, ReportedHealth
from node.agent.world import DRIVER, NODE, World, container, world
from patience import PATIENCE_S

WELL = Condition(HealthState.HEALTHY)
ILL = Condition(HealthState.UNHEALTHY, "hot")


class Reporting:
    """A driver that reports what it is told to, and None to end its stream."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[tuple[ReportedHealth, ...] | None] = asyncio.Queue()

    def says(self, *conditions: Condition, timeout_s: int = 3600) -> None:
        """How d0, d1 and so on are."""
        self.reports.put_nowait(
            tuple(
                ReportedHealth("p", f"d{number}", each.state, 0, timeout_s, each.message)
                for number, each in enumerate(conditions)
            )
        )

    async def health(self) -> AsyncGenerator[tuple[ReportedHealth, ...], None]:
        while (reports := await self.reports.get()) is not None:
            yield reports


class Watched:
    """Health as a node follows it, with the changes that it tells."""

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        self.driver = Reporting()
        self._changes: asyncio.Queue[str] = asyncio.Queue()
        self.health = DeviceHealth(self._changes.put_nowait, again_s=0.01, pause_s=pause_s)
        self.health.follow("d", self.driver)

    async def change(self) -> tuple[Condition, Condition]:
        """How two devices are after the next change."""
        async with asyncio.timeout(PATIENCE_S):
            assert await self._changes.get() == "d"
        return self.health.of("d", "p", "d0"), self.health.of("d", "p", "d1")


async def test_reports_are_followed() -> None:
    """Nothing is known before the first report; each one replaces the one before, and one that says the same changes nothing."""
    here = Watched()
    assert here.health.of("d", "p", "d0") == UNKNOWN
    here.driver.says(WELL, WELL)
    assert await here.change() == (WELL, WELL)
    here.driver.says(WELL, WELL)
    here.driver.says(WELL, ILL)
    assert await here.change() == (WELL, ILL)
    here.driver.says(WELL)
    assert await here.change() == (WELL, UNKNOWN)
    await here.health.stop()


async def test_silence() -> None:
    """A report that is older than its driver says counts no more, and somebody is told."""
    here = Watched()
    here.driver.says(ILL, timeout_s=1)
    assert (await here.change())[0] == ILL
    assert (await here.change())[0] == UNKNOWN
    await here.health.stop()


async def test_a_stream_that_ends() -> None:
    """What came by a stream is forgotten with it, and the driver is followed anew."""
    here = Watched()
    here.driver.says(WELL)
    assert (await here.change())[0] == WELL
    here.driver.reports.put_nowait(None)
    assert (await here.change())[0] == UNKNOWN
    here.driver.says(ILL)
    assert (await here.change())[0] == ILL
    here.health.follow("d", None)
    assert (await here.change())[0] == UNKNOWN


class Flooding:
    """A driver that says how its device is as fast as it is listened to. It counts what was taken from it."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self.streams = 0
        self.taken = 0
        self.condition = ILL

    async def health(self) -> AsyncGenerator[tuple[ReportedHealth, ...], None]:
        self.streams += 1
        while True:
            self.taken += 1
            now = self.condition
            yield tuple(
                ReportedHealth("p", f"d{number}", now.state, 0, 3600, now.message)
                for number in range(self.devices)
            )
            await asyncio.sleep(0)


@pytest.mark.parametrize(("devices", "most"), [(1, MOST_REPORTS), (1000, 2)])
async def test_a_driver_that_floods_its_node(devices: int, most: int) -> None:
    """It is heard so many times and then no more for a while; what it has said stands meanwhile."""
    driver = Flooding(devices)
    health = DeviceHealth(lambda _: None, pause_s=1000)
    health.follow("d", driver)
    while driver.taken < most:
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert (driver.streams, driver.taken) == (1, most)
    assert health.of("d", "p", "d0") == ILL
    await health.stop()


async def test_a_driver_with_very_many_devices_is_no_flood(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A report of all of them, now and then, is as it should be, though it is as long as many."""
    here = Watched(pause_s=0)
    for condition in (WELL, ILL):
        here.driver.says(*[condition] * (MOST_REPORTS * DEVICES_PER_REPORT))
        assert (await here.change())[0] == condition
    assert caplog.messages == []
    await here.health.stop()


async def test_a_flood_is_listened_to_again(caplog: pytest.LogCaptureFixture) -> None:
    """By a new stream, which has the latest; nothing is forgotten in between, and the log has one line."""
    told: list[str] = []
    driver = Flooding(1)
    health = DeviceHealth(told.append, pause_s=0.001)
    health.follow("d", driver)
    async with asyncio.timeout(PATIENCE_S):
        while driver.streams < 3:
            await asyncio.sleep(0)
        driver.condition = WELL
        while health.of("d", "p", "d0") != WELL:
            await asyncio.sleep(0)
    assert told == ["d", "d"]
    assert caplog.messages == ["driver d reports health too often; some is left out"]
    await health.stop()


def pod(*claims: dict[str, str], **status: Any) -> Pod:
    entries = [
        {"name": "own", "resourceClaimName": "c"},
        {"name": "made", "resourceClaimTemplateName": "t"},
    ]
    containers = [{"name": "main", "resources": {"claims": list(claims)}}, {"name": "other"}]
    spec = {"containers": containers, "resourceClaims": entries}
    return convert(Pod, {"metadata": {"name": "p"}, "spec": spec, "status": status})


def test_what_the_status_says() -> None:
    """Devices are named by their first CDI id, else by driver, pool and name; each reference to a claim or to a request has its own."""
    held = [
        Held("n", "c", "u", ("d",), (), (
            HeldDevice("d", "p", "d0", ("gpus",), ("v/c=0", "v/c=all")),
            HeldDevice("d", "p", "d1", ("nics",)),
        )),
        Held("n", "p-made-x", "v", ("d",), (), (HeldDevice("d", "p", "d2"),)),
    ]  # fmt: skip
    conditions = {"d0": WELL, "d1": ILL}
    found = device_statuses(
        pod(
            {"name": "own"},
            {"name": "own", "request": "nics"},
            {"name": "made"},
            resourceClaimStatuses=[{"name": "made", "resourceClaimName": "p-made-x"}],
        ),
        held,
        lambda driver, pool, device: conditions.get(device, UNKNOWN),
    )
    well = {"resourceID": "v/c=0", "health": "Healthy"}
    ill = {"resourceID": "d/p/d1", "health": "Unhealthy", "message": "hot"}
    assert found == {
        "main": [
            {"name": "claim:own", "resources": [well, ill]},
            {"name": "claim:own/nics", "resources": [ill]},
            {"name": "claim:made", "resources": [{"resourceID": "d/p/d2", "health": "Unknown"}]},
        ]
    }


class ChangingDriver(ExampleGpuDriver):
    """Reports what the test wants of all its devices."""

    health_every_s = 0.02
    healthy: bool | None = True

    def health(self) -> Sequence[Health]:
        names = [device.name for device in self.discover().devices]
        return [
            Health(device=name, healthy=self.healthy, message="" if self.healthy else "hot")
            for name in names
        ]


async def test_in_the_status_of_a_pod() -> None:
    """A pod says how its devices are, as long as it runs; with the driver goes the knowledge. The next agent knows the devices."""
    async with world() as here:
        driver = ChangingDriver(NODE)
        async with here.agent():
            async with plugin(here, driver):
                made = await here.pod(
                    "p",
                    container(
                        "while :; do sleep 0.05; done", resources={"claims": [{"name": "gpu"}]}
                    ),
                    resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}],
                )
                await here.claim("c", "gpu-0", made["metadata"]["uid"])
                (found,) = devices_of(
                    await here.until("p", lambda pod: health_of(pod) == "Healthy")
                )
                assert found["name"] == "claim:gpu"
                assert "=" in found["resources"][0]["resourceID"]
                driver.healthy = False
                ill = await here.until("p", lambda pod: health_of(pod) == "Unhealthy")
                assert devices_of(ill)[0]["resources"][0]["message"] == "hot"
            await here.until("p", lambda pod: health_of(pod) == "Unknown")
        driver = ChangingDriver(NODE)
        async with here.agent(), plugin(here, driver):
            await here.until("p", lambda pod: health_of(pod) == "Healthy")


def devices_of(pod: JsonObject) -> list[JsonObject]:
    statuses = pod["status"].get("containerStatuses") or [{}]
    return statuses[0].get("allocatedResourcesStatus") or []


def health_of(pod: JsonObject) -> str:
    found = devices_of(pod)
    return str(found[0]["resources"][0]["health"]) if found else ""


def plugin(here: World, driver: ExampleGpuDriver) -> Plugin:
    options = PluginOptions(
        plugin_dir=here.options.plugins_dir / DRIVER,
        registry_dir=here.options.registry_dir,
        cdi_dir=here.options.cdi_dir,
    )
    return Plugin(driver, here.client, options)

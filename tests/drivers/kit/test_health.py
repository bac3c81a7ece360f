"""How devices are, from drivers that are asked and drivers that speak by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from threading import Event

import pytest

from drayman.drivers.kit import Health
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.health import HealthMonitor
from drayman.drivers.kit.threads import Threads
from drayman.plugins.model import HealthState
from drivers.kit.probing import NAME, NODE, Probe, SickProbe, names, world
from patience import PATIENCE_S

WELL = [Health(device="probe-0", healthy=True)]


class Asked(Probe):
    """Answers the first time, and hangs from then on."""

    health_every_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.hangs, self.may_go_on = Event(), Event()
        self.asked = 0

    def health(self) -> Iterable[Health]:
        self.asked += 1
        if self.asked > 1:
            self.hangs.set()
            self.may_go_on.wait(PATIENCE_S)
        return WELL


@asynccontextmanager
async def followed(driver: Driver, clock: Callable[[], float]) -> AsyncIterator[HealthMonitor]:
    """A driver whose first report has come."""
    threads, heard = Threads("health"), asyncio.Event()
    monitor = HealthMonitor(driver, threads, heard.set, clock=clock)
    following = asyncio.create_task(monitor.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
        yield monitor
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def told(monitor: HealthMonitor) -> tuple[HealthState, str]:
    async with aclosing(monitor.watch(lambda: [(NODE, "probe-0")])) as stream:
        (report,) = await anext(stream)
    return report.state, report.message


async def test_a_driver_that_hangs_when_it_is_asked_knows_nothing() -> None:
    """What it said before holds until the next answer is overdue, and again as soon as it comes."""
    driver, now = Asked(), [100.0]
    async with followed(driver, lambda: now[0]) as monitor:
        await asyncio.to_thread(driver.hangs.wait, PATIENCE_S)
        now[0] += 30
        assert await told(monitor) == (HealthState.HEALTHY, "")
        now[0] += 1
        assert await told(monitor) == (
            HealthState.UNKNOWN,
            "the driver has not said how its devices are for 31 s",
        )
        driver.may_go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            while await told(monitor) != (HealthState.HEALTHY, ""):
                await asyncio.sleep(0)


async def test_a_driver_that_speaks_by_itself_may_be_silent() -> None:
    """It has nothing new to say."""
    driver, now = SickProbe(), [100.0]
    driver.news.put_nowait(WELL)
    async with followed(driver, lambda: now[0]) as monitor:
        now[0] += 1e6
        assert await told(monitor) == (HealthState.HEALTHY, "")


async def test_a_device_that_is_not_found_any_more_is_on_the_stream_while_it_is_reported() -> None:
    """A node has pods that use it, and has to learn what became of it."""
    driver = SickProbe()
    driver.count = 1
    gone = Health(device="probe-1", healthy=False, message="it is gone")
    async with world() as w, w.plugin(driver):
        driver.news.put_nowait([*WELL, gone])
        assert names(await w.until_slices(lambda found: len(found) == 1)) == ["probe-0"]
        async with aclosing(w.kubelet.health(NAME)) as stream:
            assert [(r.pool, r.device, r.state, r.message) for r in await anext(stream)] == [
                (NODE, "probe-0", HealthState.HEALTHY, ""),
                (NODE, "probe-1", HealthState.UNHEALTHY, "it is gone"),
            ]
            driver.news.put_nowait(WELL)
            assert [report.device for report in await anext(stream)] == ["probe-0"]


class Unsure(Probe):
    """Says once how its devices are, and then cannot."""

    health_every_s = 0.0
    asked = 0

    def health(self) -> Iterable[Health]:
        self.asked += 1
        if self.asked == 1:
            return WELL
        raise FileNotFoundError("no such bus")


async def test_a_driver_that_cannot_tell_is_logged_on_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where the failure comes from is only told to those who want to know more."""
    caplog.set_level("DEBUG", "drayman.drivers.kit.health")
    problem = "FileNotFoundError: no such bus"
    async with followed(Unsure(), lambda: 100.0) as monitor, asyncio.timeout(PATIENCE_S):
        while await told(monitor) != (HealthState.UNKNOWN, problem):
            await asyncio.sleep(0)
    first, second = caplog.records[:2]
    said = f"driver {NAME} cannot tell how its devices are: {problem}"
    assert (first.levelname, first.getMessage(), first.exc_info) == ("ERROR", said, None)
    assert second.levelname == "DEBUG"
    assert second.exc_info


class Chatty(Probe):
    """Speaks without end, and never waits for anything."""

    async def health(self) -> AsyncIterator[Iterable[Health]]:
        while True:
            yield WELL


async def test_a_driver_that_speaks_without_end_stops_nothing() -> None:
    """Others have their turn after each report."""
    async with followed(Chatty(), lambda: 100.0) as monitor:
        assert await told(monitor) == (HealthState.HEALTHY, "")

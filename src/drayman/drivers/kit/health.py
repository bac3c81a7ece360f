"""How the devices are: what the driver says, as a stream for the node and as taints for everybody else.

A taint comes with a report that a device is not healthy and goes with the next one that it is. A driver that fails to say how its devices
are, or does not answer when it is asked, leaves the taints as they are, and the node is told that nothing is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from inspect import isasyncgenfunction
from time import monotonic, time
from typing import Any, Final

from msgspec.structs import replace

from drayman.api.resource import Device, DeviceTaint
from drayman.cluster.backoff import Backoff
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import words_of
from drayman.drivers.kit.model import Hardware, Health
from drayman.drivers.kit.threads import Threads, driver_errors
from drayman.plugins.model import HEALTH_TIMEOUT_S, HealthState, ReportedHealth

_log: Final = logging.getLogger(__name__)
_REPEAT_S: Final = HEALTH_TIMEOUT_S / 3
"""A node takes silence for a plugin that hangs."""


def taint_of(driver: str, health: Health) -> DeviceTaint | None:
    """The taint of a device that is not healthy, or of which that cannot be told, if the driver has one for that."""
    if health.healthy or (health.healthy is None and not health.taint_key):
        return None
    key = health.taint_key or f"{driver}/unhealthy"
    return DeviceTaint(key=key, value=health.taint_value, effect=health.effect)


def tainted(driver: str, hardware: Hardware, reports: Iterable[Health]) -> Hardware:
    """Hardware with the taints that reports about it call for."""
    taints: dict[str, list[DeviceTaint]] = {}
    for report in reports:
        taint = taint_of(driver, report)
        if taint is not None:
            taints.setdefault(report.device, []).append(taint)
    if not taints:
        return hardware

    def with_taints(device: Device) -> Device:
        more = taints.get(device.name)
        return replace(device, taints=(*device.taints, *more)) if more else device

    return replace(
        hardware, groups=tuple(tuple(map(with_taints, group)) for group in hardware.groups)
    )


class HealthMonitor:
    """Follows the reports of one driver."""

    def __init__(
        self,
        driver: Driver,
        threads: Threads,
        on_change: Callable[[], None],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`clock` is replaced by tests."""
        self._driver = driver
        self._clock = clock
        self._threads = threads
        self._on_change = on_change
        self.is_known = False
        """Whether there has been a report."""
        self._reports: tuple[Health, ...] = ()
        self._updated = int(time())
        self._heard_at = clock()
        self._problem = "nothing has been reported yet"
        self._changed = asyncio.Condition()
        self._backoff = Backoff(initial=1.0, cap=60.0)

    @property
    def reports(self) -> tuple[Health, ...]:
        """The last ones."""
        return self._reports

    async def run(self) -> None:
        """Follow until cancelled."""
        failures = 0
        while True:
            try:
                async with aclosing(self._stream()) as stream:
                    async for reports in stream:
                        failures = 0
                        await self._take(tuple(reports))
            except Exception as error:
                failures += 1
                problem = words_of(error)
                name = self._driver.name
                _log.error("driver %s cannot tell how its devices are: %s", name, problem)
                _log.debug("driver %s: where that comes from", name, exc_info=error)
                await self._lose(problem)
                await asyncio.sleep(self._backoff.delay(failures))

    async def _stream(self) -> AsyncGenerator[Iterable[Health], None]:
        """What the driver reports, whichever way it does."""
        method: Any = self._driver.health
        if self._is_followed:
            with driver_errors():
                async with aclosing(method()) as stream:
                    async for reports in stream:
                        yield reports
                        await asyncio.sleep(
                            0
                        )  # a driver that never waits would stop everything else
        else:
            yield await self._threads.call(method)
        await asyncio.sleep(self._driver.health_every_s)

    @property
    def _is_followed(self) -> bool:
        """Whether the driver speaks when there is something new. Others are asked, and have to answer."""
        return isasyncgenfunction(self._driver.health)

    def _silence(self) -> str:
        """What is wrong with a driver that has not answered for too long; empty if nothing is."""
        silent_s = self._clock() - self._heard_at
        if self._is_followed or silent_s <= self._driver.health_every_s + HEALTH_TIMEOUT_S:
            return ""
        return f"the driver has not said how its devices are for {silent_s:.0f} s"

    async def _take(self, reports: tuple[Health, ...]) -> None:
        before = self._reports
        self._reports, self._updated, self._problem = reports, int(time()), ""
        self._heard_at = self._clock()
        if reports != before or not self.is_known:
            self.is_known = True
            self._on_change()
        async with self._changed:
            self._changed.notify_all()

    async def _lose(self, problem: str) -> None:
        self._problem = problem
        async with self._changed:
            self._changed.notify_all()

    async def watch(
        self, devices: Callable[[], Sequence[tuple[str, str]]]
    ) -> AsyncIterator[tuple[ReportedHealth, ...]]:
        """Complete lists for a node: now, after every report, and again before a node takes silence for trouble.

        `devices` are pools and names.
        """
        while True:
            yield self._complete(devices())
            try:
                async with asyncio.timeout(_REPEAT_S), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _complete(self, devices: Sequence[tuple[str, str]]) -> tuple[ReportedHealth, ...]:
        found: dict[str, Health] = {}
        for report in self._reports:
            worst = found.get(report.device)
            if worst is None or worst.healthy is not False:
                found[report.device] = report
        problem = self._problem or self._silence()
        return tuple(self._report(pool, name, found.get(name), problem) for pool, name in devices)

    def _report(self, pool: str, name: str, health: Health | None, problem: str) -> ReportedHealth:
        if problem:
            state, message = HealthState.UNKNOWN, problem
        elif health is None or health.healthy is None:
            state, message = HealthState.UNKNOWN, health.message if health else ""
        else:
            state = HealthState.HEALTHY if health.healthy else HealthState.UNHEALTHY
            message = health.message
        return ReportedHealth(pool, name, state, self._updated, message=message)

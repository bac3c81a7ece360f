"""How the devices of this node are, as their drivers report it: a stream of each registered driver is followed.

A report counts for as long as its driver says, then nothing is known: a driver that hangs says nothing. When a stream ends, everything that
came by it is forgotten.

A driver that reports without end must not keep the node from its work. Nor can its reports be queued: what it said long ago is of no use.
So its stream is left for a moment, and a new one begins with how the devices are then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol

from drayman.plugins.errors import CallError
from drayman.plugins.model import HEALTH_TIMEOUT_S, HealthState, ReportedHealth, cut_message

AGAIN_S: Final = 5.0
"""Between two attempts to follow a driver, which may not report at all."""
MOST_REPORTS: Final = 20
DEVICES_PER_REPORT: Final = 100
"""Longer ones count as several."""
PAUSE_S: Final = 1.0
"""A driver that makes `MOST_REPORTS` within this time is not listened to for just as long."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Condition:
    """How a device is."""

    state: HealthState = HealthState.UNKNOWN
    message: str = ""


UNKNOWN: Final = Condition()


class Reporter(Protocol):
    """A driver as somebody who follows it sees it."""

    def health(self) -> AsyncGenerator[tuple[ReportedHealth, ...], None]:
        """Complete lists, until the stream ends. Raises CallError."""
        ...


@dataclass(frozen=True, slots=True)
class _Entry:
    condition: Condition
    until: float


class DeviceHealth:
    """Of all devices of a node. `changed` is called with the driver of a device that is not as it was."""

    def __init__(
        self,
        changed: Callable[[str], None],
        again_s: float = AGAIN_S,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._changed = changed
        self._again_s = again_s
        self._pause_s = pause_s
        self._entries: dict[str, dict[tuple[str, str], _Entry]] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._expiry: dict[str, asyncio.TimerHandle] = {}

    def of(self, driver: str, pool: str, device: str) -> Condition:
        entry = self._entries.get(driver, {}).get((pool, device))
        return UNKNOWN if entry is None or entry.until <= monotonic() else entry.condition

    def follow(self, driver: str, reporter: Reporter | None) -> None:
        """A driver has been registered anew; None: it has gone."""
        task = self._following.pop(driver, None)
        if task is not None:
            task.cancel()
        self._forget(driver)
        if reporter is not None:
            self._following[driver] = asyncio.create_task(self._follow(driver, reporter))

    async def stop(self) -> None:
        tasks = list(self._following.values())
        for driver in list(self._following):
            self.follow(driver, None)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, driver: str, reporter: Reporter) -> None:
        """Again and again, until the driver is gone."""
        was_told = False
        while True:
            try:
                async with aclosing(reporter.health()) as stream:
                    is_too_much = await self._listen(driver, stream)
            except CallError as error:
                _log.debug("driver %s does not report health: %s", driver, error)
                is_too_much = False
            if is_too_much:
                if not was_told:
                    _log.warning("driver %s reports health too often; some is left out", driver)
                was_told = True
                await asyncio.sleep(self._pause_s)
            else:
                self._forget(driver)
                await asyncio.sleep(self._again_s)

    async def _listen(
        self, driver: str, stream: AsyncGenerator[tuple[ReportedHealth, ...], None]
    ) -> bool:
        """Follow a stream to its end, or until there is too much of it, which is returned. Raises CallError."""
        since, count = monotonic(), 0
        async for reports in stream:
            self._take(driver, reports)
            now = monotonic()
            if now - since >= self._pause_s:
                since, count = now, 0
            is_first = count == 0  # a single one is never too often, however many devices there are
            count += 1 + len(reports) // DEVICES_PER_REPORT
            if count >= MOST_REPORTS and not is_first:
                return True
        return False

    def _take(self, driver: str, reports: Sequence[ReportedHealth]) -> None:
        now = monotonic()
        before = self._known(driver, now)
        self._entries[driver] = {
            (each.pool, each.device): _Entry(
                Condition(each.state, cut_message(each.message)),
                now + (each.timeout_s if each.timeout_s > 0 else HEALTH_TIMEOUT_S),
            )
            for each in reports
        }
        self._wait_for_silence(driver)
        if self._known(driver, now) != before:
            self._changed(driver)

    def _known(self, driver: str, now: float) -> dict[tuple[str, str], Condition]:
        entries = self._entries.get(driver, {})
        return {
            key: entry.condition
            for key, entry in entries.items()
            if entry.until > now and entry.condition != UNKNOWN
        }

    def _wait_for_silence(self, driver: str) -> None:
        """See to it that somebody hears of reports that have become too old."""
        timer = self._expiry.pop(driver, None)
        if timer is not None:
            timer.cancel()
        entries = self._entries.get(driver, {}).values()
        now = monotonic()
        ends = [entry.until for entry in entries if entry.until > now]
        if ends:
            loop = asyncio.get_running_loop()
            self._expiry[driver] = loop.call_later(min(ends) - now, self._expire, driver)

    def _expire(self, driver: str) -> None:
        self._changed(driver)
        self._wait_for_silence(driver)

    def _forget(self, driver: str) -> None:
        timer = self._expiry.pop(driver, None)
        if timer is not None:
            timer.cancel()
        if self._entries.pop(driver, None):
            self._changed(driver)

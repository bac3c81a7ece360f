"""Events: what a component reports about an object.

Events must never hold up the work they are about. `record` only puts one into a buffer, and a task writes what has gathered, many in one
request. The buffer is bounded: when the server cannot keep up, the oldest Normal events are dropped first, then the oldest warnings, and
the dropped ones are counted. The same event again is not a new object: the first repetition turns the written one into a series, and later
ones are counted and written from time to time. client-go does the same; unlike there, an event with a different note is a different event,
so that the newest reason can be read.

Where a component has very much to say about one object, such as each of the pods that it makes for it, `PER_OBJECT` bounds that as in
client-go. Warnings have a bound of their own, so that they are not lost among what is normal.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Final, Self

from drayman.api import codec
from drayman.api.core import EventType
from drayman.api.struct import Json
from drayman.api.times import micro_timestamp
from drayman.bounded import Bounded
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    NotFoundError,
    StatusError,
    UnreachableError,
)
from drayman.cluster.event_buffer import EventBuffer, Reference
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import EVENTS, JsonObject
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import CreateWrite

__all__ = ["EventRecorder", "Reference"]

_log: Final = logging.getLogger(__name__)

BOUND: Final = 10_000
"""Events in the buffer."""
BATCH: Final = 100
"""Events that are written before others gather."""
TOGETHER: Final = 50
"""Events in one request. They are small."""
GATHER_SECONDS: Final = 0.05
"""How long events gather before they are written: a burst becomes few requests."""
SERIES_SECONDS: Final = 360.0
"""After this long without a repetition the next one is a new event."""
COUNT_SECONDS: Final = 30.0
"""How often the count of a series is written."""
REMEMBERED: Final = 4096
"""Events whose repetitions are recognised."""
PER_OBJECT: Final = 25
"""Different events about one object, of one type, that are written in a row."""
PER_OBJECT_SECONDS: Final = 300.0
"""After which there may be one more."""
LAST_CALL_SECONDS: Final = 2.0
"""How long `stop` tries to write what is left."""
_LONGEST_NOTE: Final = 1024
_RETRY_SECONDS: Final = 1.0


_Sameness = tuple[Reference, str, str, str, str, Reference | None]
"""What the events of one series have in common."""


@dataclass(slots=True)
class _Series:
    """An event that was recorded, and how often."""

    name: str
    namespace: str
    seen: int
    last: float
    counted: float
    """When the count was last written; as the loop's clock has it, like `last`."""
    first: JsonObject


class EventRecorder:
    """Records events of one component. Use it in `async with`, or between `start` and `stop`."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        bound: int = BOUND,
        per_object: int | None = None,
        last_call_s: float = LAST_CALL_SECONDS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`per_object` bounds different events about one object; None does not."""
        self._client = client
        self._component = component
        self._per_object = per_object
        self._allowances: Bounded[tuple[Reference, EventType], tuple[float, float]] = Bounded(
            REMEMBERED
        )
        """How many more events about an object there may be, and as of when."""
        self._last_call_s = last_call_s
        self._instance = f"{component}-{socket.gethostname()}"[:128]
        self._now = now
        self._options = WriteOptions(field_manager=component)
        self._numbers = count(time.time_ns())
        self._waiting = EventBuffer(bound)
        self._series: Bounded[_Sameness, _Series] = Bounded(REMEMBERED)
        self._repeated: Bounded[_Sameness, _Series] = Bounded(REMEMBERED)
        self._arrival = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._refused = 0
        self._spared = 0

    def __len__(self) -> int:
        """How many events wait to be written."""
        return len(self._waiting)

    @property
    def dropped(self) -> int:
        """Events that were never written: too many waited or were about one object, or the server refused them."""
        return self._waiting.dropped + self._refused + self._spared

    def record(
        self,
        regarding: Reference,
        type_: EventType,
        reason: str,
        note: str,
        action: str,
        related: Reference | None = None,
    ) -> None:
        """Queues an event to be written soon. Never blocks and never fails."""
        sameness = (regarding, type_, reason, note, action, related)
        now = time.monotonic()
        series = self._series.get(sameness)
        if series is not None and now - series.last < SERIES_SECONDS:
            series.seen += 1
            series.last = now
            self._repeated[sameness] = series
        elif not self._may_say_more(regarding, type_, now):
            self._spared += 1
            return
        else:
            event = self._event(regarding, type_, reason, note, action, related)
            meta = event["metadata"]
            self._series[sameness] = _Series(
                meta["name"], meta["namespace"], 1, now, -math.inf, event
            )
            self._waiting.put(event)
        self._series.renew(sameness)
        self._arrival.set()

    def _may_say_more(self, regarding: Reference, type_: EventType, now: float) -> bool:
        """Whether there may be another event about an object; if so, it counts."""
        if self._per_object is None:
            return True
        most = float(self._per_object)
        left, since = self._allowances.get((regarding, type_), (most, now))
        left = min(most, left + (now - since) / PER_OBJECT_SECONDS)
        is_allowed = left >= 1.0
        self._allowances[regarding, type_] = (left - is_allowed, now)
        return is_allowed

    def start(self) -> None:
        """Begins to write, in a task of its own."""
        if self._task is not None:
            raise RuntimeError("the recorder has been started already")
        self._task = asyncio.create_task(self._write(), name=f"events of {self._component}")

    async def stop(self) -> None:
        """Writes what is left, as far as that is possible in a short time, and ends."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()
        why = await self._write_the_rest()
        if why:
            _log.warning("%s: %d events were not written: %s", self._component, len(self), why)

    async def _write_the_rest(self) -> str:
        """Why events are left, if any are. Those of a request whose outcome is unknown are included."""
        batch: list[JsonObject] = []
        try:
            async with asyncio.timeout(self._last_call_s):
                while batch := self._waiting.take(BATCH):
                    await self._write_batch(batch)
        except TimeoutError:
            self._waiting.put_back(batch)
            return f"the server took no more of them within {self._last_call_s:g} s"
        except UnreachableError as error:
            return str(error)
        return ""

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _event(
        self,
        regarding: Reference,
        type_: EventType,
        reason: str,
        note: str,
        action: str,
        related: Reference | None,
    ) -> JsonObject:
        event: JsonObject = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                # Names have at most 253 characters, and no part of one ends in a hyphen.
                "name": f"{regarding.name[:236].rstrip('-.')}.{next(self._numbers):016x}",
                "namespace": regarding.namespace or "default",
            },
            "eventTime": self._moment(),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": codec.to_dict(regarding),
            "note": note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 1] + "…",
            "type": type_,
        }
        if related is not None:
            event["related"] = codec.to_dict(related)
        return event

    def _moment(self) -> str:
        return micro_timestamp(self._now())

    async def _write(self) -> None:
        while True:
            if not len(self):
                await self._wait()
            await asyncio.sleep(GATHER_SECONDS)
            batch = self._waiting.take(BATCH)
            try:
                await self._write_batch(batch)
                await self._count_repetitions()
            except asyncio.CancelledError:
                # Events that were already written will be found to exist when they are written again.
                self._waiting.put_back(batch)
                raise
            except UnreachableError as error:
                _log.info("%s: events wait: %s", self._component, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _wait(self) -> None:
        """Until there is an event, or a count of a series to write."""
        self._arrival.clear()
        try:
            # Not `wait_for`: before Python 3.12 it ignores that it is cancelled when an event arrives in the same moment.
            async with asyncio.timeout(COUNT_SECONDS if self._repeated else None):
                await self._arrival.wait()
        except TimeoutError:
            return

    async def _write_batch(self, batch: list[JsonObject]) -> None:
        """Events without an answer are queued again. Raises UnreachableError where there are any."""
        unanswered: list[tuple[JsonObject, UnreachableError]] = []

        def refused(event: JsonObject, error: ClusterError) -> None:
            if isinstance(error, UnreachableError):
                unanswered.append((event, error))
            elif not isinstance(error, AlreadyExistsError):
                self._refuse(event["metadata"]["name"], error)

        bundles = [
            Bundle([CreateWrite(EVENTS, event, options=self._options)], partial(refused, event))
            for event in batch
        ]
        await write_together(self._client, bundles, largest=TOGETHER)
        if unanswered:
            self._waiting.put_back([event for event, _ in unanswered])
            raise unanswered[0][1]

    def _refuse(self, name: str, error: ClusterError) -> None:
        """Such as an event for a namespace that is being deleted."""
        self._refused += 1
        _log.info("%s: event %s: %s", self._component, name, error)

    async def _count_repetitions(self) -> None:
        """Writes the counts of series that have not been written for a while; the first repetition at once."""
        now = time.monotonic()
        due = [
            (sameness, series)
            for sameness, series in self._repeated.items()
            if now - series.counted >= COUNT_SECONDS
        ]
        for sameness, series in due:
            del self._repeated[sameness]
            series.counted = now
            await self._write_count(series)

    async def _write_count(self, series: _Series) -> None:
        repeated: dict[str, Json] = {"count": series.seen, "lastObservedTime": self._moment()}
        try:
            await self._client.patch(
                EVENTS,
                series.name,
                merge_patch({"series": repeated}),
                series.namespace,
                options=self._options,
            )
        except NotFoundError:
            # It has been cleaned up, or never arrived: write it again.
            await self._write_batch([series.first | {"series": repeated}])
        except StatusError as error:
            self._refuse(series.name, error)

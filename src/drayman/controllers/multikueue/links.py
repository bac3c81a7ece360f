"""The connection to each worker: made, watched over, and made again.

A worker is asked from time to time whether it is there. When it does not answer, everything that is known of it is thrown away, and when it
answers again it is read anew: so what was decided by its objects was decided by objects that it had at that moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import ClusterError, ConfigurationError
from drayman.cluster.kube.client import HttpClient
from drayman.cluster.kube.retries import RetryPolicy
from drayman.cluster.kube.transport import ClientLimits
from drayman.cluster.options import ListOptions
from drayman.cluster.resources import NAMESPACES
from drayman.controllers.multikueue.connecting import Access
from drayman.controllers.multikueue.workers import Worker
from drayman.workloads.dispatching.life import Silence

_log: Final = logging.getLogger(__name__)
PING_S: Final = 2.0
"""How often a worker is asked whether it is there."""
_ANSWER_S: Final = 10.0
_SYNC_S: Final = 60.0
_PAUSES: Final = Backoff(initial=0.5, cap=15.0)
_ONCE: Final = RetryPolicy(attempts=2)
_LIMITS: Final = ClientLimits(connect_seconds=5.0, request_seconds=30.0, silent_seconds=30.0)

BAD_CONFIG: Final = "BadKubeConfig"
NO_CONNECTION: Final = "ClientConnectionFailed"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a worker cannot be used."""

    reason: str
    message: str


class Link:
    """The connection to one worker. `run` keeps it up until cancelled."""

    def __init__(
        self,
        name: str,
        find: Callable[[], Awaitable[Access]],
        make: Callable[[HttpClient], Worker],
        changed: Callable[[str], None],
        *,
        clock: Callable[[], float],
        silent_since: float,
    ) -> None:
        """`find` says how to reach it, `make` begins to follow it, and `changed` is called when it begins or ceases to answer."""
        self.name = name
        self._find = find
        self._make = make
        self._changed = changed
        self._clock = clock
        self.worker: Worker | None = None
        """None while it does not answer."""
        self.trouble: Trouble | None = None
        self.is_removed = False
        """Whether its MultiKueueCluster is gone: it is kept until nothing of ours is left there."""
        self._heard = silent_since

    @property
    def silence(self) -> Silence:
        """Since when it has not answered."""
        return Silence(self._heard)

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self._session()
                failures = 0
            except ConfigurationError as error:
                self._say(Trouble(BAD_CONFIG, str(error)))
            except (ClusterError, TimeoutError, OSError) as error:
                self._say(Trouble(NO_CONNECTION, str(error) or "it does not answer in time"))
            failures += 1
            await asyncio.sleep(_PAUSES.delay(failures))

    async def _session(self) -> None:
        """From the first answer to the last. Ends by itself when it is to be reached otherwise."""
        access = await self._find()
        async with HttpClient(access.connection, limits=_LIMITS, retries=_ONCE) as client:
            await _ping(client)
            worker = self._make(client)
            try:
                await worker.informers.start()
                async with asyncio.timeout(_SYNC_S):
                    await worker.informers.wait_synced()
                self._heard, self.worker = self._clock(), worker
                self._say(None)
                while await self._is_same(access):
                    await _ping(client)
                    self._heard = self._clock()
                    await asyncio.sleep(PING_S)
            finally:
                was_there, self.worker = self.worker is not None, None
                if was_there:
                    self._changed(self.name)
                await worker.informers.stop()

    async def _is_same(self, access: Access) -> bool:
        try:
            return (await self._find()).digest == access.digest
        except ConfigurationError:
            raise
        except ClusterError:
            return True  # The manager could not be asked; that says nothing about the worker.

    def _say(self, trouble: Trouble | None) -> None:
        if trouble is not None and trouble != self.trouble:
            _log.warning("cluster %s: %s", self.name, trouble.message)
        changed = trouble != self.trouble or trouble is None
        self.trouble = trouble
        if changed:
            self._changed(self.name)


async def _ping(client: HttpClient) -> None:
    async with asyncio.timeout(_ANSWER_S):
        await client.list(NAMESPACES, options=ListOptions(limit=1))

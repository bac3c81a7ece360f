"""A scheduler at work only where it leads: of all that serve the same `schedulerName`, one places its pods.

Each name has a lease of its own, and a scheduler serves those of its names whose leases it holds. So two may work at the same time, on
different pods, and may decide to give the same device to two claims. That is settled where claims are written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from drayman.cluster.backoff import Backoff
from drayman.cluster.client import Client
from drayman.cluster.errors import LeadershipLostError
from drayman.cluster.leading import Election, LeaderElector
from drayman.placement.schedulers import LEASE_NAMESPACE, lease_of

_log: Final = logging.getLogger(__name__)

_RESTARTS: Final = Backoff(initial=1.0, cap=60.0)
_STABLE_S: Final = 600.0
"""After so long, earlier failures of a scheduler do not delay its restart any more."""

Report = Callable[[Mapping[str, str]], None]
"""Is called with who serves each `schedulerName`; empty for none, as far as is known."""


def _election(names: Iterable[str], identity: str) -> Election:
    """Among all schedulers that serve one of these names."""
    leases = tuple(lease_of(name) for name in names)
    return Election(names=leases, namespace=LEASE_NAMESPACE, identity=identity)


class _Work(Protocol):
    """A scheduler that runs once."""

    def follow(self) -> None: ...

    async def run(self) -> None: ...


class Candidate:
    """Schedules the pods of those names for which it leads, and stands by for the others."""

    def __init__(
        self,
        client: Client,
        names: Iterable[str],
        identity: str,
        make: Callable[[frozenset[str]], _Work],
        report: Report,
    ) -> None:
        """`make` makes the scheduler of some names for one term; it looks at the cluster from scratch, since others may have been at work
        before."""
        self._names = tuple(sorted(names))
        self._elector = LeaderElector(
            client, _election(self._names, identity), report=self._reported
        )
        self._make = make
        self._report = report
        self._leaders: dict[str, str] | None = None
        self._is_decided = asyncio.Event()

    async def decided(self) -> None:
        """Returns when it has begun to follow the cluster, or first found that it does not lead."""
        await self._is_decided.wait()

    async def run(self) -> None:
        """Until cancelled. A scheduler that fails is replaced by a new one, which learns the state of the cluster from scratch."""
        failures = 0
        while True:
            begun = time.monotonic()
            try:
                await self.lead()
            except LeadershipLostError as error:
                _log.warning("the scheduler stands by: %s", error)
            except Exception:
                failures = 0 if time.monotonic() - begun > _STABLE_S else failures
                failures += 1
                delay = _RESTARTS.delay(failures)
                _log.exception("the scheduler has failed, and is started again in %.1f s", delay)
                await asyncio.sleep(delay)

    async def lead(self) -> None:
        """Waits until it leads, and schedules. Raises LeadershipLostError when it no longer leads for any name."""
        await self._elector.lead(self._work)

    async def _work(self, leases: frozenset[str]) -> None:
        scheduler = self._make(frozenset(n for n in self._names if lease_of(n) in leases))
        scheduler.follow()
        self._is_decided.set()
        await scheduler.run()

    def _reported(self, holders: Mapping[str, str]) -> None:
        if not self._elector.held:
            self._is_decided.set()
        leaders = {name: holders[lease_of(name)] for name in self._names}
        if leaders != self._leaders:
            self._leaders = leaders
            self._report(leaders)

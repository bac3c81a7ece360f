"""A scheduler at work only while it leads: of all that serve the same `schedulerName`, one places its pods.

Each name has a lease of its own. Schedulers that have no name in common do not share one: both work, on different pods, and may decide to
give the same device to two claims. That is settled where claims are written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from drayman.cluster.client import Client
from drayman.cluster.errors import LeadershipLostError
from drayman.cluster.leading import Election, LeaderElector, Report

_log: Final = logging.getLogger(__name__)

LEASE_NAMESPACE: Final = "kube-system"
_LEASE: Final = "drayman-scheduler"
_OWN_NAME: Final = "drayman"


def lease_of(name: str) -> str:
    """The lease of the schedulers that serve a `schedulerName`."""
    return _LEASE if name == _OWN_NAME else f"{_LEASE}-{name}"


def election(names: Iterable[str], identity: str) -> Election:
    """Among all schedulers that serve one of these names."""
    leases = tuple(lease_of(name) for name in sorted(names))
    return Election(names=leases, namespace=LEASE_NAMESPACE, identity=identity)


class _Work(Protocol):
    """A scheduler that runs once."""

    def follow(self) -> None: ...

    async def run(self) -> None: ...


class Candidate:
    """Schedules whenever it leads, and stands by otherwise."""

    def __init__(
        self, client: Client, election: Election, make: Callable[[], _Work], report: Report
    ) -> None:
        """`make` makes the scheduler for one term; it looks at the cluster from scratch, since others may have been at work before."""
        self._elector = LeaderElector(client, election, report=self._reported)
        self._identity = election.identity
        self._make = make
        self._report = report
        self._leader: str | None = None
        self._is_decided = asyncio.Event()

    async def decided(self) -> None:
        """Returns when it has begun to follow the cluster, or first found that it does not lead."""
        await self._is_decided.wait()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._elector.lead(self._work)
            except LeadershipLostError as error:
                _log.warning("the scheduler stands by: %s", error)

    async def _work(self) -> None:
        scheduler = self._make()
        scheduler.follow()
        self._is_decided.set()
        await scheduler.run()

    def _reported(self, leader: str) -> None:
        if leader != self._identity:
            self._is_decided.set()
        if leader != self._leader:
            self._leader = leader
            self._report(leader)

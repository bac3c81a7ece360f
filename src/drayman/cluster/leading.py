"""One of many does the work: leader election with a Lease.

The holder of the lease renews it; other candidates wait until it has not been renewed for its whole duration, by their own clocks. Times
written in the lease are for people to read: clocks of two machines are never compared. A leader that cannot renew stops working before the
others may begin, which is why the renew deadline is shorter than the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from drayman.api.times import micro_timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    LeadershipLostError,
    NotFoundError,
)
from drayman.cluster.resources import LEASES, JsonObject

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The lease, the candidate, and how long things take, in seconds."""

    name: str
    namespace: str
    identity: str
    """Unique among the candidates, such as host name and process id."""
    lease_seconds: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_seconds:
            raise ValueError("retry period < renew deadline < lease duration must hold")


class LeaderElector:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._election = election
        self._now = now
        self._lease: JsonObject | None = None
        self._observed: tuple[str, float] = ("", 0.0)
        """The lease's version when it last changed, and when we saw that."""

    @property
    def holder(self) -> str:
        """Who leads, as far as is known; empty for none."""
        return "" if self._lease is None else str(self._lease["spec"].get("holderIdentity") or "")

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Waits until elected, then runs `work` while the lease is ours, and gives the lease up when it ends.

        Raises LeadershipLostError, after cancelling `work`, when the lease could not be kept.
        """
        while not await self._try_once():
            await asyncio.sleep(self._election.retry_period)
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew(), name=f"lease {self._election.name}")
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await _cancel(working)
                renewing.result()
                raise LeadershipLostError(
                    f"lease {self._election.name!r} was lost to {self.holder!r}"
                )
            await working
        finally:
            await _cancel(renewing)
            await _cancel(working)
            await self._release()

    async def _renew(self) -> None:
        """Returns when the lease is lost."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while loop.time() - renewed < self._election.renew_deadline:
            await asyncio.sleep(self._election.retry_period)
            remaining = self._election.renew_deadline - (loop.time() - renewed)
            try:
                async with asyncio.timeout(max(remaining, 0.0)):
                    if await self._try_once():
                        renewed = loop.time()
            except TimeoutError:
                return
            if self.holder != self._election.identity:
                return

    async def _try_once(self) -> bool:
        """Takes or renews the lease if that is possible now. Failures of the server count as not possible."""
        try:
            self._lease = await self._read_or_create()
            self._observe()
            if self.holder not in ("", self._election.identity) and not self._is_expired():
                return False
            self._lease = await self._client.update(LEASES, self._claimed(self._lease))
        except ConflictError:
            return False
        except ClusterError as error:
            _log.warning("lease %s: %s", self._election.name, error)
            return False
        self._observe()
        return True

    async def _read_or_create(self) -> JsonObject:
        name, namespace = self._election.name, self._election.namespace
        try:
            return await self._client.get(LEASES, name, namespace)
        except NotFoundError:
            blank: JsonObject = {"metadata": {"name": name, "namespace": namespace}, "spec": {}}
        try:
            return await self._client.create(LEASES, blank, namespace)
        except AlreadyExistsError:
            return await self._client.get(LEASES, name, namespace)

    def _claimed(self, lease: JsonObject) -> JsonObject:
        """The lease as ours, renewed now."""
        spec = dict(lease.get("spec") or {})
        moment = micro_timestamp(self._now())
        if spec.get("holderIdentity") != self._election.identity:
            spec["acquireTime"] = moment
            spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
        spec["holderIdentity"] = self._election.identity
        spec["leaseDurationSeconds"] = self._election.lease_seconds
        spec["renewTime"] = moment
        return lease | {"spec": spec}

    def _observe(self) -> None:
        version = "" if self._lease is None else LEASES.codec.identity(self._lease).resource_version
        if version != self._observed[0]:
            self._observed = (version, asyncio.get_running_loop().time())

    def _is_expired(self) -> bool:
        """Whether the holder, since we began to watch it, has been silent for the whole duration of its lease."""
        spec = {} if self._lease is None else self._lease["spec"]
        held = spec.get("leaseDurationSeconds") or self._election.lease_seconds
        return asyncio.get_running_loop().time() - self._observed[1] >= float(held)

    async def _release(self) -> None:
        """Lets the next candidate in at once. If that fails, the lease expires by itself."""
        try:
            while self._lease is not None and self.holder == self._election.identity:
                spec = self._lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
                try:
                    self._lease = await self._client.update(LEASES, self._lease | {"spec": spec})
                except ConflictError:
                    # A renewal may have been written even though its answer was not awaited.
                    self._lease = await self._read_or_create()
        except ClusterError as error:
            _log.info("lease %s runs out by itself: %s", self._election.name, error)


async def _cancel(task: asyncio.Future[None]) -> None:
    """Ends a task and waits for it. What it raises on the way out is raised."""
    if task.done():
        return
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise

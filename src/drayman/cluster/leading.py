"""One of many does the work: leader election with Leases.

The holder of a lease renews it; other candidates wait until it has not been renewed for its whole duration, by their own clocks. Times
written in the lease are for people to read: clocks of two machines are never compared. A leader that cannot renew stops working before the
others may begin, which is why the renew deadline is shorter than the lease.

A candidate may want several leases, one for each thing that it does and others may do too. It works with those that it holds, and goes on
trying to get the rest: so each thing is done while there is a candidate for it, however their wishes overlap. All take leases in the order
of their names, so that of two with the same wishes one has them all as a rule.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
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

_RELEASES: Final = 20
_PAUSE_S: Final = 0.05
"""How often, and after which pause, a lease is given up that changes at the same time."""

_JITTER: Final = 0.2
"""By which part of it a retry period is drawn out, at most: candidates that were started together do not stay in step."""

Report = Callable[[Mapping[str, str]], None]
"""Is called with the holder of each lease; empty if it has none, as far as is known."""
Work = Callable[[frozenset[str]], Awaitable[None]]
"""What a candidate does while it holds these leases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The leases, the candidate, and how long things take, in seconds."""

    names: tuple[str, ...]
    namespace: str
    identity: str
    """Unique among the candidates, such as host name and process id. One that takes the place of a candidate that has surely ended may use
    its identity, and then continues at once where that one would have to be waited for."""
    lease_seconds: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_seconds:
            raise ValueError("retry period < renew deadline < lease duration must hold")

    def __str__(self) -> str:
        """The leases, for messages."""
        return ", ".join(f"{self.namespace}/{name}" for name in self.names)


class LeaderElector:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        report: Report = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`report` is called when this candidate begins to work with some leases, when it no longer does, and after each try to get one."""
        self._election = election
        self._report = report
        self._leases = [_Lease(client, election, name, now) for name in sorted(election.names)]

    @property
    def holders(self) -> dict[str, str]:
        """Who has each lease, as far as is known; empty for none."""
        return {lease.name: lease.holder for lease in self._leases}

    @property
    def held(self) -> frozenset[str]:
        """The leases with which this candidate may work."""
        return frozenset(lease.name for lease in self._leases if lease.is_held)

    async def lead(self, work: Work) -> None:
        """Waits for a lease, runs `work` with those that are ours, and gives them up when it ends.

        Whenever others are ours than before, `work` is cancelled and begun with those. Raises LeadershipLostError when none is left.
        """
        try:
            while not self.held:
                await self._try(self._leases, self._election.renew_deadline)
                if not self.held:
                    self._report(self.holders)
                    await asyncio.sleep(self._pause())
            while await self._term(work):
                if not self.held:
                    raise LeadershipLostError(self._why_lost())
        finally:
            for lease in self._leases:
                await lease.release()
            self._report(self.holders)

    def _why_lost(self) -> str:
        others = {*self.holders.values()} - {"", self._election.identity}
        if not others:
            return f"{self._election} could not be renewed in time"
        return f"{self._election} was lost to {', '.join(map(repr, sorted(others)))}"

    async def _term(self, work: Work) -> bool:
        """Works with the leases that are held now. Whether that ended because others are held."""
        held = self.held
        self._report(self.holders)
        working = asyncio.ensure_future(work(held))
        keeping = asyncio.create_task(self._keep(held), name=f"lease {self._election}")
        try:
            await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
                return False
            await keeping
            return True
        finally:
            await _cancel(keeping)
            await _cancel(working)

    async def _keep(self, held: frozenset[str]) -> None:
        """Renews leases and tries to get the others, until other ones are held."""
        ours = [lease for lease in self._leases if lease.name in held]
        others = [lease for lease in self._leases if lease.name not in held]
        loop = asyncio.get_running_loop()
        while self.held == held:
            deadline = min(lease.deadline for lease in ours)
            await asyncio.sleep(min(self._pause(), max(deadline - loop.time(), 0.0)))
            # Together, so that the embedded store needs one commit for them.
            await asyncio.gather(*(lease.renew() for lease in ours))
            if others and self.held == held:
                spare = min(lease.deadline for lease in ours) - loop.time()
                await self._try(others, spare - self._election.retry_period)
                self._report(self.holders)

    async def _try(self, leases: Iterable[_Lease], seconds: float) -> None:
        """Takes those of some leases that are free. Limited in time, so that leases that are held are renewed meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                for lease in leases:
                    await lease.acquire()
        except TimeoutError:
            _log.warning("%s: the server does not answer in time", self._election)

    def _pause(self) -> float:
        return self._election.retry_period * random.uniform(1.0, 1.0 + _JITTER)


class _Lease:
    """One lease, as one candidate sees it. Failures of the server count as not possible."""

    def __init__(
        self, client: Client, election: Election, name: str, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._election = election
        self.name = name
        self._now = now
        self.deadline = -math.inf
        """Until when it is ours, if it is: counted from before its last renewal was sent, since others may have seen that at once."""
        self._known: JsonObject | None = None
        self._observed: tuple[str, float] = ("", 0.0)
        """The version when it last changed, and when we saw that."""

    @property
    def holder(self) -> str:
        """Empty if nobody holds it, as far as is known."""
        return "" if self._known is None else str(self._known["spec"].get("holderIdentity") or "")

    @property
    def is_held(self) -> bool:
        """Whether it is ours, and surely that of no other by now."""
        is_in_time = asyncio.get_running_loop().time() < self.deadline
        return is_in_time and self.holder == self._election.identity

    async def acquire(self) -> None:
        """Takes it if that is possible now."""
        if await self._is_free():
            await self._take()

    async def renew(self) -> None:
        """Renews it if that is possible until its deadline."""
        if self.is_held:
            try:
                async with asyncio.timeout_at(self.deadline):
                    await self.acquire()
            except TimeoutError:
                _log.warning("lease %s: the server does not answer in time", self.name)

    async def _is_free(self) -> bool:
        """Whether it can be taken: it is ours, or that of nobody, or of a holder that has been silent for too long."""
        try:
            await self._read()
        except ClusterError as error:
            self._failed(error)
            return False
        return self.holder in ("", self._election.identity) or self._is_expired()

    async def _take(self) -> None:
        """Writes it as ours, unless it has changed since it was read."""
        sent = asyncio.get_running_loop().time()
        try:
            claimed = self._claimed()
            if self._known is None:
                written = await self._client.create(LEASES, claimed, self._election.namespace)
            else:
                written = await self._client.update(LEASES, claimed)
        except (AlreadyExistsError, ConflictError):
            return
        except ClusterError as error:
            self._failed(error)
            return
        self._observe(written)
        self.deadline = sent + self._election.renew_deadline

    async def release(self) -> None:
        """Lets the next candidate in at once. If that fails, the lease expires by itself."""
        self.deadline = -math.inf
        try:
            for _ in range(_RELEASES):
                if self._known is None or self.holder != self._election.identity:
                    return
                spec = self._known["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
                try:
                    self._observe(await self._client.update(LEASES, self._known | {"spec": spec}))
                except ConflictError:
                    # A renewal whose answer was not awaited is being written, and can be read only when that is done.
                    await asyncio.sleep(_PAUSE_S)
                    await self._read()
            _log.info("lease %s runs out by itself: it keeps changing", self.name)
        except ClusterError as error:
            _log.info("lease %s runs out by itself: %s", self.name, error)

    async def _read(self) -> None:
        try:
            self._observe(await self._client.get(LEASES, self.name, self._election.namespace))
        except NotFoundError:
            self._known = None

    def _claimed(self) -> JsonObject:
        """The lease as ours, renewed now."""
        metadata = {"name": self.name, "namespace": self._election.namespace}
        lease = {"metadata": metadata, "spec": {}} if self._known is None else self._known
        spec = dict(lease["spec"])
        moment = micro_timestamp(self._now())
        if spec.get("holderIdentity") != self._election.identity:
            spec["acquireTime"] = moment
            spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
        spec["holderIdentity"] = self._election.identity
        spec["leaseDurationSeconds"] = self._election.lease_seconds
        spec["renewTime"] = moment
        return lease | {"spec": spec}

    def _observe(self, lease: JsonObject) -> None:
        self._known = lease if lease.get("spec") else lease | {"spec": {}}
        version = LEASES.codec.identity(lease).resource_version
        if version != self._observed[0]:
            self._observed = (version, asyncio.get_running_loop().time())

    def _is_expired(self) -> bool:
        """Whether the holder, since we began to watch it, has been silent for the whole duration of its lease."""
        spec = {} if self._known is None else self._known["spec"]
        held = spec.get("leaseDurationSeconds") or self._election.lease_seconds
        return asyncio.get_running_loop().time() - self._observed[1] >= float(held)

    def _failed(self, error: ClusterError) -> None:
        _log.warning("lease %s: %s", self.name, error)


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

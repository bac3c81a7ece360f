"""One of many does the work: leader election with Leases.

The holder of a lease renews it; other candidates wait until it has not been renewed for its whole duration, by their own clocks. Times
written in the lease are for people to read: clocks of two machines are never compared. A leader that cannot renew stops working before the
others may begin, which is why the renew deadline is shorter than the lease.

A candidate may need several leases, one for each thing that it does and others may do too. It holds all of them or none: while one of them
belongs to another candidate, the rest is left to those who need only that.
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

_RELEASES: Final = 20
_PAUSE_S: Final = 0.05
"""How often, and after which pause, a lease is given up that changes at the same time."""

Report = Callable[[str], None]
"""Is called with the identity of the leader; empty if there is none, as far as is known."""


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
        """`report` is called when this candidate begins to lead, when it no longer does, and whenever it was tried in vain."""
        self._election = election
        self._report = report
        self._leases = [_Lease(client, election, name, now) for name in election.names]

    @property
    def holder(self) -> str:
        """Who leads, as far as is known; empty for none. Of several leases, a holder other than this candidate counts first."""
        found = [lease.holder for lease in self._leases]
        others = [each for each in found if each not in ("", self._election.identity)]
        if others:
            return others[0]
        return self._election.identity if all(found) else ""

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Waits until elected, then runs `work` while the leases are ours, and gives them up when it ends.

        Raises LeadershipLostError, after cancelling `work`, when a lease could not be kept.
        """
        while not await self._take():
            self._report(self.holder)
            await asyncio.sleep(self._election.retry_period)
        self._report(self.holder)
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew(), name=f"lease {self._election}")
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await _cancel(working)
                renewing.result()
                raise LeadershipLostError(f"{self._election} was lost to {self.holder!r}")
            await working
        finally:
            await _cancel(renewing)
            await _cancel(working)
            await self._release()
            self._report(self.holder)

    async def _take(self) -> bool:
        """Takes all leases if that is possible now."""
        if not await self._each(_Lease.is_free):
            return False
        if await self._each(_Lease.take):
            return True
        await self._release()
        return False

    async def _each(self, step: Callable[[_Lease], Awaitable[bool]]) -> bool:
        """Whether a step succeeds with all leases. Together, so that the embedded store needs one commit for them."""
        return all(await asyncio.gather(*(step(lease) for lease in self._leases)))

    async def _renew(self) -> None:
        """Returns when a lease is lost."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while loop.time() - renewed < self._election.renew_deadline:
            await asyncio.sleep(self._election.retry_period)
            began = loop.time()
            remaining = self._election.renew_deadline - (began - renewed)
            try:
                async with asyncio.timeout(max(remaining, 0.0)):
                    if await self._each(_Lease.renew):
                        renewed = began
            except TimeoutError:
                return
            if self.holder != self._election.identity:
                return

    async def _release(self) -> None:
        for lease in self._leases:
            await lease.release()


class _Lease:
    """One lease, as one candidate sees it. Failures of the server count as not possible."""

    def __init__(
        self, client: Client, election: Election, name: str, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._election = election
        self._name = name
        self._now = now
        self._known: JsonObject | None = None
        self._observed: tuple[str, float] = ("", 0.0)
        """The version when it last changed, and when we saw that."""

    @property
    def holder(self) -> str:
        """Empty if nobody holds it, as far as is known."""
        return "" if self._known is None else str(self._known["spec"].get("holderIdentity") or "")

    async def is_free(self) -> bool:
        """Whether it can be taken: it is ours, or that of nobody, or of a holder that has been silent for too long."""
        try:
            await self._read()
        except ClusterError as error:
            self._failed(error)
            return False
        return self.holder in ("", self._election.identity) or self._is_expired()

    async def renew(self) -> bool:
        return await self.is_free() and await self.take()

    async def take(self) -> bool:
        """Writes it as ours, unless it has changed since it was read."""
        try:
            claimed = self._claimed()
            if self._known is None:
                written = await self._client.create(LEASES, claimed, self._election.namespace)
            else:
                written = await self._client.update(LEASES, claimed)
        except (AlreadyExistsError, ConflictError):
            return False
        except ClusterError as error:
            self._failed(error)
            return False
        self._observe(written)
        return True

    async def release(self) -> None:
        """Lets the next candidate in at once. If that fails, the lease expires by itself."""
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
            _log.info("lease %s runs out by itself: it keeps changing", self._name)
        except ClusterError as error:
            _log.info("lease %s runs out by itself: %s", self._name, error)

    async def _read(self) -> None:
        try:
            self._observe(await self._client.get(LEASES, self._name, self._election.namespace))
        except NotFoundError:
            self._known = None

    def _claimed(self) -> JsonObject:
        """The lease as ours, renewed now."""
        metadata = {"name": self._name, "namespace": self._election.namespace}
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
        _log.warning("lease %s: %s", self._name, error)


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

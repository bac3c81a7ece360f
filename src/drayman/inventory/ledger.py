"""The ledger: who holds which device, share and capacity.

It records holdings and nothing derived from them: what is left of a counter follows from the holdings and the slices published now,
so a slice that changes can never make the ledger wrong. `commit` and `release` are exact inverses, and each touches only what it names.

Its clock counts changes. A plan remembers the time at which the pools it takes from were looked at. Committing it after one of
those pools has changed is refused, so that no sequence of searches and commits can give the same thing twice. Code that derives
something from holdings asks what has changed since a time, and need not look at the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.inventory.device import Amount
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.undo import UndoLog

_CHANGES_KEPT: Final = 16_384
"""Changes of the whole cluster that can be looked up; callers further behind ask pool by pool."""

_CHANGES_KEPT_IN_POOL: Final = 128
"""Changes of one pool that can be looked up; callers further behind look at the whole pool."""


_NOTHING_CONSUMED: Final[Mapping[str, Amount]] = {}


class LedgerConflictError(Exception):
    """A plan takes what is held already, or was made before the last change to one of its pools."""


class Holding(Struct, frozen=True):
    """A device, or a share of one, that a holder has."""

    device: DeviceId
    share_id: str | None = None  # None: the whole device
    consumed: Mapping[str, Amount] = field(default_factory=dict)


Held: TypeAlias = Mapping[tuple[str, str | None], Holding]
"""What is held of one device, by holder and the id of its share."""


def whole_devices(claim: ResourceClaim) -> frozenset[DeviceId]:
    """The devices that a claim has for itself: neither shares of devices nor admin access."""
    return frozenset(DeviceId.of(result) for result in claim.status.results if result.is_exclusive)


class ClaimAllocation(Protocol):
    """A claim and what it is to get."""

    @property
    def claim(self) -> ResourceClaim: ...

    @property
    def allocation(self) -> AllocationResult: ...


class CommittablePlan(Protocol):
    """What `commit` needs of a plan."""

    @property
    def claims(self) -> tuple[ClaimAllocation, ...]: ...

    @property
    def basis(self) -> Mapping[PoolId, int]: ...


def holder_of(claim: ResourceClaim) -> str:
    """The name under which a claim holds devices: its uid, or namespace and name before it has one."""
    metadata = claim.metadata
    return metadata.uid or f"{metadata.namespace}/{metadata.name}"


def holdings_of(allocation: AllocationResult) -> tuple[Holding, ...]:
    """What an allocation takes. Admin access takes nothing."""
    return tuple(
        [
            Holding(
                tuple.__new__(DeviceId, (entry.driver, entry.pool, entry.device)),
                entry.share_id,
                {name: quantity.amount for name, quantity in entry.consumed_capacity.items()}
                if entry.consumed_capacity
                else _NOTHING_CONSUMED,
            )
            for entry in allocation.devices.results
            if not entry.admin_access
        ]
    )


class _PoolRecord:
    """What is held in one pool, and when that changed."""

    __slots__ = ("_changes", "_forgotten", "held", "revision")

    def __init__(self) -> None:
        self.held: dict[DeviceId, dict[tuple[str, str | None], Holding]] = {}
        self.revision = 0  # the time of the last change
        self._changes: list[tuple[int, DeviceId]] = []
        self._forgotten = 0  # the time of the last change that is no longer listed

    def note(self, time: int, device: DeviceId) -> None:
        self.revision = time
        self._changes.append((time, device))
        if len(self._changes) > _CHANGES_KEPT_IN_POOL:
            half = len(self._changes) // 2
            self._forgotten = self._changes[half - 1][0]
            del self._changes[:half]

    def changed_since(self, time: int) -> Iterable[DeviceId] | None:
        if time < self._forgotten:
            return None
        found: dict[DeviceId, None] = {}
        for when, device in reversed(self._changes):
            if when <= time:
                break
            found[device] = None
        return found


class Ledger:
    """Holders and their holdings, by holder and by pool."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self.clock = 0  # how many changes there were
        self._holders: dict[str, tuple[Holding, ...]] = {}
        self._pools: dict[tuple[str, str], _PoolRecord] = {}  # by driver and pool
        self._changes: list[DeviceId] = []  # the latest ones, one for each tick of the clock

    def commit(self, plan: CommittablePlan) -> None:
        """Record everything the plan gives, or nothing: raises LedgerConflictError where it cannot."""
        for pool_id, seen in plan.basis.items():
            if self.revision(pool_id) > seen:
                raise LedgerConflictError(f"pool {pool_id} changed since the plan was made")
        taken: dict[str, tuple[Holding, ...]] = {}
        for item in plan.claims:
            holder = holder_of(item.claim)
            if holder in self._holders or holder in taken:
                raise LedgerConflictError(f"claim {holder} holds devices already")
            taken[holder] = holdings_of(item.allocation)
        self._refuse_doubles(taken)
        for holder, holdings in taken.items():
            self._put(holder, holdings)

    def release(self, claim: ResourceClaim) -> bool:
        """Give back all that the claim holds; False if it holds nothing."""
        return self.forget(holder_of(claim))

    def observe(self, holder: str, holdings: Iterable[Holding]) -> None:
        """Record what a holder is known to hold, in place of what was known before.

        Unlike `commit` this is not checked: it repeats what an API server says, and that may be contradictory. What is
        known already is not a change: a watch reports to a scheduler everything that it wrote itself.
        """
        held = tuple(holdings)
        known = self._holders.get(holder)
        if known is not None:
            if known == held:
                return
            self.forget(holder)
        self._put(holder, held)

    def observe_claim(self, claim: ResourceClaim) -> None:
        """Record what the status of a claim says that it holds."""
        allocation = claim.status.allocation
        if allocation is None:
            self.forget(holder_of(claim))
        else:
            self.observe(holder_of(claim), holdings_of(allocation))

    def forget(self, holder: str) -> bool:
        holdings = self._holders.pop(holder, None)
        if holdings is None:
            return False
        self._log.note(self._put, holder, holdings)
        for holding in holdings:
            record = self._pools[holding.device[:2]]
            held = record.held[holding.device]
            del held[holder, holding.share_id]
            if not held:
                del record.held[holding.device]
            self._touch(record, holding.device)
        return True

    def holders(self) -> Iterator[tuple[str, tuple[Holding, ...]]]:
        yield from self._holders.items()

    def holdings(self, holder: str) -> tuple[Holding, ...]:
        """What a holder has; nothing if the holder is not known."""
        return self._holders.get(holder, ())

    def holders_of(self, device: DeviceId) -> tuple[str, ...]:
        """Who holds the device or a share of it."""
        return tuple([holder for holder, _ in self._held(device)])

    def held_in(self, pool_id: tuple[str, str]) -> Mapping[DeviceId, Held]:
        """The devices of a pool that are held, with the holdings. As they are now: good until the next change."""
        record = self._pools.get(pool_id)
        return {} if record is None else record.held

    def held(self, device: DeviceId) -> Collection[Holding]:
        """The holdings of a device and of shares of it."""
        return self._held(device).values()

    def _held(self, device: DeviceId) -> Held:
        record = self._pools.get(device[:2])
        return {} if record is None else record.held.get(device, {})

    def revision(self, pool_id: PoolId) -> int:
        """The time at which a holding in the pool last changed."""
        record = self._pools.get(pool_id)
        return 0 if record is None else record.revision

    def changes(self, since: int) -> Iterable[DeviceId] | None:
        """The devices whose holdings changed after that time; None if it is too long ago to tell."""
        ticks = self.clock - since
        if ticks > len(self._changes):
            return None
        return self._changes[len(self._changes) - ticks :]

    def changes_in(self, pool_id: PoolId, since: int) -> Iterable[DeviceId] | None:
        """The devices of a pool whose holdings changed after that time; None if it is too long ago to tell."""
        record = self._pools.get(pool_id)
        return () if record is None else record.changed_since(since)

    def _refuse_doubles(self, taken: Mapping[str, tuple[Holding, ...]]) -> None:
        given: dict[DeviceId, set[str | None]] = {}
        for holder, holdings in taken.items():
            for holding in holdings:
                shares = given.get(holding.device)
                if shares is None:
                    shares = given[holding.device] = {s for _, s in self._held(holding.device)}
                # A whole device has one holder; shares of one device have different ids.
                is_double = None in shares or holding.share_id in shares
                if is_double or (holding.share_id is None and shares):
                    raise LedgerConflictError(f"claim {holder}: {holding.device} is held already")
                shares.add(holding.share_id)

    def _put(self, holder: str, holdings: tuple[Holding, ...]) -> None:
        if len(holdings) > 1:
            unique = {(holding.device, holding.share_id): holding for holding in holdings}
            holdings = tuple(unique.values())
        self._holders[holder] = holdings
        self._log.note(self.forget, holder)
        for holding in holdings:
            device = holding.device
            pool_id = device[:2]
            record = self._pools.get(pool_id)
            if record is None:
                record = self._pools[pool_id] = _PoolRecord()
            held = record.held.get(device)
            if held is None:
                held = record.held[device] = {}
            held[holder, holding.share_id] = holding
            self._touch(record, device)

    def _touch(self, record: _PoolRecord, device: DeviceId) -> None:
        self.clock += 1
        record.note(self.clock, device)
        self._changes.append(device)
        if len(self._changes) > _CHANGES_KEPT:
            del self._changes[: _CHANGES_KEPT // 2]

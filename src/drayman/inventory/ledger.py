"""The ledger: who holds which device, share and capacity.

It records holdings and nothing derived from them: what is left of a counter follows from the holdings and the slices published now,
so a slice that changes can never make the ledger wrong. `commit` and `release` are exact inverses, and each touches only what it names.

A plan remembers the revision of every pool it takes from. Committing it after somebody else changed one of those pools is refused, so
that no sequence of searches and commits can give the same thing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.inventory.device import Amount
from drayman.inventory.identity import DeviceId, PoolId


class LedgerConflictError(Exception):
    """A plan takes what is held already, or was made before somebody else took from the same pool."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A device, or a share of one, that a holder has."""

    device: DeviceId
    share_id: str | None = None  # None: the whole device
    consumed: Mapping[str, Amount] = field(default_factory=dict)


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
        Holding(
            DeviceId(entry.driver, entry.pool, entry.device),
            entry.share_id,
            {name: quantity.amount for name, quantity in entry.consumed_capacity.items()},
        )
        for entry in allocation.devices.results
        if not entry.admin_access
    )


class Ledger:
    """Holders and their holdings, by holder and by pool."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[Holding, ...]] = {}
        self._pools: dict[PoolId, dict[DeviceId, dict[tuple[str, str | None], Holding]]] = {}
        self._revisions: dict[PoolId, int] = {}

    def commit(self, plan: CommittablePlan) -> None:
        """Record everything the plan gives, or nothing: raises LedgerConflictError where it cannot."""
        for pool_id, revision in plan.basis.items():
            if self.revision(pool_id) != revision:
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
        """Record what somebody is known to hold, in place of what was known before.

        Unlike `commit` this is not checked: it repeats what an API server says, and that may be contradictory.
        """
        self.forget(holder)
        self._put(holder, tuple(holdings))

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
        for holding in holdings:
            pool_id = holding.device.pool_id
            pool = self._pools[pool_id]
            held = pool[holding.device]
            del held[holder, holding.share_id]
            if not held:
                del pool[holding.device]
            if not pool:
                del self._pools[pool_id]
            self._touch(pool_id)
        return True

    def holders(self) -> Iterator[tuple[str, tuple[Holding, ...]]]:
        yield from self._holders.items()

    def holders_of(self, device: DeviceId) -> tuple[str, ...]:
        """Who holds the device or a share of it."""
        held = self._pools.get(device.pool_id, {}).get(device, {})
        return tuple(holder for holder, _ in held)

    def held_in(self, pool_id: PoolId) -> Mapping[DeviceId, Iterable[Holding]]:
        """The devices of a pool that somebody holds, with the holdings."""
        pool = self._pools.get(pool_id)
        if not pool:
            return {}
        return {device: held.values() for device, held in pool.items()}

    def revision(self, pool_id: PoolId) -> int:
        """A number that changes whenever a holding in the pool does."""
        return self._revisions.get(pool_id, 0)

    def _refuse_doubles(self, taken: Mapping[str, tuple[Holding, ...]]) -> None:
        given: dict[DeviceId, set[str | None]] = {}
        for holder, holdings in taken.items():
            for holding in holdings:
                held = self._pools.get(holding.device.pool_id, {}).get(holding.device, {})
                shares = given.setdefault(holding.device, {share for _, share in held})
                # A whole device has one holder; shares of one device have different ids.
                is_double = None in shares or holding.share_id in shares
                if is_double or (holding.share_id is None and shares):
                    raise LedgerConflictError(f"claim {holder}: {holding.device} is held already")
                shares.add(holding.share_id)

    def _put(self, holder: str, holdings: tuple[Holding, ...]) -> None:
        unique = {(holding.device, holding.share_id): holding for holding in holdings}
        self._holders[holder] = tuple(unique.values())
        for holding in unique.values():
            pool = self._pools.setdefault(holding.device.pool_id, {})
            pool.setdefault(holding.device, {})[holder, holding.share_id] = holding
            self._touch(holding.device.pool_id)

    def _touch(self, pool_id: PoolId) -> None:
        self._revisions[pool_id] = self._revisions.get(pool_id, 0) + 1

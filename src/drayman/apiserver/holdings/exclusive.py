"""No device is given away twice, whoever writes the allocation.

Schedulers decide from what they have seen, so two of them can give the same device to two claims at the same moment. The store decides
about writes one after the other, and this constraint looks at every allocation there: a device that another claim holds, a share beyond
its capacity, or a partition for which the counters of the pool do not suffice is refused.

This is about devices that drivers publish, or did when they were given away: a claim may be allocated to anything else, as in Kubernetes.

The index only says where to look: which claims have been given a device. What they hold is read from the claims as they are. So a
write that was decided and then failed on disk does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.cluster.embedded.errors import RefusedError
from drayman.cluster.embedded.model import Event, EventType, Key, Stored
from drayman.cluster.embedded.store import Store
from drayman.cluster.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.ledger import Holding, holdings_of
from drayman.inventory.limits import Excess, PoolLimits
from drayman.inventory.pool import newest_slices

CLAIMS: Final = "resourceclaims.resource.k8s.io"
SLICES: Final = "resourceslices.resource.k8s.io"
_POOLS_KEPT: Final = 20_000


class ExclusiveDevices:
    """The constraint on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims: dict[PoolId, dict[DeviceId, set[Key]]] = {}
        self._slices: dict[PoolId, set[Key]] = {}
        self._limits: Bounded[PoolId, PoolLimits] = Bounded(_POOLS_KEPT)
        for stored in store.list(SLICES):
            self._slices.setdefault(_pool_of(stored), set()).add(stored.key)
        for stored in store.list(CLAIMS):
            self._note_claim(stored)

    def check(self, events: Sequence[Event]) -> None:
        """Look at the allocations that a transaction makes. Raises RefusedError."""
        given = [event for event in events if _allocates(event)]
        if not given:
            return
        decided = {e.key: None if e.type is EventType.DELETED else e.stored for e in events}
        for event in given:
            # Before it is looked at, so that two claims of one transaction see each other.
            self._note_claim(event.stored)
        for event in given:
            self._check_claim(event, decided)

    def applied(self, events: Iterable[Event]) -> None:
        """Forget where not to look any more."""
        for event in events:
            if event.key.resource == CLAIMS:
                self._forget_claim(event)
            elif event.key.resource == SLICES:
                self._take_slice(event)

    # --- What a claim may have -----------------------------------------------------------------

    def _check_claim(self, event: Event, decided: Mapping[Key, Stored | None]) -> None:
        taken: dict[PoolId, dict[DeviceId, list[Holding]]] = {}
        for holding in _holdings(event.stored):
            pool = holding.device.pool_id
            if holding.device in self._claims.get(pool, {}):
                taken.setdefault(pool, {}).setdefault(holding.device, []).append(holding)
        for pool, own in taken.items():
            limits = self._limits_of(pool)
            draws = any(device.device in limits.consumed for device in own)
            held: dict[str, Mapping[Key, list[Holding]]] = {}
            for device in self._claims[pool] if draws else own:
                others = self._others(device, event.key, decided)
                held[device.device] = (
                    {event.key: own[device], **others} if device in own else others
                )
            for excess in limits.excesses(event.key, held):
                raise RefusedError(event.key, _why(pool, excess, event.key), excess.others)

    def _others(
        self, device: DeviceId, key: Key, decided: Mapping[Key, Stored | None]
    ) -> dict[Key, list[Holding]]:
        """What other claims hold of a device."""
        found: dict[Key, list[Holding]] = {}
        for other in self._claims.get(device.pool_id, {}).get(device, ()):
            if other == key:
                continue
            stored = decided[other] if other in decided else self._store.latest(other)
            held = [h for h in _holdings(stored) if h.device == device] if stored else []
            if held:
                found[other] = held
        return found

    # --- Where to look -------------------------------------------------------------------------

    def _note_claim(self, stored: Stored) -> None:
        for device in {holding.device for holding in _holdings(stored)}:
            pool = device.pool_id
            is_held = device in self._claims.get(pool, {})
            if is_held or device.device in self._limits_of(pool).devices:
                self._claims.setdefault(pool, {}).setdefault(device, set()).add(stored.key)

    def _forget_claim(self, event: Event) -> None:
        if event.previous is None:
            return
        latest = self._store.latest(event.key)
        kept = {holding.device for holding in _holdings(latest)} if latest is not None else set()
        for holding in _holdings(event.previous):
            if holding.device in kept:
                continue
            devices = self._claims.get(holding.device.pool_id, {})
            claims = devices.get(holding.device, set())
            claims.discard(event.key)
            if not claims:
                devices.pop(holding.device, None)
            if not devices:
                self._claims.pop(holding.device.pool_id, None)

    def _take_slice(self, event: Event) -> None:
        for stored in (event.previous, event.stored):
            if stored is not None:
                pool = _pool_of(stored)
                self._limits.pop(pool, None)
                self._slices.get(pool, set()).discard(event.key)
        if event.type is not EventType.DELETED:
            self._slices.setdefault(_pool_of(event.stored), set()).add(event.key)

    def _limits_of(self, pool: PoolId) -> PoolLimits:
        found = self._limits.get(pool)
        if found is None:
            keys = self._slices.get(pool, ())
            stored = [one for one in map(self._store.get, keys) if one is not None]
            slices = newest_slices(one.read(RESOURCE_SLICES.codec) for one in stored).get(pool, [])
            found = self._limits[pool] = PoolLimits.of(slices)
        return found


def _allocates(event: Event) -> bool:
    """Whether a write gives a claim devices that it did not have."""
    if event.key.resource != CLAIMS or event.type is EventType.DELETED:
        return False
    allocation = _claim(event.stored).status.allocation
    if allocation is None:
        return False
    return event.previous is None or _claim(event.previous).status.allocation != allocation


def _claim(stored: Stored) -> ResourceClaim:
    return stored.read(RESOURCE_CLAIMS.codec)


def _holdings(stored: Stored) -> tuple[Holding, ...]:
    allocation = _claim(stored).status.allocation
    return () if allocation is None else holdings_of(allocation)


def _pool_of(stored: Stored) -> PoolId:
    spec = stored.read(RESOURCE_SLICES.codec).spec
    return PoolId(spec.driver, spec.pool.name)


def _why(pool: PoolId, excess: Excess[Key], key: Key) -> str:
    """Names the claims that hold something; the one that is written itself if there are no others."""
    found = sorted(excess.others) or [key]
    holders = "ResourceClaim " + ", ".join(f"{one.namespace}/{one.name}" for one in found)
    if excess.counter is not None:
        counter_set, counter = excess.counter
        return (
            f"counter {counter} of {counter_set} in pool {pool} does not suffice beside {holders}"
        )
    device = f"device {pool}/{excess.device}"
    if excess.capacity:
        return f"{device} has not that much {excess.capacity} left beside {holders}"
    return f"{device} is allocated to {holders}"

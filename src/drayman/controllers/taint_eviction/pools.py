"""Which published devices are tainted with NoExecute.

Only slices of the highest generation of a pool count. Few devices are ever tainted, so only those are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drayman.api.resource import DeviceTaint, ResourceSlice
from drayman.inventory.taints import NO_EXECUTE

PoolId = tuple[str, str]
"""Driver and pool."""
Taints = tuple[tuple[int, DeviceTaint], ...]
"""The evicting taints of a device with their positions in its list."""


@dataclass(frozen=True, slots=True)
class _Slice:
    generation: int
    tainted: dict[str, Taints]


@dataclass(slots=True)
class _Pool:
    slices: dict[str, _Slice] = field(default_factory=dict)
    tainted: dict[str, Taints] = field(default_factory=dict)
    """By device."""


class Pools:
    """The evicting taints of all published devices."""

    def __init__(self) -> None:
        self._pools: dict[PoolId, _Pool] = {}
        self._pool_of: dict[str, PoolId] = {}
        self._tainted: set[PoolId] = set()

    @property
    def has_taints(self) -> bool:
        return bool(self._tainted)

    def taints_of(self, driver: str, pool: str, device: str) -> Taints:
        found = self._pools.get((driver, pool))
        return () if found is None else found.tainted.get(device, ())

    def put(self, slice_: ResourceSlice) -> set[PoolId]:
        """Takes in a slice as it is now. Returns the pools in which taints changed."""
        name, spec = slice_.metadata.name, slice_.spec
        pool = (spec.driver, spec.pool.name)
        changed = set()
        if self._pool_of.get(name, pool) != pool:
            changed |= self.remove(name)
        self._pool_of[name] = pool
        held = self._pools.setdefault(pool, _Pool())
        held.slices[name] = _Slice(spec.pool.generation, _tainted_devices(slice_))
        return changed | self._refresh(pool)

    def remove(self, name: str) -> set[PoolId]:
        """Forgets a slice. Returns the pools in which taints changed."""
        pool = self._pool_of.pop(name, None)
        if pool is None:
            return set()
        self._pools[pool].slices.pop(name, None)
        changed = self._refresh(pool)
        if not self._pools[pool].slices:
            del self._pools[pool]
        return changed

    def _refresh(self, pool: PoolId) -> set[PoolId]:
        held = self._pools[pool]
        newest = max((found.generation for found in held.slices.values()), default=0)
        tainted: dict[str, Taints] = {}
        for found in held.slices.values():
            if found.generation == newest:
                tainted |= found.tainted
        if tainted == held.tainted:
            return set()
        held.tainted = tainted
        (self._tainted.add if tainted else self._tainted.discard)(pool)
        return {pool}


def _tainted_devices(slice_: ResourceSlice) -> dict[str, Taints]:
    found: dict[str, Taints] = {}
    for device in slice_.spec.devices or ():
        if device.taints:
            taints = tuple(
                (index, taint)
                for index, taint in enumerate(device.taints)
                if taint.effect == NO_EXECUTE
            )
            if taints:
                found[device.name] = taints
    return found

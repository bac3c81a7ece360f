"""How many different devices there are on some nodes.

Most devices are seen from one node only, and are counted as numbers. Those that several nodes can use must be counted once, so they
are counted by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from drayman.inventory.bitsets import bitset, positions
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId, PoolId


@dataclass(slots=True)
class Tally:
    """Devices counted so far."""

    own: int = 0
    shared: set[DeviceId] = field(default_factory=set)

    @property
    def total(self) -> int:
        return self.own + len(self.shared)


class SharedDevices:
    """Which devices can be seen through several hardware objects."""

    def __init__(self, hardware: Iterable[NodeHardware]) -> None:
        self._seen: set[NodeHardware] = set(hardware)
        views = Counter(pool.id for each in self._seen for pool in each.pools)
        self._pools = frozenset(pool for pool, times in views.items() if times > 1)
        self._masks: dict[NodeHardware, int] = {}

    def among(self, hardware: NodeHardware) -> int:
        """The devices of a hardware object that others show too."""
        found = self._masks.get(hardware)
        if found is None:
            found = self._masks[hardware] = _in_pools(hardware, self._pools)
        return found

    def count(self, tally: Tally, hardware: NodeHardware, devices: int) -> None:
        """Add these devices of a hardware. None may be added twice to one tally."""
        if not devices:
            return
        shared = devices & self.among(hardware) if self._pools else 0
        tally.own += (devices & ~shared).bit_count()
        tally.shared.update(hardware.records[position].id for position in positions(shared))

    def fresh(self, listed: set[DeviceId], hardware: NodeHardware, devices: int) -> int:
        """The devices that have not been listed yet through another hardware object; marks them as listed."""
        shared = devices & self.among(hardware) if self._pools else 0
        for position in positions(shared):
            name = hardware.records[position].id
            if name in listed:
                devices &= ~(1 << position)
            listed.add(name)
        return devices


def _in_pools(hardware: NodeHardware, pools: frozenset[PoolId]) -> int:
    if pools.isdisjoint(pool.id for pool in hardware.pools):
        return 0
    records = hardware.records
    return bitset((i for i, r in enumerate(records) if r.id.pool_id in pools), len(records))

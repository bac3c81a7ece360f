"""Devices that a search left out because no selector wants them (`focus`): in the reasons of a refusal they count like all others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from drayman.allocator.problem.outcome import Rejection
from drayman.inventory.bitsets import positions
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.view import NodeView


class LeftOut:
    """The devices of a node that a view of it does not show. Each of them drops out at one of the selectors."""

    def __init__(self, view: NodeView) -> None:
        self._shown = view.hardware
        self._others = [usage.hardware for usage in view.left_out]

    def dropped(self, selectors: Sequence[str], number: int) -> tuple[list[DeviceId], int]:
        """Those that the selector of this number drops, and how many pass it. At later tests there are none left."""
        found: list[DeviceId] = []
        remaining = 0
        if number < len(selectors):
            for hardware in self._others:
                before, _ = hardware.select(selectors[:number])
                after, _ = hardware.select(selectors[: number + 1])
                remaining += after.bit_count()
                found += [hardware.records[i].id for i in positions(before & ~after)]
        return found, remaining

    def added_to(self, rejection: Rejection, devices: list[DeviceId], remaining: int) -> Rejection:
        """The rejection with these devices as well, all of them in search order."""
        if not devices and not remaining:
            return rejection
        together = sorted((*rejection.devices, *devices), key=lambda d: self._order[d.pool_id])
        return replace(
            rejection, devices=tuple(together), remaining=rejection.remaining + remaining
        )

    @cached_property
    def _order(self) -> dict[PoolId, tuple[bool, PoolId]]:
        pools = [pool for hardware in (self._shown, *self._others) for pool in hardware.pools]
        return {pool.id: pool.search_order for pool in pools}

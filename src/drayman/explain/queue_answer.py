"""What there is to say about something that waits in a queue, as data."""

from __future__ import annotations

from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct

AHEAD_NAMED = 5
"""How many of those ahead are named."""


class Need(ApiStruct, kw_only=True):
    """What a workload asks of one flavor, and what there is."""

    flavor: str
    resource: str
    wanted: Quantity
    free: Quantity
    """What its queue could use of it now, borrowed quota included, once all that can get quota have it."""
    most: Quantity
    """What its queue could use if nobody else used anything."""
    overused: Quantity = Quantity.ZERO
    """What has to be given back before anything is free, because quota was taken away."""
    mismatch: str = ""
    """Why its pods cannot use the flavor at all."""

    @property
    def may_become_free(self) -> bool:
        """Whether it lacks something that others may give back."""
        return not self.mismatch and self.free.amount < self.wanted.amount <= self.most.amount

    @property
    def lacking(self) -> Quantity:
        """How much more would have to be free."""
        short = self.wanted.amount - self.free.amount + self.overused.amount
        return Quantity(short, self.wanted.format) if short > 0 else Quantity.ZERO


class Charge(ApiStruct, kw_only=True):
    """What a workload holds of a flavor, or would."""

    flavor: str
    resource: str
    amount: Quantity


class PlaceInQueue(ApiStruct, kw_only=True):
    """Where a workload waits, and for what."""

    workload: str
    """As namespace/name."""
    local_queue: str
    cluster_queue: str = ""
    """Empty if the local queue does not exist."""
    cohorts: tuple[str, ...] = ()
    """Those that the cluster queue may borrow from, the nearest first."""
    priority: int = 0
    position: int | None = None
    """From 1, among all that wait in the cluster queue. None if it does not wait for its turn."""
    waiting: int = 0
    """How many wait in the cluster queue."""
    ahead: tuple[str, ...] = ()
    """Those ahead of it, the first few."""
    reason: str = ""
    """Of the condition QuotaReserved, as the engine would write it."""
    message: str = ""
    is_written: bool = False
    """Whether that is what the condition of the Workload says. Of those that ask for the same, only the first is told."""
    needs: tuple[Need, ...] = ()
    victims: tuple[str, ...] = ()
    """Workloads that have to give up quota for it."""
    charges: tuple[Charge, ...] = ()
    """What it holds, or would be given."""
    holders: tuple[HoldingWorkload, ...] = ()
    """Who holds what it lacks, those with the most first."""
    holders_left_out: int = 0


class HoldingWorkload(ApiStruct, kw_only=True):
    """A workload with quota."""

    workload: str
    owner: str = ""
    """What it was made for, as Kind/name."""
    cluster_queue: str
    local_queue: str = ""
    priority: int = 0
    admitted: bool = True
    """False: the quota is reserved, but the workload has not been let go yet."""
    evicted: bool = False
    """Whether it has been told to give it up."""
    since: str | None = None
    charges: tuple[Charge, ...] = ()
    admin_devices: int = 0
    """Devices that it looks at with admin access, at no charge."""
    ends: str = ""
    """When it is expected to end, if that is known."""
    ends_basis: str = ""

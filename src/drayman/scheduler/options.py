"""How a scheduler works, as far as that can be chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from drayman.allocator import Policy
from drayman.inventory.features import Features
from drayman.placement.claims import BINDING_TIMEOUT_S
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.placement.schedulers import SERVED
from drayman.scheduler.other_schedulers import UNSERVED_AFTER_S
from drayman.scheduler.queue import FIRST_BACKOFF_S, LONGEST_BACKOFF_S
from drayman.scheduler.rivals import SHIELDED_AFTER_S


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """How a scheduler works."""

    names: frozenset[str] = SERVED
    """The schedulerName of pods it cares for."""
    left: frozenset[str] = frozenset()
    """Names that another scheduler serves at the moment."""
    policy: Policy = Policy.BEST
    alone: bool = False
    """Whether no other scheduler is known: that is then reported for pods that name another one."""
    is_guarded: bool = False
    """Whether the server is known to refuse to give a device away twice. Then there is no need to look for that."""
    shielded_after_s: float = SHIELDED_AFTER_S
    """How long a taint rule for a device that two claims hold must exist before one of them is deallocated."""
    unserved_after_s: float = UNSERVED_AFTER_S
    """How long another scheduler has to take a pod, if one runs after all."""
    binding_timeout_s: float = BINDING_TIMEOUT_S
    first_backoff_s: float = FIRST_BACKOFF_S
    longest_backoff_s: float = LONGEST_BACKOFF_S
    features: Features = field(default_factory=Features)
    prices: PriceTable = NO_PRICES
    """Of nodes, besides what their labels say."""

    def limited_to(self, names: frozenset[str]) -> SchedulerOptions:
        """For some of the names, while the others are left to another scheduler."""
        return replace(self, names=names, left=self.names - names)

"""What a pod counts for in its queue, and what that comes to for each queue."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.placement.gangs.gang import GangKey
from drayman.placement.queueing.amounts import NOTHING, Amounts

FIRM_PRIORITY: Final = 100
"""From here on work in a queue is not preemptible, unless it says so itself."""
ClaimKey = tuple[str, str]
"""Namespace and name."""


class Stake(Struct, frozen=True):
    """A pod in a queue."""

    pod: Pod
    queue: str
    unit: GangKey | str
    """The gang that it is in, or its uid."""
    amounts: Amounts
    is_firm: bool
    """Whether it is not preemptible."""
    is_placed: bool
    part: str = ""
    """The subgroup of its gang."""
    claims: tuple[ClaimKey, ...] = ()
    is_certain: bool = True
    """Whether everything that it names is known, so that there is nothing left to count."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    def counts_like(self, other: Stake) -> bool:
        """Whether another version of the same pod counts the same."""
        return self.kind == other.kind

    @property
    def kind(self) -> Hashable:
        """All but the pod itself, which would take long to compare."""
        return (
            self.queue,
            self.unit,
            self.amounts,
            self.is_firm,
            self.is_placed,
            self.part,
            self.claims,
            self.is_certain,
        )


def is_preemptible(stated: bool | None, priority: int) -> bool:
    """Whether work in a queue may have to go for other work: as it says itself, or else by its priority."""
    return priority < FIRM_PRIORITY if stated is None else stated


class Sums:
    """What each queue has, with those below it."""

    __slots__ = ("firm", "used", "wanted")

    def __init__(self) -> None:
        self.used: dict[str, Amounts] = {}
        self.firm: dict[str, Amounts] = {}
        """Of what is used, by work that is not preemptible."""
        self.wanted: dict[str, Amounts] = {}
        """By all work that exists."""


def pairs(one: Sums, other: Sums) -> Iterator[tuple[dict[str, Amounts], dict[str, Amounts]]]:
    """The sums of two, side by side."""
    yield one.used, other.used
    yield one.firm, other.firm
    yield one.wanted, other.wanted


def add(sums: dict[str, Amounts], names: Iterable[str], amounts: Amounts) -> None:
    """Count amounts for queues. One of which nothing is left is not kept."""
    for name in names:
        total = sums.get(name, NOTHING).plus(amounts)
        if total == NOTHING:
            sums.pop(name, None)
        else:
            sums[name] = total

"""Which workers a workload is offered to.

Kueue offers a workload to all workers, and the first to answer gets it, whether or not its devices are there. Here a worker is asked first
whether all pods of the workload find nodes and devices: by the search that would place them, in the worker's cluster as it is now. It is
offered to all workers with room, and the first of them to admit it gets it. If none has room now, it is offered to those that would have
room if they were unused, so that it waits in their queues and may preempt there. A worker that could never run it is not asked, however
much quota it has.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Room(IntEnum):
    """What a worker has for a workload; less is better."""

    NOW = 0
    LATER = 1
    """It is in use."""
    NEVER = 2
    """Not even if the worker were unused."""
    REFUSED = 3
    """It cannot be handed over: something of the same name there says something else."""
    AWAY = 4
    """The worker does not answer, or does not exist."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known about a worker and a workload."""

    cluster: str
    room: Room
    reason: str = ""
    """Why there is no room now."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The workers that a workload is offered to, the best first, and what is said about it."""

    clusters: tuple[str, ...]
    message: str


def offer(outlooks: Sequence[Outlook], offered: Collection[str] = ()) -> Offer:
    """Whom to offer a workload to. `offered` are those that it is offered to already, which keep it while they answer and could run it.

    Outlooks are in the order in which the configuration lists the workers; of two that are equal, the first is better.
    """
    usable = [each for each in outlooks if each.room <= Room.LATER]
    best = min((each.room for each in usable), default=None)
    chosen = [each for each in usable if each.room == best or each.cluster in offered]
    chosen.sort(key=lambda each: each.room)
    clusters = tuple(each.cluster for each in chosen)
    return Offer(clusters, _message(outlooks, clusters, best))


def _message(outlooks: Sequence[Outlook], clusters: Sequence[str], best: Room | None) -> str:
    if best is None:
        said = "No cluster can run the workload"
    elif best is Room.NOW:
        said = f"The workload is offered to {', '.join(clusters)}, where its pods have room"
    else:
        said = f"The workload is offered to {', '.join(clusters)}, where its pods have room as soon as others have ended"
    others = [f"{each.cluster}: {each.reason.rstrip('.')}" for each in outlooks if each.reason]
    return ". ".join([said, *others])


def first_admitted(clusters: Sequence[str], admitted: Collection[str]) -> str | None:
    """The worker that gets a workload: of those that have admitted it, the one that was best."""
    return next((each for each in clusters if each in admitted), None)

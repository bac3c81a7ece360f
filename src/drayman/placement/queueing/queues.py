"""Queues, and the tree that they form.

Shares are those of one resource, GPUs; of others a queue has quotas and limits alone. None of the amounts need be whole, so they are kept
as exact fractions; None is KAI's -1. A queue whose line of parents does not end is inactive, and says why: nothing starts in it, and
nobody else is disturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, TypeAlias

from msgspec import Struct

Amount: TypeAlias = Fraction | int
PRIORITY: Final = 100
"""Of a queue that does not state one."""


class Bounds(Struct, frozen=True):
    """What a queue says about a resource."""

    quota: Amount | None = None
    limit: Amount | None = None


class Queue(Struct, frozen=True, kw_only=True):
    """A queue of the API. Where it does not say of what, amounts are GPUs."""

    name: str
    parent: str = ""
    priority: int = PRIORITY
    created: float = 0.0
    """In seconds since the epoch."""
    quota: Amount | None = None
    """What it is entitled to; None: everything."""
    limit: Amount | None = None
    """What it never exceeds; None: there is no limit."""
    weight: Amount = 1
    """Its part of what is left over, beside queues of the same priority."""
    preempt_min_runtime: float | None = None
    """How long work of the queue runs before work of the same queue may take its place; None: as the parent says."""
    reclaim_min_runtime: float | None = None
    """The same for work of other queues."""
    cpu: Bounds = Bounds()
    """In thousandths."""
    memory: Bounds = Bounds()
    """In bytes."""

    def bounds(self, resource: str) -> Bounds:
        """Of a resource, by the name that it has in the API."""
        if resource == "gpu":
            return Bounds(self.quota, self.limit)
        return self.cpu if resource == "cpu" else self.memory


class QueueTree:
    """The queues of a cluster."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        given = {each.name: each for each in queues}
        self.inactive: Mapping[str, str] = {
            name: flaw for name in given if (flaw := _flaw(given, name)) is not None
        }
        self._queues = {name: each for name, each in given.items() if name not in self.inactive}
        self._children: dict[str, list[Queue]] = {}
        for each in self._queues.values():
            self._children.setdefault(each.parent, []).append(each)
        self._paths = {name: tuple(_upwards(self._queues, name)) for name in self._queues}

    def __contains__(self, name: str) -> bool:
        return name in self._queues

    def __getitem__(self, name: str) -> Queue:
        return self._queues[name]

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def children(self, name: str = "") -> list[Queue]:
        """The queues directly below one, or those at the top."""
        return self._children.get(name, [])

    def leaves(self, name: str) -> Iterator[str]:
        """The leaves below a queue, or itself if it is one."""
        upcoming = [name]
        while upcoming:
            at = upcoming.pop()
            children = self.children(at)
            upcoming += [each.name for each in children]
            if not children:
                yield at

    def is_leaf(self, name: str) -> bool:
        """Whether work may be in the queue: it exists and has no queues below it."""
        return name in self._queues and name not in self._children

    def path(self, name: str) -> tuple[str, ...]:
        """The queue and those above it, the widest last."""
        return self._paths[name]

    def parting(self, one: str, other: str) -> tuple[str, str]:
        """For two different leaves, the queues just below the point where their paths part."""
        left, right = reversed(self._paths[one]), reversed(self._paths[other])
        for mine, its in zip(left, right, strict=False):
            if mine != its:
                return mine, its
        raise ValueError(f"queue {one} is above or equal to queue {other}")

    def preempt_min_runtime(self, name: str) -> float:
        """The nearest setting from a queue upwards, in seconds. Zero is a setting."""
        found = (self._queues[each].preempt_min_runtime for each in self._paths[name])
        return next((seconds for seconds in found if seconds is not None), 0.0)

    def reclaim_min_runtime(self, name: str) -> float:
        """The same for reclaiming."""
        found = (self._queues[each].reclaim_min_runtime for each in self._paths[name])
        return next((seconds for seconds in found if seconds is not None), 0.0)


def _upwards(queues: Mapping[str, Queue], name: str) -> Iterator[str]:
    while name:
        yield name
        name = queues[name].parent


def _flaw(queues: Mapping[str, Queue], name: str) -> str | None:
    """Why a queue has no place in the tree."""
    seen: set[str] = set()
    at = name
    while at:
        if at not in queues:
            return f"spec.parentQueue: there is no queue {at}"
        if at in seen:
            return f"spec.parentQueue: queue {at} is above itself"
        seen.add(at)
        at = queues[at].parent
    return None

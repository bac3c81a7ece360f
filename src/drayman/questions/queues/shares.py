"""Queues in the sense of the KAI Scheduler: what each is entitled to, has and wants; who holds it, and who waits, and why."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from drayman.api.near_names import did_you_mean
from drayman.api.struct import ApiStruct
from drayman.explain.shares import part_of_queue
from drayman.placement.queueing.amounts import NOTHING
from drayman.placement.queueing.queues import Amount
from drayman.placement.queueing.stakes import Stake
from drayman.placement.state import ClusterState
from drayman.placement.world import World
from drayman.questions.errors import NoSuchObjectError
from drayman.quota.shares.live import LiveShares, Unit
from drayman.reasons.queues import title_of


class ShareRow(ApiStruct, kw_only=True):
    """A queue. Amounts are GPUs; none: without limit."""

    name: str
    parent: str = ""
    depth: int = 0
    """How many queues are above it."""
    priority: int = 100
    quota: float | None = None
    limit: float | None = None
    share: float = 0.0
    """Its fair share, by what all queues want now."""
    used: int | float = 0
    over_quota: float = 0.0
    """What it uses beyond its quota."""
    firm: int | float = 0
    """What of it is used by work that is not preemptible."""
    wanted: int | float = 0
    """By all work that exists, with what is used."""
    pending: int = 0
    """Pod groups, and pods that are in none, of which something waits."""
    why_inactive: str = ""


class WorkRow(ApiStruct, kw_only=True):
    """Work of a queue."""

    title: str
    queue: str
    gpus: int | float
    preemptible: bool
    why: str = ""
    """For work that waits: what its queue has to do with that."""


class ShareAnswer(ApiStruct, kw_only=True):
    """One queue."""

    queue: ShareRow
    holders: tuple[WorkRow, ...] = ()
    """Those that hold most first."""
    pending: tuple[WorkRow, ...] = ()
    unseen: tuple[str, ...] = ()


def share_rows(world: World) -> tuple[ShareRow, ...]:
    """All queues, each below its parent."""
    return tuple(_Rows(world.state).all())


def one_share(world: World, name: str) -> ShareAnswer:
    """One queue with its work, and that of those below it. Raises NoSuchObjectError."""
    rows = {each.name: each for each in share_rows(world)}
    if name not in rows:
        meant = did_you_mean(name, set(rows), "`drayman queues`")
        raise NoSuchObjectError(f"there is no Queue {name}{meant}")
    work = _Work(world)
    leaves = [each for each in rows if name in world.state.queues.path(each)] or [name]
    units = [unit for leaf in leaves for unit in world.state.queues.units_in(leaf)]
    holders = sorted(work.holding(units), key=lambda row: (-row.gpus, row.title))
    waiting = sorted(work.waiting(units), key=lambda row: row.title)
    return ShareAnswer(
        queue=rows[name],
        holders=tuple(holders),
        pending=tuple(waiting),
        unseen=world.unseen,
    )


class _Rows:
    def __init__(self, state: ClusterState) -> None:
        self._book = state.queues
        self._shares = LiveShares(state).of_queues()
        self._waiting: dict[str, int] = {}
        for queue in self._book.tree:
            for unit in self._book.units_in(queue.name):
                if any(not stake.is_placed for stake in self._book.pods_of(unit).values()):
                    for name in self._book.tree.path(queue.name):
                        self._waiting[name] = self._waiting.get(name, 0) + 1

    def all(self) -> Iterator[ShareRow]:
        yield from self._below("", 0)
        for name in sorted(self._book.astray()):
            yield ShareRow(name=name, why_inactive=self._book.flaw(name) or "")

    def _below(self, name: str, depth: int) -> Iterator[ShareRow]:
        sums = self._book.sums
        for queue in sorted(self._book.tree.children(name), key=lambda each: each.name):
            used = sums.used.get(queue.name, NOTHING).gpu
            quota = queue.quota
            yield ShareRow(
                name=queue.name,
                parent=queue.parent,
                depth=depth,
                priority=queue.priority,
                quota=_number(quota),
                limit=_number(queue.limit),
                share=float(self._shares[queue.name]),
                used=_gpus(used),
                over_quota=0.0 if quota is None else float(max(Fraction(0), used - quota)),
                firm=_gpus(sums.firm.get(queue.name, NOTHING).gpu),
                wanted=_gpus(sums.wanted.get(queue.name, NOTHING).gpu),
                pending=self._waiting.get(queue.name, 0),
            )
            yield from self._below(queue.name, depth + 1)


class _Work:
    def __init__(self, world: World) -> None:
        self._state = world.state
        self._book = world.state.queues
        self._now = world.now

    def holding(self, units: list[Unit]) -> Iterator[WorkRow]:
        for unit in units:
            placed = [each for each in self._book.pods_of(unit).values() if each.is_placed]
            if placed:
                yield self._row(unit, placed)

    def waiting(self, units: list[Unit]) -> Iterator[WorkRow]:
        for unit in units:
            waiting = [each for each in self._book.pods_of(unit).values() if not each.is_placed]
            if waiting:
                why = part_of_queue(self._state, unit, self._now)
                yield self._row(unit, waiting, why)

    def _row(self, unit: Unit, stakes: list[Stake], why: str = "") -> WorkRow:
        return WorkRow(
            title=title_of(self._book, unit),
            queue=stakes[0].queue,
            gpus=_gpus(sum((each.amounts.gpu for each in stakes), start=Fraction(0))),
            preemptible=not any(each.is_firm for each in stakes),
            why=why,
        )


def _number(amount: Amount | None) -> float | None:
    return None if amount is None else float(amount)


def _gpus(amount: Fraction | int) -> int | float:
    """A number of GPUs: whole ones as an integer."""
    return int(amount) if amount == int(amount) else float(amount)

"""The workloads that wait in one cluster queue: who comes next, and who has been tried in vain.

Who was tried and found no quota goes into a pool until something changes that could matter (`wake`), unless the queue is strict: then
its head stays and blocks those behind it. Workloads of equal shape get equal answers, so they wait as one group: all of a group go into
the pool when one of them is refused, and come back together. That is what keeps a wake-up cheap: it moves groups, not workloads.

Apart from these, some wait for themselves: those of a namespace that the queue does not serve, those that there is no room for, and those
that must not be tried before some time.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Final

from drayman.quota.entries import Entry
from drayman.quota.past_use import PastUse

Order = tuple[int, float, str]
Position = tuple[float, bool, Order]
"""The place of a workload among others: by the past use of its local queue, where that counts, then by its order."""


class Again(Enum):
    """What becomes of a workload that was tried and got no quota."""

    AT_ONCE = "at once"
    """It could have been otherwise: somebody else was first, or victims are on their way out."""
    VICTIMS = "victims"
    """As soon as its victims are gone, before all others of the queue: then and whenever it is tried again, until it has quota."""
    NO_QUOTA = "no quota"
    """Nothing of its shape gets quota now."""
    ALONE = "alone"
    """It is refused for a reason of its own."""
    ROOM = "room"
    """There is no room for its pods, whatever quota there is. It does not block a strict queue: others may need less."""
    ROOM_OF_ALL = "room of all"
    """The same, and so it is for all of its shape."""
    NAMESPACE = "namespace"
    """The queue does not serve its namespace, so it does not block a strict queue either."""


_FEW: Final = 64


class _Group:
    """Workloads of one shape, in their order. Those that have left are skipped when they come up."""

    __slots__ = ("heap", "limit")

    def __init__(self) -> None:
        self.heap: list[tuple[Order, str]] = []
        self.limit = _FEW
        """With how many items it is to be cleared of those that have left."""


class Waiting:
    """The queue of one cluster queue."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._past_use: PastUse | None = None
        self._falls = 0
        """The falls of past use when the fronts were last put in order."""
        self._entries: dict[str, Entry] = {}
        self._pooled: dict[Hashable, _Group] = {}
        self._ready: dict[Hashable, _Group] = {}
        self._fronts: list[tuple[Position, int, Hashable]] = []
        """The first of each group that is ready. Outdated ones are skipped."""
        self._alone: dict[str, Entry] = {}
        self._strangers: dict[str, Entry] = {}
        self._roomless: dict[str, Entry] = {}
        self._later: dict[str, Entry] = {}
        self._due: list[tuple[float, str]] = []
        """When those in `_later` are to be tried: a heap, in which outdated ones are skipped."""
        self._sticky: str = ""
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def order_by_past_use(self, past_use: PastUse | None, now: float) -> None:
        """Have workloads come first whose local queue has used less; None: as usual. Groups are then of one local queue each."""
        if (past_use is None) == (self._past_use is None):
            return
        self._past_use = past_use
        entries = tuple(self._entries.values())
        self._pooled.clear()
        self._ready.clear()
        self._fronts.clear()
        for entry in entries:
            self.add(entry, now)

    def _shape(self, entry: Entry) -> Hashable:
        """What makes workloads wait as one group."""
        return entry.shape if self._past_use is None else (entry.facts.queue, entry.shape)

    @property
    def sticky(self) -> str:
        """The workload that comes first since it drove out others, until it has quota or another one drives out somebody."""
        return self._sticky

    def forget_preemptor(self) -> None:
        """Have nobody come first for what it drove out."""
        self._sticky = ""

    def add(self, entry: Entry, now: float) -> None:
        """Have a workload wait, ready to be tried unless it must not be yet, or others of its shape have been tried in vain."""
        self.discard(entry.key)
        shape = self._shape(entry)
        pooled = self._pooled.get(shape)
        if pooled is not None and self._first(pooled, shape) is None:
            del self._pooled[shape]
            pooled = None
        self._entries[entry.key] = entry
        if entry.facts.requeue_at > now:
            self._put_off(entry)
        elif pooled is not None:
            self._put(pooled, shape, entry)
        else:
            self._push(entry)

    def discard(self, key: str) -> None:
        """Have a workload wait no longer. Groups notice when it would be its turn."""
        if self._entries.pop(key, None) is None:
            return
        for kept in (self._alone, self._strangers, self._roomless, self._later):
            kept.pop(key, None)
        if self._sticky == key:
            self._sticky = ""

    def head(self) -> Entry | None:
        """The workload to be tried next, if there is one. It stays where it is until `refuse` or `discard`."""
        if self._past_use is not None:
            if self._falls != self._past_use.falls:
                self._show_again()
            if self._sticky and self._is_ready(self._entries[self._sticky]):
                preemptor = self._entries[self._sticky]
                self._show(preemptor, self._shape(preemptor))
        elif self._sticky and self._is_ready(self._entries[self._sticky]):
            return self._entries[self._sticky]
        while self._fronts:
            position, _, shape = self._fronts[0]
            group = self._ready.get(shape)
            first = self._first(group, shape) if group is not None else None
            if first is not None and self._position(first) == position:
                return first
            heappop(self._fronts)
            if group is not None and first is None:
                del self._ready[shape]
            elif first is not None:
                self._show(first, shape)
        return None

    def _position(self, entry: Entry) -> Position:
        """The place of a workload among those that are ready."""
        if self._past_use is None:
            return 0.0, False, entry.facts.order
        return (
            self._past_use.share(entry.facts.queue),
            entry.key != self._sticky,
            entry.facts.order,
        )

    def refuse(self, entry: Entry, again: Again) -> None:
        """Put away a workload that was tried and got nothing."""
        if entry.key not in self._entries:
            return
        if again is Again.VICTIMS and not self.strict:
            self._sticky = entry.key
        elif again is Again.NAMESPACE:
            self._put_aside(entry, self._strangers)
        elif again is Again.ROOM and not entry.positions:
            self._put_aside(entry, self._roomless)
        elif again is Again.ROOM_OF_ALL and not entry.positions:
            self._put_all_aside(self._shape(entry))
        elif self.strict or again in (Again.AT_ONCE, Again.VICTIMS) or entry.positions:
            return
        elif again is Again.ALONE:
            self._put_aside(entry, self._alone)
        else:
            self._pool(self._shape(entry))

    def wake(self) -> None:
        """Have all those be tried again that found no quota."""
        for shape, group in self._pooled.items():
            self._merge(shape, group)
        self._pooled.clear()
        alone, self._alone = self._alone, {}
        for entry in alone.values():
            self._push(entry)

    def wake_roomless(self) -> bool:
        """Have those be tried again that there was no room for. Whether there are any."""
        roomless, self._roomless = self._roomless, {}
        for entry in roomless.values():
            self._push(entry)
        return bool(roomless)

    def try_again(self, entry: Entry) -> None:
        """Have one workload be tried again, unless it must not be yet."""
        if self.is_aside(entry) and entry.key not in self._later:
            for kept in (self._alone, self._strangers, self._roomless):
                kept.pop(entry.key, None)
            self._push(entry)

    def wake_strangers(self) -> None:
        """Have those be tried again whose namespace was not served."""
        strangers, self._strangers = self._strangers, {}
        for entry in strangers.values():
            self._push(entry)

    def wake_due(self, now: float) -> None:
        """Have those be tried whose time has come."""
        while self._due and self._due[0][0] <= now:
            due, key = heappop(self._due)
            entry = self._later.get(key)
            if entry is not None and entry.facts.requeue_at == due:
                del self._later[key]
                self._push(entry)

    def _put_off(self, entry: Entry) -> None:
        self._later[entry.key] = entry
        if len(self._due) >= max(_FEW, 2 * len(self._later)):
            self._due = [(each.facts.requeue_at, key) for key, each in self._later.items()]
            heapify(self._due)
        else:
            heappush(self._due, (entry.facts.requeue_at, entry.key))

    def is_aside(self, entry: Entry) -> bool:
        """Whether a workload that waits was tried in vain, or must not be tried yet."""
        return self.is_apart(entry.key) or self._shape(entry) in self._pooled

    def is_apart(self, key: str) -> bool:
        """Whether a workload waits for itself, apart from its group."""
        return (
            key in self._alone
            or key in self._strangers
            or key in self._roomless
            or key in self._later
        )

    def is_held_back(self, entry: Entry) -> bool:
        """Whether a workload is not tried again before something else changes than the room there is."""
        if entry.key in self._roomless:
            return False
        if self.strict and (first := self.head()) is not None and first.key != entry.key:
            return True
        return self.is_aside(entry)

    def in_order(self, first: Container[str] = ()) -> list[Entry]:
        """All that wait, in the order in which they would be tried as things are. `first` are those that wait for their victims."""
        preemptors: Container[str] = () if self.strict else first
        if self._past_use is None:
            return sorted(
                self._entries.values(),
                key=lambda each: (each.key not in preemptors, each.facts.order),
            )
        shares = {queue: self._past_use.share(queue) for queue in {e.facts.queue for e in self}}
        return sorted(
            self._entries.values(),
            key=lambda each: (
                shares[each.facts.queue],
                each.key not in preemptors,
                each.facts.order,
            ),
        )

    # Groups.

    def _push(self, entry: Entry) -> None:
        shape = self._shape(entry)
        group = self._ready.get(shape)
        if group is None:
            group = self._ready[shape] = _Group()
        self._put(group, shape, entry)
        if group.heap[0][0] == entry.facts.order:
            self._show(entry, shape)

    def _put(self, group: _Group, shape: Hashable, entry: Entry) -> None:
        """Into a group. Workloads that come and go, behind others that wait, would have it grow without end otherwise."""
        if len(group.heap) >= group.limit:
            group.heap = [item for item in set(group.heap) if self._is_in(item, shape)]
            heapify(group.heap)
            group.limit = max(_FEW, 2 * len(group.heap))
        heappush(group.heap, (entry.facts.order, entry.key))

    def _is_ready(self, entry: Entry) -> bool:
        return not self.is_apart(entry.key) and self._shape(entry) in self._ready

    def _show(self, first: Entry, shape: Hashable) -> None:
        if len(self._fronts) >= max(_FEW, 2 * len(self._ready)):
            self._show_again()
        self._count += 1
        heappush(self._fronts, (self._position(first), self._count, shape))

    def _show_again(self) -> None:
        """Leave out what is outdated, of which there may be any number behind the head of a strict queue."""
        if self._past_use is not None:
            self._falls = self._past_use.falls
        firsts = {shape: self._first(group, shape) for shape, group in self._ready.items()}
        self._fronts.clear()
        for shape, first in firsts.items():
            if first is None:
                del self._ready[shape]
            else:
                self._count += 1
                self._fronts.append((self._position(first), self._count, shape))
        heapify(self._fronts)

    def _first(self, group: _Group, shape: Hashable) -> Entry | None:
        """The first of a group that still waits in it."""
        heap = group.heap
        while heap:
            if self._is_in(heap[0], shape):
                return self._entries[heap[0][1]]
            heappop(heap)
        return None

    def _is_in(self, item: tuple[Order, str], shape: Hashable) -> bool:
        """Whether an item of a group stands for a workload that waits in it."""
        order, key = item
        entry = self._entries.get(key)
        return (
            entry is not None
            and entry.facts.order == order
            and self._shape(entry) == shape
            and not self.is_apart(key)
        )

    def _pool(self, shape: Hashable) -> None:
        group = self._ready.pop(shape, None)
        if group is None:
            return
        kept = self._pooled.get(shape)
        self._pooled[shape] = group if kept is None else _merged(kept, group)

    def _merge(self, shape: Hashable, group: _Group) -> None:
        there = self._ready.get(shape)
        both = group if there is None else _merged(there, group)
        self._ready[shape] = both
        first = self._first(both, shape)
        if first is not None:
            self._show(first, shape)

    def _put_all_aside(self, shape: Hashable) -> None:
        """There is no room for any workload of a group."""
        group = self._ready.pop(shape, None)
        for item in () if group is None else group.heap:
            if self._is_in(item, shape):
                self._put_aside(self._entries[item[1]], self._roomless)

    def _put_aside(self, entry: Entry, where: dict[str, Entry]) -> None:
        where[entry.key] = entry


def _merged(one: _Group, other: _Group) -> _Group:
    larger, smaller = (one, other) if len(one.heap) >= len(other.heap) else (other, one)
    for item in smaller.heap:
        heappush(larger.heap, item)
    larger.limit = max(larger.limit, 2 * len(larger.heap))
    return larger

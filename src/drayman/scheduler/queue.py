"""Which pods are next, and what the others wait for.

What is queued is a unit: a pod on its own, or those members of a gang that wait. A unit is decided about as a whole.

Pods that were refused do not poll. They wait until something happens that could help them, and they wait together with all pods of
the same shape: if one of them still does not fit, neither do the others, so an event wakes only the first of each shape. When that one
is placed, more of its shape follow, twice as many each time; when it is refused, the shape goes back to sleep. A freed device thus
costs one attempt per shape, however many thousand pods wait for it. A pod that is placed wakes only shapes with a hint that matches it
(`placement.hints`).

Units that are in queues of the KAI Scheduler have their places in line like all others; who of them takes the next such place is decided
by what their queues are entitled to (`Arbiter`).

Pods wait for a fixed time only after errors, with a back-off that doubles. Pure: the time is passed in.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from drayman.api.core import Pod
from drayman.placement.gangs.gang import GangKey
from drayman.placement.hints import Change, Hint
from drayman.placement.wake import Wake
from drayman.quota.shares.groups import Place
from drayman.scheduler.leaf_lines import LeafLines
from drayman.scheduler.unit import QueuedUnit

FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 10.0
_MOST_WOKEN: Final = 1024
_ALONE: Final = "alone"
"""Marks a shape that has only one pod."""


@dataclass(slots=True)
class _Sleepers:
    """Pods of one shape that were refused.

    They are kept in the order in which they are woken, so that one event costs the same however many of a shape sleep.
    """

    entries: dict[str, QueuedUnit] = field(default_factory=dict)
    interest: Wake = Wake.ANYTHING
    hint: Hint | None = None
    burst: int = 0  # how many were woken together last; 0 while all sleep
    awake: int = 0  # how many of those are still in line or being tried
    due: float | None = None  # when the first is woken even if nothing happens
    _ranks: dict[str, tuple[int, int]] = field(default_factory=dict)
    _order: list[tuple[tuple[int, int], str]] = field(default_factory=list)
    """A heap. Some of its units may have left since."""

    def add(self, entry: QueuedUnit) -> None:
        key, rank = entry.key, entry.rank
        self.entries[key], self._ranks[key] = entry, rank
        if len(self._order) > 2 * len(self.entries):
            self._order = [(rank, key) for key, rank in self._ranks.items()]
            heapq.heapify(self._order)
        else:
            heapq.heappush(self._order, (rank, key))

    def discard(self, key: str) -> None:
        self.entries.pop(key, None)
        self._ranks.pop(key, None)

    def take(self, most: int) -> list[QueuedUnit]:
        """The first of them, which leave."""
        taken: list[QueuedUnit] = []
        while self.entries and len(taken) < most:
            rank, key = heapq.heappop(self._order)
            if self._ranks.get(key) == rank:
                taken.append(self.entries[key])
                self.discard(key)
        return taken


class Arbiter(Protocol):
    """Says whose turn it is among units that are in queues of KAI."""

    @property
    def is_in_force(self) -> bool:
        """Whether there are such queues. If not, nothing else is asked."""

    def place(self, entry: QueuedUnit) -> Place:
        """The place of a unit in its queue."""

    def begin(self) -> None:
        """Nobody is in line, as far as was said."""

    def set_first(self, leaf: str, entry: QueuedUnit | None) -> None:
        """Who is the first in a queue."""

    def next(self, entry: QueuedUnit) -> QueuedUnit:
        """Which of those that are the first of each queue takes the place in line that is this one's."""


class Queue:
    """Pods to schedule: in line, asleep until something changes, or held back for a while after an error."""

    def __init__(
        self,
        *,
        first_backoff_s: float = FIRST_BACKOFF_S,
        longest_backoff_s: float = LONGEST_BACKOFF_S,
    ) -> None:
        self._first_backoff_s = first_backoff_s
        self._longest_backoff_s = longest_backoff_s
        self._entries: dict[str, QueuedUnit] = {}  # by key
        self._unit_of: dict[str, str] = {}  # keys of gangs, by uid of their members
        self._line: list[tuple[int, int, int, str]] = []  # rank, ticket, uid
        self._leaves: LeafLines | None = None  # as long as there are queues of KAI
        self.arbiter: Arbiter | None = None
        self._held_back: list[tuple[float, int, str]] = []
        self._alarms: list[tuple[float, str]] = []
        self._naps: list[tuple[float, int, Hashable]] = []  # of shapes
        self._sleeping: dict[Hashable, _Sleepers] = {}
        self._hopeful: dict[Hint, dict[Hashable, _Sleepers]] = {}  # those with a hint, by shape
        self._waiting: set[str] = set()  # for something of their own
        self._numbers = 0
        self._tickets = 0
        self.unit_left: Callable[[str], None] = lambda _: None
        """Called with the key of a unit that no longer waits."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        """Whether a pod is queued."""
        return uid in self._entries or uid in self._unit_of

    def is_any_due(self, now: float) -> bool:
        """Whether `take` may return a pod."""
        self._return_held_back(now)
        return bool(self._line)

    def get(self, uid: str) -> QueuedUnit | None:
        """The unit that a pod is in."""
        return self._entries.get(self._unit_of.get(uid, uid))

    def unit(self, key: str) -> QueuedUnit | None:
        """The unit of a key."""
        return self._entries.get(key)

    def add(
        self,
        pod: Pod,
        gang: GangKey | None = None,
        priority: int | None = None,
        leaf: str | None = None,
    ) -> None:
        """Put a pod in line with its unit, or record its new version. A unit that changed is tried again at once.

        `priority` is what the group of a gang says about that, `leaf` the queue of KAI that the pod is in.
        """
        uid = pod.metadata.uid
        key = uid if gang is None else gang.text
        if uid in self and self._unit_of.get(uid, uid) != key:
            self.remove(uid)  # it was in another unit before
        entry = self._entries.get(key)
        if entry is None:
            self._numbers += 1
            entry = self._entries[key] = QueuedUnit(key, {uid: pod}, self._numbers, gang)
        else:
            self._hand_on(self._leave_shape(entry))
            entry.pods[uid] = pod
        if leaf != entry.leaf:
            self._leaf_changed(entry)
            entry.ticket = -1  # its place is in another line
        entry.priority, entry.leaf, entry.request = priority, leaf, None
        self._leaf_changed(entry)
        if gang is not None:
            self._unit_of[uid] = key
        if entry.ticket < 0:
            self._put_in_line(entry)

    def note(self, pod: Pod) -> None:
        """Record the new version of a pod whose chances have not changed."""
        entry = self.get(pod.metadata.uid)
        if entry is not None:
            entry.pods[pod.metadata.uid] = pod

    def remove(self, uid: str) -> None:
        """A pod no longer waits. What is left of its unit is tried again: it may be enough without that pod."""
        entry = self.get(uid)
        if entry is None:
            return
        self._unit_of.pop(uid, None)
        self._hand_on(self._leave_shape(entry))
        self._let_go(entry, (uid,))

    def rejoin(self, entry: QueuedUnit, pod: Pod) -> QueuedUnit:
        """A pod of a unit was not bound after all. Returns the unit that it waits with; where that waits is left to the caller."""
        if entry.key not in self._entries:
            entry.pods.clear()
        current = self._entries.setdefault(entry.key, entry)
        current.pods[pod.metadata.uid] = pod
        if entry.gang is not None:
            self._unit_of[pod.metadata.uid] = entry.key
        return current

    def gangs(self) -> list[QueuedUnit]:
        """The gangs that have members waiting."""
        keys = dict.fromkeys(self._unit_of.values())
        return [self._entries[key] for key in keys]

    def take(self, most: int, now: float) -> list[QueuedUnit]:
        """The next pods, the most important first. They stay known until they are placed, put to sleep or removed."""
        self._return_held_back(now)
        taken: list[QueuedUnit] = []
        while self._line and len(taken) < most:
            position = heapq.heappop(self._line)
            if self._is_in_line(*position[-2:]):
                entry = self._entries[position[-1]]
                first = entry if entry.leaf is None else self._entitled(entry)
                if first is not entry:
                    heapq.heappush(self._line, position)
                    entry = first
                self._leaf_changed(entry)
                entry.ticket = -1
                entry.attempts += 1
                taken.append(entry)
        return taken

    def _entitled(self, entry: QueuedUnit) -> QueuedUnit:
        """Of the units in line that are in queues of KAI, the one whose turn it is. It takes the place of the first of them."""
        arbiter = self.arbiter
        if arbiter is None or not arbiter.is_in_force:
            self._leaves = None
            return entry
        if self._leaves is None:
            self._leaves = self._lines_of_leaves(entry, arbiter)
        for leaf, key in self._leaves.changes():
            arbiter.set_first(leaf, None if key is None else self._entries[key])
        return arbiter.next(entry)

    def _lines_of_leaves(self, first: QueuedUnit, arbiter: Arbiter) -> LeafLines:
        """The units that are in line now. The first of them has just left it, to be compared."""
        arbiter.begin()
        lines = LeafLines(self._is_in_line)
        keys = [key for *_, ticket, key in self._line if self._is_in_line(ticket, key)]
        for entry in (first, *(self._entries[key] for key in keys)):
            if entry.leaf is not None:
                lines.join(entry.leaf, arbiter.place(entry), entry.ticket, entry.key)
        return lines

    def _is_in_line(self, ticket: int, key: str) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.ticket == ticket

    def _leaf_changed(self, entry: QueuedUnit) -> None:
        if self._leaves is not None and entry.leaf is not None:
            self._leaves.changed(entry.leaf)

    def placed(self, entry: QueuedUnit, uids: Collection[str] = ()) -> None:
        """A pod, or these members of a gang, are being bound to nodes; others of that shape that slept may now fit too.

        Members of the gang that still wait are tried again at once: they need no longer start together.
        """
        sleepers = self._leave_shape(entry)
        if entry.gang is None:
            self._leaf_changed(entry)
            self._entries.pop(entry.key, None)
            self.unit_left(entry.key)
        else:
            for uid in uids:
                self._unit_of.pop(uid, None)
            self._let_go(entry, uids)
        if sleepers is not None and sleepers.burst and not sleepers.awake and sleepers.entries:
            self._wake(sleepers, min(sleepers.burst * 2, _MOST_WOKEN))

    def sleep(
        self, entry: QueuedUnit, shape: Hashable, interest: Wake, hint: Hint | None = None
    ) -> None:
        """The pod was refused. It is tried again when something it is interested in happens, or what it has a hint for."""
        if entry.key not in self._entries or entry.ticket >= 0:
            return  # gone, or changed and in line again
        left = self._leave_shape(entry)
        entry.shape, entry.hint, entry.failures = shape, hint, 0
        sleepers = self._sleeping.setdefault(shape, _Sleepers())
        sleepers.add(entry)
        sleepers.interest = interest if hint is None else interest | Wake.PODS
        self._set_hint(shape, sleepers, hint)
        sleepers.burst = 0
        if left is not sleepers:
            self._hand_on(left)

    def sleep_alone(
        self, entry: QueuedUnit, until: float | None = None, hint: Hint | None = None
    ) -> None:
        """The pod was refused for a reason that does not apply to its copies. It is tried again when something happens, or at `until`."""
        self.sleep(entry, (_ALONE, entry.key), Wake.ANYTHING, hint)
        if until is not None:
            self.wake_at(entry, until)

    def nap(self, entry: QueuedUnit, until: float) -> None:
        """The unit was tried a moment ago, in vain, and that took long: whatever has happened since, it is not tried again before then.

        If it was woken to try for its shape, it or another one tries then: what happened may help all of them.
        """
        shape = entry.shape
        sleepers = None if shape is None else self._sleeping.get(shape)
        if sleepers is None:
            self.sleep_alone(entry, until, entry.hint)
            return
        self.sleep(entry, shape, sleepers.interest, entry.hint)
        sleepers = self._sleeping.get(shape)
        if sleepers is not None and (sleepers.due is None or until < sleepers.due):
            sleepers.due = until
            self._tickets += 1
            heapq.heappush(self._naps, (until, self._tickets, shape))

    def wake_at(self, entry: QueuedUnit, until: float) -> None:
        """A unit that sleeps is tried again at some time, even if nothing happens before."""
        if entry.alarm is None or until < entry.alarm:
            entry.alarm = until
            heapq.heappush(self._alarms, (until, entry.key))

    def wait(self, entry: QueuedUnit) -> None:
        """The pod lacks something of its own, such as a claim. It is tried again when it changes, or by `wake_pods`."""
        if entry.key in self._entries and entry.ticket < 0:
            self._hand_on(self._leave_shape(entry))
            self._waiting.add(entry.key)

    def hold_back(self, entry: QueuedUnit, now: float) -> float:
        """Something went wrong, perhaps after the pod was placed. It is tried again after a while; returns that time."""
        if self._entries.setdefault(entry.key, entry) is not entry or entry.ticket >= 0:
            return now
        wait = min(self._first_backoff_s * 2.0 ** min(entry.failures, 30), self._longest_backoff_s)
        entry.failures += 1
        self.pause(entry, now + wait)
        return now + wait

    def pause(self, entry: QueuedUnit, until: float) -> None:
        """The pod is tried again at some time, whatever happens."""
        if self._entries.get(entry.key) is not entry or entry.ticket >= 0:
            return  # gone, or changed and in line again
        self._hand_on(self._leave_shape(entry))
        self._tickets += 1
        entry.ticket = self._tickets
        heapq.heappush(self._held_back, (until, entry.ticket, entry.key))

    def put_back(self, entry: QueuedUnit) -> None:
        """The decision about a pod was overtaken by that of another. It is tried again at once."""
        if self._entries.setdefault(entry.key, entry) is entry and entry.ticket < 0:
            self._hand_on(self._leave_shape(entry))
            self._put_in_line(entry)

    def wake(self, change: Change) -> bool:
        """Something happened that may help pods that are interested in it, or have a hint for it. Returns whether there are any."""
        if isinstance(change, Wake):
            helped = [each for each in self._sleeping.values() if each.interest & change]
        else:
            helped = [
                sleepers
                for hint, shapes in self._hopeful.items()
                if hint.matches(change)
                for sleepers in shapes.values()
            ]
        for sleepers in helped:
            self._try_first(sleepers)
        return bool(helped)

    def wake_pods(self, uids: Iterable[str]) -> None:
        """Something happened that concerns these pods alone."""
        for uid in uids:
            entry = self.get(uid)
            if entry is not None and self.is_idle(entry):
                self._leave_shape(entry)
                self._put_in_line(entry)

    def reconsider(self, gang: GangKey) -> bool:
        """A member of a gang has changed. If that waits for members, it is tried again; returns whether it is."""
        entry = self._entries.get(gang.text)
        if entry is None or entry.key not in self._waiting:
            return False
        self._leave_shape(entry)
        self._put_in_line(entry)
        return True

    def is_idle(self, entry: QueuedUnit) -> bool:
        """Whether the pod waits for something to happen: it is neither in line nor being tried."""
        if entry.key in self._waiting:
            return True
        sleepers = self._sleeping.get(entry.shape) if entry.shape is not None else None
        return sleepers is not None and entry.key in sleepers.entries

    def alike(self, entry: QueuedUnit) -> list[QueuedUnit]:
        """The pods that sleep with this one because its refusal applies to them too."""
        sleepers = self._sleeping.get(entry.shape) if entry.shape is not None else None
        if sleepers is None:
            return []
        return [other for other in sleepers.entries.values() if other is not entry]

    def next_due(self) -> float | None:
        """When the next pod that is held back, or that sleeps with a time limit, may be tried."""
        while self._alarms and not self._rings(*self._alarms[0]):
            heapq.heappop(self._alarms)
        while self._naps and self._napping(self._naps[0]) is None:
            heapq.heappop(self._naps)
        while self._held_back and not self._is_in_line(*self._held_back[0][1:]):
            heapq.heappop(self._held_back)
        firsts = (heap[0][0] for heap in (self._alarms, self._naps, self._held_back) if heap)
        return min(firsts, default=None)

    def _let_go(self, entry: QueuedUnit, uids: Collection[str]) -> None:
        """Pods of a unit no longer wait. The others are tried again; a unit of which none is left keeps its last ones for reference."""
        self._leaf_changed(entry)
        entry.request = None
        if entry.pods.keys() <= set(uids):
            entry.ticket = -1
            self._entries.pop(entry.key, None)
            self.unit_left(entry.key)
            return
        for uid in uids:
            entry.pods.pop(uid, None)
        if entry.ticket < 0:
            self._put_in_line(entry)

    def _rings(self, due: float, uid: str) -> bool:
        """Whether an alarm is still wanted."""
        entry = self._entries.get(uid)
        return entry is not None and entry.alarm == due

    def _napping(self, nap: tuple[float, int, Hashable]) -> _Sleepers | None:
        """The shape that a nap is of, if it still naps until then."""
        sleepers = self._sleeping.get(nap[-1])
        return sleepers if sleepers is not None and sleepers.due == nap[0] else None

    def _wake(self, sleepers: _Sleepers, most: int) -> None:
        woken = sleepers.take(most)
        sleepers.burst = most
        sleepers.awake += len(woken)
        for entry in woken:
            entry.woken_by_shape = True
            self._put_in_line(entry)

    def _try_first(self, sleepers: _Sleepers) -> None:
        """The first of a shape tries for all, unless one already does."""
        if sleepers.entries and not sleepers.burst:
            self._wake(sleepers, 1)

    def _hand_on(self, sleepers: _Sleepers | None) -> None:
        """The pod that was woken to try for its shape leaves without an answer: the next one tries."""
        if sleepers is not None and sleepers.burst and not sleepers.awake and sleepers.entries:
            self._wake(sleepers, 1)

    def _leave_shape(self, entry: QueuedUnit) -> _Sleepers | None:
        """Forget that the pod waits, sleeps, or was woken, with others of its shape."""
        self._waiting.discard(entry.key)
        sleepers = self._sleeping.get(entry.shape) if entry.shape is not None else None
        if sleepers is None:
            return None
        sleepers.discard(entry.key)
        if entry.woken_by_shape:
            entry.woken_by_shape = False
            sleepers.awake -= 1
        if not sleepers.entries and not sleepers.awake:
            self._set_hint(entry.shape, sleepers, None)
            del self._sleeping[entry.shape]
        entry.shape = None
        return sleepers

    def _set_hint(self, shape: Hashable, sleepers: _Sleepers, hint: Hint | None) -> None:
        if sleepers.hint == hint:
            return
        if sleepers.hint is not None:
            shapes = self._hopeful[sleepers.hint]
            del shapes[shape]
            if not shapes:
                del self._hopeful[sleepers.hint]
        sleepers.hint = hint
        if hint is not None:
            self._hopeful.setdefault(hint, {})[shape] = sleepers

    def _put_in_line(self, entry: QueuedUnit) -> None:
        self._tickets += 1
        entry.ticket, entry.request = self._tickets, None
        heapq.heappush(self._line, (*entry.rank, entry.ticket, entry.key))
        if entry.leaf is not None and self._leaves is not None and self.arbiter is not None:
            self._leaves.join(entry.leaf, self.arbiter.place(entry), entry.ticket, entry.key)

    def _return_held_back(self, now: float) -> None:
        while self._alarms and self._alarms[0][0] <= now:
            due, uid = heapq.heappop(self._alarms)
            if self._rings(due, uid):
                self._entries[uid].alarm = None
                self.wake_pods((uid,))
        while self._naps and self._naps[0][0] <= now:
            sleepers = self._napping(heapq.heappop(self._naps))
            if sleepers is not None:
                sleepers.due = None
                self._try_first(sleepers)
        while self._held_back and self._held_back[0][0] <= now:
            _, ticket, uid = heapq.heappop(self._held_back)
            if self._is_in_line(ticket, uid):
                self._put_in_line(self._entries[uid])

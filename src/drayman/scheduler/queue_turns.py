"""Whose turn it is among units that are in queues of KAI, by what their queues are entitled to (`quota.shares`)."""

from __future__ import annotations

from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.queueing.queues import Amount
from drayman.placement.state import ClusterState
from drayman.quota.shares.accounts import amount
from drayman.quota.shares.groups import Place, place_of
from drayman.quota.shares.line import KeptLine
from drayman.quota.shares.live import LiveAccounts, LiveShares
from drayman.scheduler.unit import QueuedUnit


class QueueTurns:
    """The order of the units of one scheduler. It is kept between decisions: only where something has changed it is worked out again."""

    def __init__(self, state: ClusterState, shares: LiveShares) -> None:
        self._state = state
        self._shares = shares
        self._firsts: dict[str, QueuedUnit] = {}  # by leaf
        self._changed: dict[str, None] = {}  # the leaves of which that is news
        self._line: KeptLine | None = None
        self._source: object = None  # what the line was made from
        self._seen = 0  # up to which change of what queues use

    @property
    def is_in_force(self) -> bool:
        return self._state.queues.is_in_force

    def place(self, entry: QueuedUnit) -> Place:
        """As important as those of its pods that wait."""
        accounts = LiveAccounts(self._state)
        group = accounts.look_at(entry.gang or entry.key)
        importance = importance_of_waiting(entry.priority, entry.pods.values())
        return place_of(importance, accounts.strength(group), accounts.groups[group].created)

    def begin(self) -> None:
        self._firsts.clear()
        self._changed.clear()
        self._line = None

    def set_first(self, leaf: str, entry: QueuedUnit | None) -> None:
        if entry is None:
            self._firsts.pop(leaf, None)
        else:
            self._firsts[leaf] = entry
        self._changed[leaf] = None

    def next(self, entry: QueuedUnit) -> QueuedUnit:
        """One that is in no queue has its own turn: there is nothing to compare, and little to decide."""
        leaf = self._line_now().first()
        is_astray = entry.leaf is None or not self._state.queues.tree.is_leaf(entry.leaf)
        return entry if is_astray or leaf is None else self._firsts[leaf]

    def _line_now(self) -> KeptLine:
        book, source = self._state.queues, self._shares.source()
        line = self._line
        if line is None or source != self._source:
            line = self._line = KeptLine(self._shares.order())
            self._source, leaves = source, dict.fromkeys(self._firsts)
        else:
            leaves = {**self._changed, **dict.fromkeys(book.used_since(self._seen))}
        self._seen = book.uses
        self._changed.clear()
        for leaf in leaves:
            if book.tree.is_leaf(leaf):
                entry = self._firsts.get(leaf)
                line.set(leaf, None if entry is None else self._request(entry))
        return line

    def _request(self, entry: QueuedUnit) -> Amount:
        """How many GPUs the next start of a unit takes."""
        if entry.request is None:
            accounts = LiveAccounts(self._state)
            group = accounts.look_at(entry.gang or entry.key)
            starts = accounts.starts(group)
            workers = starts[0] if starts else accounts.groups[group].workers
            entry.request = amount(workers)
        return entry.request

"""Whose turn it is among units that are in queues of KAI, by what their queues are entitled to (`quota.shares`)."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.times import seconds_of
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.gangs.quorum import shortfall
from drayman.placement.state import ClusterState
from drayman.quota.shares.accounts import amount
from drayman.quota.shares.live import LiveAccounts, LiveShares
from drayman.scheduler.queue import QueuedUnit


class QueueTurns:
    """The order of the units of one scheduler."""

    def __init__(self, state: ClusterState, shares: LiveShares) -> None:
        self._state = state
        self._shares = shares

    def place(self, entry: QueuedUnit) -> tuple[int, int, float]:
        """Importance, then those that lack members before those that have enough, then age."""
        gang = None if entry.gang is None else self._state.gangs.gang(entry.gang)
        has_started, since = False, seconds_of(entry.pod.metadata.creation_timestamp)
        if isinstance(gang, Gang):
            since = since if gang.since is None else gang.since
            running = self._state.gangs.running(gang)
            has_started = bool(running) and shortfall(gang, running) is None
        importance = importance_of_waiting(entry.priority, entry.pods.values())
        return -importance, has_started, since or 0.0

    def next(self, firsts: Mapping[str, QueuedUnit]) -> QueuedUnit:
        """Those that are in no queue come first: there is nothing to compare, and little to decide."""
        tree = self._state.queues.tree
        astray = [each for leaf, each in firsts.items() if not tree.is_leaf(leaf)]
        if astray:
            return min(astray, key=lambda each: each.rank)
        if len(firsts) == 1:
            return next(iter(firsts.values()))
        by_leaf = {leaf: leaf for leaf in firsts}
        order = self._shares.order()
        return firsts[order.next_of(by_leaf, lambda leaf: self._request(firsts[leaf]))]

    def _request(self, entry: QueuedUnit) -> int:
        """How many GPUs the next start of a unit takes. Known as long as the unit keeps its place in line."""
        if entry.request is None or entry.request[0] != entry.ticket:
            accounts = LiveAccounts(self._state)
            group = accounts.look_at(entry.gang or entry.key)
            starts = accounts.starts(group)
            workers = starts[0] if starts else accounts.groups[group].workers
            entry.request = (entry.ticket, amount(workers))
        return entry.request[1]

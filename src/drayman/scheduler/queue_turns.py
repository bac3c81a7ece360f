"""Whose turn it is among units that are in queues of KAI, by what their queues are entitled to (`quota.shares`)."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.times import seconds_of
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.state import ClusterState
from drayman.quota.shares.accounts import amount
from drayman.quota.shares.groups import Strength
from drayman.quota.shares.live import LiveAccounts, LiveShares
from drayman.scheduler.queue import QueuedUnit


class QueueTurns:
    """The order of the units of one scheduler."""

    def __init__(self, state: ClusterState, shares: LiveShares) -> None:
        self._state = state
        self._shares = shares

    def place(self, entry: QueuedUnit) -> tuple[int, int, float]:
        """Importance, then those that lack members before those that have enough, then age."""
        accounts = LiveAccounts(self._state)
        group = accounts.look_at(entry.gang or entry.key)
        starts = accounts.starts(group)
        entry.request = amount(starts[0] if starts else accounts.groups[group].workers)
        strength = accounts.strength(group) if accounts.running(group) else Strength.BELOW
        pods = entry.pods.values()
        return -importance_of_waiting(entry.priority, pods), strength, self._since(entry)

    def next(self, firsts: Mapping[str, QueuedUnit]) -> QueuedUnit:
        """Those that are in no queue come first: there is nothing to compare, and little to decide."""
        tree = self._state.queues.tree
        astray = [each for leaf, each in firsts.items() if not tree.is_leaf(leaf)]
        if astray:
            return min(astray, key=lambda each: each.rank)
        order = self._shares.order()
        return firsts[
            order.next_of({leaf: leaf for leaf in firsts}, lambda leaf: firsts[leaf].request)
        ]

    def _since(self, entry: QueuedUnit) -> float:
        gang = None if entry.gang is None else self._state.gangs.gang(entry.gang)
        if isinstance(gang, Gang) and gang.since is not None:
            return gang.since
        created = (seconds_of(pod.metadata.creation_timestamp) for pod in entry.pods.values())
        return min((at for at in created if at is not None), default=0.0)

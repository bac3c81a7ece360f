"""Whom a change of queues, or of what they are made of, means something for, apart from any cycle.

Flavors, cohorts, topologies, checks and queues change, and mostly nothing follows for anybody's standing. So what a queue means for its
workloads is compared with what it meant before; only where that is something else, its workloads are looked at. There are far fewer queues
than workloads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.local_queues import LocalQueueState
from drayman.quota.state import QuotaState


def meaning_of(queue: ClusterQueueState) -> Hashable:
    """What a cluster queue means for workloads that hold quota of it, or wait for it: for `standing_of`, and for the checks they need."""
    strategy = queue.spec.admission_checks_strategy
    checks = () if strategy is None else strategy.admission_checks
    return (
        queue.inactive,
        queue.sends_elsewhere,
        queue.spec.stop_policy,
        tuple((each.name, tuple(each.on_flavors)) for each in checks),
    )


class Concerned:
    """Remembers what queues meant when it was last asked."""

    def __init__(self) -> None:
        self._cluster: dict[str, Hashable] = {}
        self._local: dict[str, LocalQueueState] = {}

    def begin(self, state: QuotaState) -> None:
        """All workloads of an engine are looked at now."""
        self._cluster = {name: meaning_of(queue) for name, queue in state.books.queues.items()}
        self._local = dict(state.local_queues.all())

    def since(self, state: QuotaState) -> set[str]:
        """The workloads, by key, whose queues mean something else for them than when this was last asked."""
        cluster, local = self._cluster, self._local
        self.begin(state)
        changed = set(_differing(cluster, self._cluster))
        found = {key for name in changed for key in _holders(state, name)}
        for key in {*_differing(local, self._local), *self._leading_to(changed)}:
            found.update(state.local_queues.members(key))
        return found

    def _leading_to(self, queues: set[str]) -> Iterator[str]:
        return (key for key, each in self._local.items() if each.cluster_queue in queues)


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    return {name for name in {*before, *now} if before.get(name) != now.get(name)}


def _holders(state: QuotaState, queue: str) -> Iterator[str]:
    known = state.books.queues.get(queue)
    return iter(() if known is None else tuple(known.holders))

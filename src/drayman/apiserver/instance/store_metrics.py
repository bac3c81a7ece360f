"""What `/metrics` says about the store: how many transactions there were, and how many commits it took."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from drayman.cluster.embedded.store import Store


class StoreMetrics(Collector):
    """Reads the figures when they are asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        for name, text, number in (
            ("drayman_store_transactions", "Transactions written.", self._store.transactions),
            ("drayman_store_commits", "Commits to disk.", self._store.commits),
        ):
            yield CounterMetricFamily(name, text, value=number)

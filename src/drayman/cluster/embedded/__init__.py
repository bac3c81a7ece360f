"""The embedded store: a cluster's objects in one SQLite file, or in memory."""

from __future__ import annotations

from drayman.cluster.embedded.errors import ConflictError, StoreError, TooOldError
from drayman.cluster.embedded.history import Retention
from drayman.cluster.embedded.model import Delete, Event, EventType, Key, Put, Stored
from drayman.cluster.embedded.store import Store
from drayman.cluster.embedded.watching import Subscription

__all__ = [
    "ConflictError",
    "Delete",
    "Event",
    "EventType",
    "Key",
    "Put",
    "Retention",
    "Store",
    "StoreError",
    "Stored",
    "Subscription",
    "TooOldError",
]

"""The embedded store: a cluster's objects in one SQLite file, or in memory."""

from __future__ import annotations

from drayman.cluster.embedded.store import (
    ConflictError,
    Delete,
    Event,
    EventType,
    Key,
    Put,
    Retention,
    Store,
    Stored,
    StoreError,
    Subscription,
    TooOldError,
)

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

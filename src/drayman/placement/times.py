"""Times as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_of(timestamp: str | None) -> float | None:
    """RFC 3339 text as seconds since the epoch."""
    return None if timestamp is None else datetime.fromisoformat(timestamp).timestamp()


def timestamp_of(seconds: float) -> str:
    """To the second, as Kubernetes writes most times."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

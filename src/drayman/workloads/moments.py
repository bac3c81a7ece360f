"""Times as the API has them and as controllers reckon with them: RFC 3339 text and seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1 << 12)
def seconds(text: str) -> float:
    """A time of the API in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


@lru_cache(maxsize=256)
def timestamp(moment: float) -> str:
    """Seconds since the epoch as metadata and conditions have them: in UTC and whole seconds."""
    whole = datetime.fromtimestamp(int(moment), UTC).replace(tzinfo=None)
    return f"{whole.isoformat(timespec='seconds')}Z"

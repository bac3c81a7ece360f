"""A way to the server that fails for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from drayman.cluster.backoff import Backoff
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    ClusterError,
    ConflictError,
    NoConnectionError,
    Status,
    UnavailableError,
)
from drayman.cluster.writes import Write
from drayman.scheduler import group_conditions, reporting

AWAY: Final = NoConnectionError("nobody is there")
FAILURES: Final = (AWAY, ConflictError(Status(code=409)), UnavailableError(Status(code=503)))


@dataclass(slots=True)
class Wire:
    """Writes without an answer, with which it fails as often as it is to."""

    failure: ClusterError
    times: int
    meanwhile: Callable[[], Awaitable[None]] | None = None
    """What happens before it fails."""
    has_failed: asyncio.Event = field(default_factory=asyncio.Event)
    client: Client | None = None

    @property
    def transactional(self) -> bool:
        return True

    async def write_all(self, writes: Sequence[Write]) -> Any:
        if self.times:
            self.times -= 1
            if self.meanwhile is not None:
                await self.meanwhile()
            self.has_failed.set()
            raise self.failure
        assert self.client is not None
        return await self.client.write_all(writes)


def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has failed is tried again without delay."""
    for module in (reporting, group_conditions):
        monkeypatch.setattr(module, "RETRIES", Backoff(initial=0.01, cap=0.01))

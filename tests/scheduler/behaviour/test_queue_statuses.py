"""The status of queues of KAI is written in the end, whatever becomes of the first attempt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from controllers.world import eventually
from drayman.cluster import HttpClient
from drayman.cluster.errors import UnreachableError
from drayman.cluster.resources import JsonObject
from drayman.cluster.writes import PatchWrite, Write
from drayman.scheduler import queue_statuses
from scheduler.behaviour.beside import scheduling, served
from scheduler.behaviour.test_kai_queues import QUEUES, gpus, queue


class LosesOnce(HttpClient):
    """The first status of a queue gets no answer."""

    lost = 0

    async def write_all(self, writes: Sequence[Write]) -> None:
        mine = [w for w in writes if isinstance(w, PatchWrite) and w.resource.plural == "queues"]
        if mine and not self.lost:
            self.lost += 1
            raise UnreachableError("no answer", outcome_unknown=False)
        await super().write_all(writes)


async def test_a_status_that_was_lost_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although nothing else happens."""
    monkeypatch.setattr(queue_statuses, "_RETRY_S", 0.05)
    async with served(tmp_path, guard=True) as (stage, connect):
        await queue(stage, "a", gpus(quota=1))
        client = connect()
        client.__class__ = LosesOnce
        async with scheduling(client, "default-scheduler"):

            async def status() -> JsonObject:
                return dict((await stage.client.get(QUEUES, "a")).get("status") or {})

            await eventually(status, lambda found: "allocated" in found)
        assert client.lost == 1  # type: ignore[attr-defined]

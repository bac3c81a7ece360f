"""A scheduler that fails is replaced."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from drayman.cluster.backoff import Backoff
from drayman.scheduler import leading
from drayman.scheduler.leading import Candidate
from drayman.testing import TestCluster
from patience import PATIENCE_S


class Failing:
    """A scheduler that ends with an error, or works until it is cancelled."""

    def __init__(self, number: int, works: asyncio.Event) -> None:
        self._number, self._works = number, works

    def follow(self) -> None:
        """It follows nothing."""

    async def run(self) -> None:
        if self._number < 3:
            raise RuntimeError(f"failure {self._number}")
        self._works.set()
        await asyncio.Event().wait()


async def _replaced(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    works, made = asyncio.Event(), list[int]()

    def make(_names: frozenset[str]) -> Any:
        made.append(len(made) + 1)
        return Failing(made[-1], works)

    async with TestCluster(folder) as cluster:
        candidate = Candidate(cluster.client, ["default-scheduler"], "me", make, lambda _: None)
        running = asyncio.create_task(candidate.run())
        try:
            async with asyncio.timeout(PATIENCE_S):
                await works.wait()
        finally:
            running.cancel()
            await asyncio.wait((running,))
    assert made == [1, 2, 3]
    assert caplog.text.count("the scheduler has failed, and is started again") == 2


def test_a_scheduler_that_raises_is_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one takes its place after a while, as often as that happens, and the log has each failure."""
    monkeypatch.setattr(leading, "_RESTARTS", Backoff(initial=0.01, cap=0.02))
    caplog.set_level(logging.ERROR)
    asyncio.run(_replaced(tmp_path, caplog))

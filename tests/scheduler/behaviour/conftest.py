"""Each test acts on a cluster of its own, started on the event loop of the test."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from scheduler.behaviour.stage import Stage, staged

Cluster = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Starts a cluster; keyword arguments are those of `SchedulerOptions`."""
    return lambda **options: staged(tmp_path, **options)

"""Runs every case of the contract against every implementation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from cluster.contract.clusters import IMPLEMENTATIONS, Cluster, cluster

Open = Callable[[], AbstractAsyncContextManager[Cluster]]


@pytest.fixture(params=list(IMPLEMENTATIONS))
def open_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens a cluster of one implementation. A coroutine's fixtures cannot be, so the case opens it."""
    return partial(cluster, request.param, tmp_path)

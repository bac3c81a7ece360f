"""Stores to test with: in memory and in a file, which must not differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drayman.cluster.embedded import Retention, Store

OpenStore = Callable[..., Store]


@pytest.fixture(params=["memory", "file"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens stores of either kind, and closes them after the test."""
    opened: list[Store] = []

    def open_one(
        retention: Retention | None = None, clock: Callable[[], float] | None = None
    ) -> Store:
        path = tmp_path / f"store-{len(opened)}.db" if request.param == "file" else None
        extra = {} if clock is None else {"clock": clock}
        opened.append(Store.open(path, retention=retention, **extra))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()

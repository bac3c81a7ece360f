"""Prices of nodes for a question: those that the scheduler of the cluster decides by, where that is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.questions.which_cluster import folder_of

if TYPE_CHECKING:
    from drayman.cluster.kube.connection import Connection


def prices_in_use(connection: Connection, data_dir: Path | None = None) -> PriceTable:
    """The table that `drayman up` on this data directory was started with, if it serves the cluster. Of other schedulers none is known."""
    record = folder_of(data_dir).running()
    if record is None or record.url != connection.server or not record.prices:
        return NO_PRICES
    from drayman.placement.price_table import read_price_table

    return read_price_table(f"the prices of process {record.pid}", record.prices.encode())

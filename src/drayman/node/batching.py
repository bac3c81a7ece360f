"""Many small writes in few requests, without one that is refused taking the others with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.writes import Write

_log: Final = logging.getLogger(__name__)

LARGEST_BATCH: Final = 50
"""Writes of one transaction: the store is not kept from others for longer than a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Change:
    """Writes that belong together, and what to do if they are refused."""

    writes: tuple[Write, ...]
    refused: Callable[[ClusterError], None]
    written: Callable[[Sequence[object]], None] | None = None
    """Gets what each write answered."""


async def carry_out(client: Client, changes: Sequence[Change]) -> None:
    """Write all changes. Where a batch is refused its halves are tried, down to the change that is to blame."""
    batch: list[Change] = []
    size = 0
    for change in changes:
        if batch and size + len(change.writes) > LARGEST_BATCH:
            await _write(client, batch)
            batch, size = [], 0
        batch.append(change)
        size += len(change.writes)
    if batch:
        await _write(client, batch)


async def _write(client: Client, batch: Sequence[Change]) -> None:
    try:
        answers = await client.write_many([write for change in batch for write in change.writes])
    except ClusterError as error:
        if len(batch) == 1:
            _log.debug("a write of a simulated node was refused: %s", error)
            batch[0].refused(error)
            return
        middle = len(batch) // 2
        await _write(client, batch[:middle])
        await _write(client, batch[middle:])
        return
    at = 0
    for change in batch:
        if change.written is not None:
            change.written(answers[at : at + len(change.writes)])
        at += len(change.writes)

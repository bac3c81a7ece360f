"""Many changes in few transactions, without one that is refused taking the others with it.

Where the cluster has transactions, changes are written many at a time. A transaction that is refused is taken apart into halves, down to
the change that is to blame: among fifty that costs a dozen transactions, not fifty. Where there are none nothing is gained by putting
changes together, so each is written for itself, in order.

Only a refusal says that something is wrong with a write. Where no answer came, halves would get none either, and what was asked for may
have been done (`UnreachableError.outcome_unknown`): all changes that were part of it hear so, and those behind them, which are not tried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, StatusError, UnreachableError
from drayman.cluster.writes import Write

_log: Final = logging.getLogger(__name__)

LARGEST: Final = 50
"""Writes of one transaction: enough to share a commit, and the store is not kept from others for longer than a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Change:
    """Writes that stand or fall together, and who hears which of the two. What a listener raises ends it for the changes behind, too."""

    writes: Sequence[Write]
    refused: Callable[[ClusterError], None]
    written: Callable[[Sequence[object]], None] | None = None
    """Gets what each write answered."""


async def write_together(
    client: Client, changes: Sequence[Change], *, largest: int | None = LARGEST
) -> None:
    """Make all changes that can be made, in order. Each hears what became of it, once.

    Up to `largest` writes at a time, or with None all of them.
    """
    lost: UnreachableError | None = None
    for batch in _batches(changes, largest if client.transactional else 1):
        if lost is None:
            lost = await _write(client, batch)
        else:
            _refuse(batch, lost)


async def write_in_turn(client: Client, writes: Sequence[Write]) -> None:
    """All writes or none where the cluster has transactions. Elsewhere one after the other, and what was written stays if one is refused.

    `Client.write_many` would take back what was created, or complain that it cannot.
    """
    if client.transactional:
        await client.write_all(writes)
    else:
        for write in writes:
            await client.write_all([write])


def _batches(changes: Sequence[Change], largest: int | None) -> Iterator[Sequence[Change]]:
    """Changes with so many writes at most, or one change that has more."""
    batch: list[Change] = []
    size = 0
    for change in changes:
        if batch and largest is not None and size + len(change.writes) > largest:
            yield batch
            batch, size = [], 0
        batch.append(change)
        size += len(change.writes)
    if batch:
        yield batch


async def _write(client: Client, batch: Sequence[Change]) -> UnreachableError | None:
    """What kept the server from answering, if anything did."""
    writes = [write for change in batch for write in change.writes]
    answers: Sequence[object] = ()
    try:
        if any(change.written is not None for change in batch):
            answers = await client.write_many(writes) if writes else ()
        elif writes:
            await client.write_all(writes)
    except StatusError as error:
        if len(batch) > 1:
            _log.debug("%d changes cannot be made together: %s", len(batch), error)
            return await _take_apart(client, batch)
        _refuse(batch, error)
        return None
    except ClusterError as error:
        _refuse(batch, error)
        return error if isinstance(error, UnreachableError) else None
    at = 0
    for change in batch:
        if change.written is not None:
            change.written(answers[at : at + len(change.writes)])
        at += len(change.writes)
    return None


async def _take_apart(client: Client, batch: Sequence[Change]) -> UnreachableError | None:
    middle = len(batch) // 2
    lost = await _write(client, batch[:middle])
    if lost is None:
        return await _write(client, batch[middle:])
    _refuse(batch[middle:], lost)
    return lost


def _refuse(batch: Sequence[Change], error: ClusterError) -> None:
    for change in batch:
        change.refused(error)

"""Many writes in few transactions, where one that is refused does not fail the others.

Writes that belong together are a `Bundle`. Where the cluster has transactions, bundles are written many at a time. A transaction that is
refused is taken apart into halves, down to the bundle that is to blame: among twenty that costs ten transactions, not twenty. Where there
are none, nothing is gained by combining bundles, so each is written separately, in order.

Only a refusal says that something is wrong with a write. Where no answer came, halves would get none either, and the writes may have been
carried out (`UnreachableError.outcome_unknown`): all bundles of that transaction are notified, and so are those after them, which are not
tried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, StatusError, UnreachableError
from drayman.cluster.writes import Write

_log: Final = logging.getLogger(__name__)

LARGEST: Final = 20
"""Writes of one transaction: enough to share a commit, without keeping other requests waiting for longer than some milliseconds."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Writes that stand or fall together, and what is called with the outcome.

    What such a call raises is raised by `write_together`, which then tries nothing more.
    """

    writes: Sequence[Write]
    refused: Callable[[ClusterError], None]
    written: Callable[[Sequence[object]], None] | None = None
    """Gets what each write answered."""


async def write_together(
    client: Client, bundles: Iterable[Bundle], *, largest: int = LARGEST
) -> None:
    """Write all bundles that can be written, in order. Each is notified of its outcome, once.

    Up to `largest` writes at a time. A transaction's bundles are taken from an iterator when the one before it is written, so thousands
    of them need not be made at once.
    """
    apart: Iterable[Sequence[Bundle]] = ([bundle] for bundle in bundles)
    lost: UnreachableError | None = None
    for batch in _batches(bundles, largest) if client.transactional else apart:
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


def _batches(bundles: Iterable[Bundle], largest: int) -> Iterator[Sequence[Bundle]]:
    """Groups of bundles with at most so many writes, or one bundle that has more."""
    batch: list[Bundle] = []
    size = 0
    for bundle in bundles:
        if batch and size + len(bundle.writes) > largest:
            yield batch
            batch, size = [], 0
        batch.append(bundle)
        size += len(bundle.writes)
    if batch:
        yield batch


async def _write(client: Client, batch: Sequence[Bundle]) -> UnreachableError | None:
    """What kept the server from answering, if anything did."""
    writes = [write for bundle in batch for write in bundle.writes]
    answers: Sequence[object] = ()
    try:
        if any(bundle.written is not None for bundle in batch):
            answers = await client.write_many(writes) if writes else ()
        elif writes:
            await client.write_all(writes)
    except StatusError as error:
        if len(batch) > 1:
            _log.debug("%d bundles cannot be written together: %s", len(batch), error)
            return await _take_apart(client, batch)
        _refuse(batch, error)
        return None
    except ClusterError as error:
        _refuse(batch, error)
        return error if isinstance(error, UnreachableError) else None
    at = 0
    for bundle in batch:
        if bundle.written is not None:
            bundle.written(answers[at : at + len(bundle.writes)])
        at += len(bundle.writes)
    return None


async def _take_apart(client: Client, batch: Sequence[Bundle]) -> UnreachableError | None:
    middle = len(batch) // 2
    lost = await _write(client, batch[:middle])
    if lost is None:
        return await _write(client, batch[middle:])
    _refuse(batch[middle:], lost)
    return lost


def _refuse(batch: Sequence[Bundle], error: ClusterError) -> None:
    for bundle in batch:
        bundle.refused(error)

"""The status of queues of KAI: what their work holds and asks for, and which queues are below them.

It is written a moment after something changes, for all changes until then, and again after a while where that failed. Nothing here reads
it: what queues have is counted.
"""

from __future__ import annotations

import asyncio
import logging
from fractions import Fraction
from typing import Final

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiQueue
from drayman.api.quantity import Format, Quantity
from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import PODS, typed
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import PatchWrite
from drayman.placement.queueing.amounts import NOTHING, Amounts
from drayman.placement.queueing.book import QueueBook
from drayman.scheduler.writes import MANAGER

_log: Final = logging.getLogger(__name__)
_GATHER_S: Final = 0.5
_RETRY_S: Final = 5.0
_QUEUES: Final = typed(KaiQueue)
_GPU: Final = "nvidia.com/gpu"
"""The name that KAI has for GPUs of any kind in the status of a queue."""


class QueueStatuses:
    """Writes the status of queues."""

    def __init__(self, client: Client, book: QueueBook) -> None:
        self._client = client
        self._book = book
        self._queues: dict[str, KaiQueue] = {}
        self._news = asyncio.Event()

    def follow(self, handlers: Handlers) -> None:
        handlers.add(_QUEUES, self._queue)
        handlers.add(PODS, self._pod)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(_GATHER_S)
            self._news.clear()
            bundles = (self._bundle(each) for each in self._queues.values())
            await write_together(self._client, [each for each in bundles if each is not None])

    def _queue(self, notice: Notice[KaiQueue]) -> None:
        name = notice.object.metadata.name
        if notice.type == "DELETED":
            self._queues.pop(name, None)
        else:
            self._queues[name] = notice.object
        self._news.set()

    def _pod(self, _: Notice[Pod]) -> None:
        if self._queues:
            self._news.set()

    def _bundle(self, queue: KaiQueue) -> Bundle | None:
        name, sums = queue.metadata.name, self._book.sums
        status: dict[str, Json] = {
            "allocated": _listed(sums.used.get(name, NOTHING)),
            "allocatedNonPreemptible": _listed(sums.firm.get(name, NOTHING)),
            "requested": _listed(sums.wanted.get(name, NOTHING)),
            "childQueues": sorted(each.name for each in self._book.tree.children(name)),
        }
        known = queue.status if isinstance(queue.status, dict) else {}
        if all(known.get(key) == value for key, value in status.items()):
            return None
        patch = merge_patch({"metadata": {"uid": queue.metadata.uid}, "status": status})
        options = WriteOptions(field_manager=MANAGER)
        write = PatchWrite(_QUEUES, name, patch, None, subresource="status", options=options)
        return Bundle([write], lambda error: self._failed(name, error))

    def _failed(self, name: str, error: ClusterError) -> None:
        """A queue that is gone, or is another one by now, is heard of anyway. Whatever else it was, it is tried again."""
        if isinstance(error, NotFoundError | ConflictError):
            _log.debug("queue %s: %s", name, error)
            return
        _log.warning("queue %s: its status is written again in %g s: %s", name, _RETRY_S, error)
        asyncio.get_running_loop().call_later(_RETRY_S, self._news.set)


def _listed(amounts: Amounts) -> Json:
    return {
        "cpu": str(Quantity(Fraction(amounts.cpu, 1000), Format.DECIMAL_SI)),
        "memory": str(Quantity(amounts.memory, Format.BINARY_SI)),
        _GPU: str(Quantity(Fraction(amounts.gpu))),
    }

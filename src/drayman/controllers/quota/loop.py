"""Work on keys: each is looked at after a change, and again after a failure, later with each in a row."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError, is_final
from drayman.cluster.workqueue import WorkQueue

Key = tuple[str, str]
"""Namespace and name."""
_RETRIES: Final = Backoff(initial=0.005, cap=60.0)
_log: Final = logging.getLogger(__name__)


class Loop:
    """Workers that share a queue of keys."""

    def __init__(
        self, name: str, attend: Callable[[Key], Awaitable[None]], workers: int = 2
    ) -> None:
        self._name = name
        self._attend_to = attend
        self._workers = workers
        self.queue: WorkQueue[Key] = WorkQueue(backoff=_RETRIES)

    def start(self, group: asyncio.TaskGroup) -> None:
        for number in range(self._workers):
            group.create_task(self._work(), name=f"{self._name} {number}")

    async def _work(self) -> None:
        while True:
            (key,) = await self.queue.take()
            await self._attend(key)

    async def _attend(self, key: Key) -> None:
        try:
            await self._attend_to(key)
        except (ConflictError, NotFoundError) as error:
            # Another writer was quicker; the cache will show what it did.
            _log.debug("%s %s/%s: %s", self._name, *key, error)
            self.queue.retry(key)
        except ClusterError as error:
            if is_final(error):
                _log.warning("%s %s/%s: %s; waiting for a change", self._name, *key, error)
                self.queue.rest(key)
            else:
                _log.warning("%s %s/%s: %s; trying again", self._name, *key, error)
                self.queue.retry(key)
        except Exception:
            # A mistake about one object must not end the work on all others.
            _log.exception("%s %s/%s failed; trying again", self._name, *key)
            self.queue.retry(key)
        else:
            self.queue.forget(key)
        finally:
            self.queue.done(key)

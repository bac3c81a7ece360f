"""Slices of drivers that are not there any more: deleted after a while, so that nobody allocates devices that nobody prepares.

Unlike a kubelet, a node that starts gives its drivers the same time to come back as one that runs: their slices stay, and with them the
devices that are allocated.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from drayman.cluster.backoff import Backoff
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, NotFoundError
from drayman.cluster.options import DeleteOptions, ListOptions
from drayman.cluster.resources import RESOURCE_SLICES

WIPE_AFTER_S: Final = 30.0
"""How long a kubelet waits for a driver to come back."""
_BACKOFF: Final = Backoff(initial=1.0, cap=60.0)
_log: Final = logging.getLogger(__name__)


class SliceWiper:
    """Deletes the slices of drivers that have not come back."""

    def __init__(self, client: Client, node: str, wipe_after_s: float = WIPE_AFTER_S) -> None:
        self._client = client
        self._node = node
        self._after_s = wipe_after_s
        self._pending: dict[str, asyncio.Task[None]] = {}

    async def begin(self) -> None:
        """Wait for every driver that has slices of this node, before any of them can register. Raises ClusterError."""
        options = ListOptions(field_selector=f"spec.nodeName={self._node}")
        for found in (await self._client.list_all(RESOURCE_SLICES, options=options)).items:
            self.changed(found.spec.driver, is_there=False)

    def changed(self, driver: str, is_there: bool) -> None:
        """A driver has come or gone."""
        pending = self._pending.pop(driver, None)
        if pending is not None:
            pending.cancel()
        if not is_there:
            self._pending[driver] = asyncio.create_task(self._wipe(driver))

    async def stop(self) -> None:
        for task in self._pending.values():
            task.cancel()
        await asyncio.gather(*self._pending.values(), return_exceptions=True)

    async def _wipe(self, driver: str) -> None:
        await asyncio.sleep(self._after_s)
        failures = 0
        while True:
            try:
                await self._delete(driver)
            except ClusterError as error:
                failures += 1
                _log.warning("slices of %s stay for the moment: %s", driver, error)
                await asyncio.sleep(_BACKOFF.delay(failures))
            else:
                return

    async def _delete(self, driver: str) -> None:
        """Raises ClusterError."""
        selector = f"spec.nodeName={self._node},spec.driver={driver}"
        options = ListOptions(field_selector=selector)
        for found in (await self._client.list_all(RESOURCE_SLICES, options=options)).items:
            with suppress(NotFoundError):
                await self._client.delete(
                    RESOURCE_SLICES,
                    found.metadata.name,
                    options=DeleteOptions(uid=found.metadata.uid),
                )

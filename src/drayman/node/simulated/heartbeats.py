"""Heartbeats: the lease of every live node is renewed, a few at a time so that the server is never held up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from drayman.api.times import micro_timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import LEASES
from drayman.cluster.together import LARGEST, Bundle, write_together
from drayman.cluster.writes import PatchWrite
from drayman.node.reporting import LEASE_NAMESPACE, MANAGER

_log: Final = logging.getLogger(__name__)
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)
NODES_PER_SECOND: Final = 100
"""With more nodes than this times the period, heartbeats come less often: they must not take a core for themselves."""
LONGEST: Final = 25.0
"""Seconds; a node that is silent for 40 counts as lost."""


class Heartbeats:
    """Renews leases until it is cancelled."""

    def __init__(self, client: Client, living: Callable[[], Sequence[str]], period: float) -> None:
        self._client = client
        self._living = living
        self._period = period

    async def run(self) -> None:
        while True:
            names = self._living()
            period = max(self._period, min(len(names) / NODES_PER_SECOND, LONGEST))
            groups = [names[at : at + LARGEST] for at in range(0, len(names), LARGEST)]
            for group in groups:
                await self._renew(group)
                await asyncio.sleep(period / len(groups))
            if not groups:
                await asyncio.sleep(period)

    async def _renew(self, names: Sequence[str]) -> None:
        now = micro_timestamp(datetime.now(UTC))
        patch = merge_patch({"spec": {"renewTime": now}})
        changes = [
            Bundle((PatchWrite(LEASES, name, patch, LEASE_NAMESPACE, "", _OPTIONS),), _missed)
            for name in names
        ]
        await write_together(self._client, changes)


def _missed(error: ClusterError) -> None:
    """The next heartbeat will come; a node that is gone needs none."""
    _log.debug("a heartbeat was refused: %s", error)

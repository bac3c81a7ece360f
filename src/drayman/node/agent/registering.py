"""The Node object of this machine and its lease: made once, and renewed as long as the agent lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from drayman.api.struct import Json
from drayman.api.times import micro_timestamp, timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import AlreadyExistsError, ClusterError
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import merge_patch, strategic_merge_patch
from drayman.cluster.resources import LEASES, NODES
from drayman.node.agent.machine import Machine
from drayman.node.kubernetes import LEASE_NAMESPACE, MANAGER, SIMULATED, lease_of

RENEW_S: Final = 10.0
REPORT_EVERY: Final = 30
"""Renewals of the lease between two reports of the status, which then come every five minutes as those of other nodes do."""
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)
_NODES: Final = NODES.as_values()
_log: Final = logging.getLogger(__name__)


class SimulatedNodeError(Exception):
    """A node of this name is simulated by somebody else."""


class Registration:
    """Keeps a node known. `port` says where its own server listens."""

    def __init__(
        self, client: Client, name: str, machine: Machine, port: Callable[[], int]
    ) -> None:
        self._client = client
        self._name = name
        self._machine = machine
        self._port = port

    async def register(self) -> None:
        """Make the node known, or say that it is back. Raises ClusterError and SimulatedNodeError."""
        labels = self._machine.labels(self._name)
        value: dict[str, Json] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._name, "labels": labels},
        }
        try:
            await self._client.create(_NODES, value, options=_OPTIONS)
        except AlreadyExistsError:
            known = await self._client.get(NODES, self._name)
            if known.metadata.labels.get(SIMULATED) == "true":
                raise SimulatedNodeError(
                    f"node {self._name} is simulated; choose another name, or delete it first"
                ) from None
            patch = merge_patch({"metadata": {"labels": labels}})
            await self._client.patch(_NODES, self._name, patch, options=_OPTIONS)
        await self._make_lease()
        await self.report()

    async def report(self) -> None:
        """Write the status. Raises ClusterError."""
        now = timestamp(datetime.now(UTC))
        status = self._machine.status(self._port(), now)
        known = await self._client.get(NODES, self._name)
        since = {c.type_: (c.status, c.last_transition_time) for c in known.status.conditions}
        for condition in status["conditions"]:
            before, when = since.get(condition["type"], ("", None))
            is_same = before == condition["status"] and when is not None
            condition["lastTransitionTime"] = when if is_same else now
        patch = strategic_merge_patch({"status": status})
        await self._client.patch(_NODES, self._name, patch, subresource="status", options=_OPTIONS)

    async def keep(self) -> None:
        """Renew the lease until cancelled. What fails is tried again at the next time."""
        renewals = 0
        while True:
            await asyncio.sleep(RENEW_S)
            renewals += 1
            try:
                await self._renew()
                if renewals % REPORT_EVERY == 0:
                    await self.report()
            except ClusterError as error:
                _log.warning("node %s: a heartbeat failed: %s", self._name, error)
                renewals = REPORT_EVERY - 1  # the node may count as lost by now

    async def _make_lease(self) -> None:
        value = lease_of(self._name, datetime.now(UTC))
        try:
            await self._client.create(LEASES, value, LEASE_NAMESPACE, options=_OPTIONS)
        except AlreadyExistsError:
            await self._renew()

    async def _renew(self) -> None:
        now = micro_timestamp(datetime.now(UTC))
        patch = merge_patch({"spec": {"holderIdentity": self._name, "renewTime": now}})
        await self._client.patch(LEASES, self._name, patch, LEASE_NAMESPACE, options=_OPTIONS)

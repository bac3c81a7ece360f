"""The Node object of this machine and its lease: made at the start, and renewed as long as the agent lives.

A lease that somebody deletes is made again. A Node is not, as with a kubelet: whoever deletes it wants to be rid of it. What somebody
writes over in its status, as the address at which logs are asked for, is put back, at once but not as often as somebody may do that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from drayman.api.errors import QuantityError
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.times import micro_timestamp, timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import AlreadyExistsError, ClusterError, NotFoundError
from drayman.cluster.informer import Informer, Notice, Selection
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import merge_patch, strategic_merge_patch
from drayman.cluster.resources import LEASES, NODES
from drayman.node.agent.identity import AGENT, AgentIdentity, other_agent
from drayman.node.agent.machine import Machine
from drayman.node.reporting import LEASE_NAMESPACE, MANAGER, SIMULATED, lease_of

RENEW_S: Final = 10.0
RELEASE_S: Final = 2.0
"""How long the end of an agent waits for the API server to hear of it."""
REPORT_EVERY: Final = 30
"""Renewals of the lease between two reports of the status, which then come every five minutes as those of other nodes do."""
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)
_NODES: Final = NODES.as_values()
_log: Final = logging.getLogger(__name__)


class SimulatedNodeError(Exception):
    """A node of this name is simulated by somebody else."""


class NodeTakenError(Exception):
    """Another agent runs the node."""


class Registration:
    """Keeps a node known. `port` says where its own server listens."""

    def __init__(
        self,
        client: Client,
        name: str,
        machine: Machine,
        identity: AgentIdentity,
        port: Callable[[], int],
        put_back_s: float = RENEW_S,
    ) -> None:
        """`put_back_s`: how long it waits after it has put something back."""
        self._client = client
        self._name = name
        self._machine = machine
        self._identity = identity
        self._port = port
        self._put_back_s = put_back_s
        self._is_wrong = asyncio.Event()
        self.informer: Final = Informer(
            client, Selection(_NODES, field_selector=f"metadata.name={name}")
        )
        """Follows the Node while `follow` runs."""
        self.informer.add_handler(self._see)

    async def register(self) -> None:
        """Make the node known, or say that it is back. Raises ClusterError, NodeTakenError and SimulatedNodeError."""
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
            await self._check_agent()
            patch = merge_patch({"metadata": {"labels": labels}})
            await self._client.patch(_NODES, self._name, patch, options=_OPTIONS)
        await self._renew()
        await self.report()

    async def _check_agent(self) -> None:
        """Raises ClusterError and NodeTakenError."""
        try:
            lease = await self._client.get(LEASES, self._name, LEASE_NAMESPACE)
        except NotFoundError:
            return
        other = other_agent(lease, self._identity, datetime.now(UTC))
        if other is not None:
            raise NodeTakenError(
                f"node {self._name} is run by another agent (process {other.process} on {other.host},"
                f" {other.folder}); choose another name with --name"
            )

    async def release(self) -> None:
        """Let other agents have the node at once, if the API server can be told."""
        patch = merge_patch({"metadata": {"annotations": {AGENT: None}}})
        try:
            async with asyncio.timeout(RELEASE_S):
                await self._client.patch(
                    LEASES, self._name, patch, LEASE_NAMESPACE, options=_OPTIONS
                )
        except (ClusterError, TimeoutError) as error:
            _log.debug("node %s was not released: %s", self._name, error)

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
        # Servers choose among the addresses, so one that somebody has added must go.
        status["addresses"].append({"$patch": "replace"})
        patch = strategic_merge_patch({"status": status})
        await self._client.patch(_NODES, self._name, patch, subresource="status", options=_OPTIONS)

    async def follow(self) -> None:
        """Put back what somebody else writes in the status, until cancelled."""
        async with self.informer:
            while True:
                await self._is_wrong.wait()
                _log.info("node %s: somebody has changed its status, which is put back", self._name)
                try:
                    await self.report()
                except ClusterError as error:
                    _log.warning("node %s: its status is not put back: %s", self._name, error)
                await asyncio.sleep(self._put_back_s)

    def _see(self, notice: Notice[dict[str, Json]]) -> None:
        if notice.type != "DELETED" and self._is_other(notice.object):
            self._is_wrong.set()
        else:
            self._is_wrong.clear()

    def _is_other(self, node: dict[str, Json]) -> bool:
        """Whether a Node does not say what this one would. What others have added to it, such as resources of their own, is theirs."""
        labels = node["metadata"].get("labels") or {}
        if labels.get(SIMULATED) == "true":
            return False
        own, found = self._machine.status(self._port(), ""), node.get("status") or {}
        kept = {each["type"]: each["status"] for each in found.get("conditions") or ()}
        if any(kept.get(each["type"]) != each["status"] for each in own.pop("conditions")):
            return True
        for name in ("capacity", "allocatable"):
            amounts = found.get(name) or {}
            if any(
                _amount(amounts.get(key)) != _amount(text) for key, text in own.pop(name).items()
            ):
                return True
        return not _is_within(own, found)

    async def keep(self) -> None:
        """Say that the node is alive until cancelled. What fails is tried again at the next time."""
        renewals = 0
        while True:
            await asyncio.sleep(RENEW_S)
            renewals += 1
            try:
                await self.beat(reports=renewals % REPORT_EVERY == 0)
            except ClusterError as error:
                _log.warning("node %s: a heartbeat failed: %s", self._name, error)
                renewals = REPORT_EVERY - 1  # the node may count as lost by now

    async def beat(self, *, reports: bool) -> None:
        """Say that the node is alive, and how it is if `reports`. Raises ClusterError."""
        await self._renew()
        if reports:
            await self.report()

    async def _renew(self) -> None:
        now = datetime.now(UTC)
        annotations: dict[str, Json] = {AGENT: self._identity.text}
        spec = {"holderIdentity": self._name, "renewTime": micro_timestamp(now)}
        patch = merge_patch({"metadata": {"annotations": annotations}, "spec": spec})
        try:
            await self._client.patch(LEASES, self._name, patch, LEASE_NAMESPACE, options=_OPTIONS)
        except NotFoundError:
            lease = lease_of(self._name, now)
            lease["metadata"]["annotations"] = annotations
            await self._client.create(LEASES, lease, LEASE_NAMESPACE, options=_OPTIONS)


def _amount(text: str | None) -> Quantity | None:
    """Servers write quantities in their own way."""
    try:
        return None if text is None else Quantity.parse(text)
    except QuantityError:
        return None


def _is_within(part: Json, whole: Json) -> bool:
    """Whether all members of an object are in another one, and alike there."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(_is_within(value, whole.get(name)) for name, value in part.items())
    return bool(part == whole) or (part == "" and whole is None)

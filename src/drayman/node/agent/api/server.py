"""A node's own server, from its first certificate on: asked for, kept, and renewed before it expires.

Pods run meanwhile. Where somebody has to approve the certificate first, the log and an event of the Node say what to do.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from drayman.cluster.backoff import Backoff
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import NODES
from drayman.node.agent.api.admitting import Gate
from drayman.node.agent.api.answering import AgentApi
from drayman.node.agent.api.certificates import (
    KeyFile,
    ServingFile,
    belong_together,
    request_for,
    request_name,
)
from drayman.node.agent.api.requesting import RefusedError, serving_certificate
from drayman.node.agent.api.serving import serving
from drayman.node.streams.finishing import cancelled, to_the_end

SOON_S: Final = 3.0
"""A cluster that approves by itself has done so by then."""
_RETRIES: Final = Backoff(initial=1.0, cap=60.0)
_AFTER_REFUSAL: Final = Backoff(initial=60.0, cap=3600.0)
_LONGEST_SLEEP: Final = timedelta(hours=1)
"""The clock may be set, and the machine may sleep."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where a node serves, and whom it believes."""

    node: str
    address: str
    port: int
    root: Path
    authority: bytes
    """Who signs for the API server; PEM."""
    approval_s: float = SOON_S
    """How long a certificate may take before somebody is asked to approve it."""


class NodeServer:
    """Serves while `run` runs, as soon as there is a certificate."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        options: ServerOptions,
        api: AgentApi,
        announce: Callable[[], Awaitable[None]],
    ) -> None:
        """`announce` tells the cluster the port."""
        self._client = client
        self._recorder = recorder
        self._options = options
        self._api = api
        self._announce = announce
        self._file = ServingFile(
            options.root / "serving.pem", options.node, options.address, options.authority
        )
        self._key = KeyFile(options.root / "serving.key")
        self._context: ssl.SSLContext | None = None
        self.port = 0
        """Where it serves; 0 as long as it does not."""
        self.serves = asyncio.Event()

    async def run(self) -> None:
        """Works until cancelled. Raises OSError if the address is not to be had."""
        renewal = await self._certificate()
        options = self._options
        self._context = self._tls()
        gate = Gate(self._client, options.node)
        async with serving(self._api, options.address, options.port, self._context, gate) as port:
            self.port = port
            await self._tell()
            self.serves.set()
            while True:
                left = renewal - datetime.now(UTC)
                if left > timedelta():
                    await asyncio.sleep(min(left, _LONGEST_SLEEP).total_seconds())
                else:
                    renewal = await self.renew()

    async def renew(self) -> datetime:
        """Have another certificate, for connections that are made from then on; returns when it is to be renewed. Raises OSError."""
        renewal = await self._obtain()
        assert self._context is not None, "it does not serve yet"
        self._context.load_cert_chain(self._file.path)
        return renewal

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cadata=self._options.authority.decode("ascii")
        )
        context.load_cert_chain(self._file.path)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    async def _certificate(self) -> datetime:
        """That of an earlier run, if it is still good. Returns when it is to be renewed."""
        renewal = self._file.renewal(datetime.now(UTC))
        return await self._obtain() if renewal is None else renewal

    async def _obtain(self) -> datetime:
        """Ask until there is a certificate in the file."""
        failures, refusals = 0, 0
        while True:
            try:
                await self._ask()
            except RefusedError as error:
                refusals += 1
                delay = _AFTER_REFUSAL.delay(refusals)
                self._key.forget()
                await self._warn("CertificateRefused", str(error))
            except (ClusterError, OSError) as error:
                failures += 1
                delay = _RETRIES.delay(failures)
                _log.warning("node %s has no certificate yet: %s", self._options.node, error)
            else:
                renewal = self._file.renewal(datetime.now(UTC))
                if renewal is not None:
                    return renewal
                refusals += 1
                delay = _AFTER_REFUSAL.delay(refusals)
                note = "the certificate that was issued is not one to serve with"
                await self._warn("CertificateUnusable", note)
            await asyncio.sleep(delay)

    async def _ask(self) -> None:
        """Raises ClusterError and RefusedError."""
        key, options = self._key.key(), self._options
        name = request_name(key, options.node, options.address)
        request = request_for(key, options.node, options.address)
        answer = asyncio.create_task(serving_certificate(self._client, name, request))
        try:
            done, _ = await asyncio.wait((answer,), timeout=options.approval_s)
            if not done:
                note = f"logs and commands wait for `kubectl certificate approve {name}`"
                await self._warn("CertificatePending", note)
            certificate = await answer
        finally:
            await to_the_end(cancelled(answer))
        try:
            if not belong_together(certificate, key):
                raise RefusedError(f"CertificateSigningRequest {name} is about another key")
        except ValueError as error:
            raise RefusedError(f"CertificateSigningRequest {name}: {error}") from error
        self._file.write(certificate, key)
        self._key.forget()

    async def _tell(self) -> None:
        failures = 0
        while True:
            try:
                return await self._announce()
            except ClusterError as error:
                failures += 1
                _log.warning("the port of node %s is not known: %s", self._options.node, error)
                await asyncio.sleep(_RETRIES.delay(failures))

    async def _warn(self, reason: str, note: str) -> None:
        _log.warning("node %s: %s", self._options.node, note)
        try:
            node = await self._client.get(NODES, self._options.node)
        except ClusterError as error:
            _log.warning("node %s cannot be read: %s", self._options.node, error)
            return
        self._recorder.record(Reference.to(NODES, node), "Warning", reason, note, "Serving")

"""Requests over HTTP: one pool of connections, a bound on what is in flight, and repetition where it is safe.

Watches hold their connection for minutes, so they do not count among the requests in flight: a hundred informers would leave no room
for writes. Credentials never go out over plain http, whatever the kubeconfig says; kubectl does the same.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Final, TypeVar
from urllib.parse import urlencode, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from drayman import __version__
from drayman.cluster.errors import (
    ClusterError,
    NoConnectionError,
    SilentError,
    UnauthorizedError,
    UnknownHostError,
    UnreachableError,
    UntrustedError,
    error_from_response,
)
from drayman.cluster.kube.connection import Connection, tls_context
from drayman.cluster.kube.credentials import ClientCertificate, Credential
from drayman.cluster.kube.retries import DEFAULT_RETRIES, RetryPolicy
from drayman.cluster.options import Query

R = TypeVar("R")
_log: Final = logging.getLogger(__name__)

JSON: Final = "application/json"
_READS: Final = frozenset(("GET", "HEAD"))
_FIRST_NON_SUCCESS: Final = 300
_FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)
"""What goes wrong on the way to the server and back."""
_READ_BUFFER: Final = 1 << 18
_PROBES: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""A dead peer is noticed after a minute."""
_WATCH_GRACE: Final = 30.0
"""Seconds of silence past the end of a watch after which its connection is considered dead."""


class ClientLimits(Struct, frozen=True):
    """What one client uses of a server, in requests at a time and in seconds."""

    in_flight: int = 64
    connect_seconds: float = 10.0
    request_seconds: float = 60.0
    silent_seconds: float = 60.0
    """After this long without a byte of the answer, the server is considered dead."""


DEFAULT_LIMITS: Final = ClientLimits()


class HttpRequest(Struct, frozen=True):
    method: str
    path: str
    query: Query = ()
    body: bytes | None = None
    content_type: str = JSON


class _DroppingHandler(ResponseHandler):
    """The client's end of a connection, which is dropped where aiohttp would close it.

    Closing ends TLS in agreement with the server, and aiohttp does not wait for that: the connection could outlive the event loop.
    """

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        super().close()


class DroppingConnector(aiohttp.TCPConnector):
    """Connections to be used again. None of them outlives its client, not even that of a request that is given up."""

    def __init__(self) -> None:
        # The number of requests is bounded elsewhere; a bound on connections would let watches starve them.
        super().__init__(limit=0, keepalive_timeout=60, socket_factory=_keepalive_socket)
        self._factory = partial(_DroppingHandler, loop=asyncio.get_running_loop())  # type: ignore[assignment]


class Transport:
    """The HTTP half of a client, for one connection."""

    def __init__(
        self,
        connection: Connection,
        limits: ClientLimits = DEFAULT_LIMITS,
        retries: RetryPolicy = DEFAULT_RETRIES,
    ) -> None:
        self.connection = connection
        self._limits = limits
        self._retries = retries
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._session: aiohttp.ClientSession | None = None
        self._tls: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._closed = False
        self.answered = asyncio.Event()
        """Set once the server has answered anything at all."""

    async def send(self, request: HttpRequest) -> bytes:
        """The body of the answer. Raises StatusError or UnreachableError when repetition did not help."""
        return await self._repeated(request, lambda: self._send_once(request))

    @asynccontextmanager
    async def stream(
        self, request: HttpRequest, seconds: float | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of an answer as it comes, in pieces. `seconds` is when the server is to end it, if known."""
        timeout = aiohttp.ClientTimeout(
            total=None,
            connect=self._limits.connect_seconds,
            sock_read=None if seconds is None else seconds + _WATCH_GRACE,
        )
        response = await self._repeated(request, lambda: self._open(request, timeout))
        try:
            yield self._pieces(request, response)
        finally:
            _drop(response)

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _repeated(self, request: HttpRequest, attempt: Callable[[], Awaitable[R]]) -> R:
        failures = 0
        while True:
            try:
                return await attempt()
            except ClusterError as error:
                failures += 1
                wait = self._retries.delay(
                    error,
                    is_read=request.method in _READS,
                    failures=failures,
                    answered=self.answered.is_set(),
                )
                if wait is None:
                    raise
                _log.debug("%s %s: %s; again in %.2f s", request.method, request.path, error, wait)
            await asyncio.sleep(wait)

    async def _send_once(self, request: HttpRequest) -> bytes:
        timeout = aiohttp.ClientTimeout(
            total=self._limits.request_seconds,
            connect=self._limits.connect_seconds,
            sock_read=self._limits.silent_seconds,
        )
        async with self._slots:
            response = await self._open(request, timeout)
            try:
                return await response.read()
            except _FAILURES as error:
                raise self._unreachable(request, error) from error
            finally:
                _drop(response)

    async def _open(
        self, request: HttpRequest, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """A successful answer, its body still to be read. Credentials that were refused are renewed once."""
        credential = await self.connection.credentials.current()
        try:
            return await self._exchange(request, timeout, credential)
        except UnauthorizedError:
            if not self.connection.credentials.refused(credential):
                raise
        renewed = await self.connection.credentials.current()
        return await self._exchange(request, timeout, renewed)

    async def _exchange(
        self, request: HttpRequest, timeout: aiohttp.ClientTimeout, credential: Credential
    ) -> aiohttp.ClientResponse:
        connection = self.connection
        try:
            response = await self._open_session().request(
                request.method,
                _address(connection, request),
                data=request.body,
                headers=self._headers(request, credential),
                timeout=timeout,
                ssl=self._tls_for(credential.certificate) if connection.begins_with_tls else True,
                server_hostname=connection.trust.server_name or None,
                proxy=connection.proxy or None,
                allow_redirects=False,
            )
            self.answered.set()
            if response.status < _FIRST_NON_SUCCESS:
                _log_warnings(request, response)
                return response
            async with response:
                body = await response.read()
        except _FAILURES as error:
            raise self._unreachable(request, error) from error
        raise error_from_response(response.status, body, response.headers.get("Retry-After"))

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise UnreachableError("the client is closed", outcome_unknown=False)
        if self._session is None:
            # Proxies come from the kubeconfig alone: the environment's would catch loopback servers too.
            self._session = aiohttp.ClientSession(
                connector=DroppingConnector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                read_bufsize=_READ_BUFFER,
            )
        return self._session

    async def _pieces(
        self, request: HttpRequest, response: aiohttp.ClientResponse
    ) -> AsyncIterator[bytes]:
        try:
            async for piece in response.content.iter_any():
                yield piece
        except _FAILURES as error:
            raise self._unreachable(request, error) from error

    def _unreachable(self, request: HttpRequest, error: Exception) -> UnreachableError:
        """The error for what went wrong, by its class, in words for people."""
        what = f"{request.method} {request.path}"
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            why = _tls_cause(error)
            return UntrustedError(f"{what}: {why}", why=why)
        if isinstance(error, aiohttp.ClientConnectorError):
            kind = NoConnectionError
            if isinstance(error, aiohttp.ClientConnectorDNSError):
                kind = UnknownHostError
            why = _cause(error)
            return kind(f"{what}: no connection to {error.host}:{error.port}: {why}", why=why)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            why = f"no connection within {self._limits.connect_seconds:g} s"
            return NoConnectionError(f"{what}: {why}", why=why)
        if isinstance(error, TimeoutError):
            why = f"no answer within {self._patience(error):g} s"
            return SilentError(f"{what}: {why}", why=why)
        why = str(error) or type(error).__name__
        if isinstance(error, aiohttp.ClientPayloadError):
            why = "the connection ended in the middle of the answer"
        return UnreachableError(f"{what}: {why}", outcome_unknown=True, why=why)

    def _patience(self, error: TimeoutError) -> float:
        """How long we waited for an answer. The limit on silence has its own error."""
        is_silence = isinstance(error, aiohttp.SocketTimeoutError)
        return self._limits.silent_seconds if is_silence else self._limits.request_seconds

    def _tls_for(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        if certificate not in self._tls:
            # Only the latest is kept: a plugin that rotates certificates would add one each time.
            self._tls = {certificate: tls_context(self.connection.trust, certificate)}
        return self._tls[certificate]

    def _headers(self, request: HttpRequest, credential: Credential) -> CIMultiDict[str]:
        headers = CIMultiDict(
            {
                "Accept": JSON,
                "Accept-Encoding": "identity" if _is_loopback(self.connection.server) else "gzip",
                "User-Agent": f"drayman/{__version__}",
            }
        )
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if credential.authorization and self.connection.uses_tls:
            headers["Authorization"] = credential.authorization
        for name, value in self.connection.headers.items():
            for each in (value,) if isinstance(value, str) else value:
                headers.add(name, each)
        return headers


def _drop(response: aiohttp.ClientResponse) -> None:
    """Release an answer: a connection whose answer has ended goes back to the pool, any other is dropped."""
    if response.content.is_eof():
        response.release()
    else:
        response.close()


def _address(connection: Connection, request: HttpRequest) -> URL:
    query = f"?{urlencode(request.query)}" if request.query else ""
    return URL(f"{connection.server}{request.path}{query}", encoded=True)


def _tls_cause(error: Exception) -> str:
    """Why TLS failed, without what aiohttp adds to it."""
    found = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorSSLError):
        found = error.os_error
    if isinstance(found, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {found.verify_message}"
    if isinstance(found, ssl.SSLError) and found.reason:
        return f"TLS fails: {found.reason.lower().replace('_', ' ')}"
    return str(error)


def _cause(error: aiohttp.ClientConnectorError) -> str:
    """The cause in words for people: aiohttp's own message names an object in memory."""
    number = error.os_error.errno or 0
    cause = os.strerror(number) if number > 0 else error.os_error.strerror
    return (cause or str(error.os_error)).lower()


def _log_warnings(request: HttpRequest, response: aiohttp.ClientResponse) -> None:
    """What the server wants its caller to know, such as a deprecated version."""
    for warning in response.headers.getall("Warning", ()):
        _log.warning("%s %s: %s", request.method, request.path, warning)


@cache
def _is_loopback(server: str) -> bool:
    """Compressing costs more than it saves when the server is on the same machine."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _keepalive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A watch may be silent for long: probes distinguish a quiet server from one that is gone."""
    family, type_, protocol, _, _ = address
    made = socket.socket(family, type_, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made

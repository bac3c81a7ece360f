"""A `Client` for any Kubernetes API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from drayman.api import codec as objects
from drayman.api.errors import DecodeError
from drayman.api.struct import ApiStruct
from drayman.cluster.backend import Target
from drayman.cluster.client import Client, Page
from drayman.cluster.errors import ProtocolError
from drayman.cluster.in_order import write_in_order
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.lines import events
from drayman.cluster.kube.locating import find_connection
from drayman.cluster.kube.retries import DEFAULT_RETRIES, RetryPolicy
from drayman.cluster.kube.transport import DEFAULT_LIMITS, ClientLimits, HttpRequest, Transport
from drayman.cluster.options import (
    DeleteOptions,
    GetOptions,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from drayman.cluster.patches import Patch
from drayman.cluster.resources import Codec, Resource, path_of
from drayman.cluster.watching import Bookmark, Change
from drayman.cluster.writes import Write

R = TypeVar("R")
T = TypeVar("T")


class _Answer(ApiStruct):
    """Enough of an answer to distinguish an object from a Status."""

    kind: str = ""
    api_version: str = ""


class HttpClient(Client):
    """Talks to an API server over HTTP."""

    def __init__(
        self,
        connection: Connection,
        *,
        limits: ClientLimits = DEFAULT_LIMITS,
        retries: RetryPolicy = DEFAULT_RETRIES,
    ) -> None:
        self._transport = Transport(connection, limits, retries)

    @classmethod
    def from_environment(cls, kubeconfig: Path | None = None, context: str = "") -> HttpClient:
        """For the cluster that kubectl would talk to. Raises ConfigurationError."""
        return cls(find_connection(kubeconfig, context))

    @property
    def connection(self) -> Connection:
        """The server it talks to, and as which user."""
        return self._transport.connection

    @property
    def answered(self) -> asyncio.Event:
        """Set once the server has answered anything at all."""
        return self._transport.answered

    @property
    def default_namespace(self) -> str:
        """The namespace of the kubeconfig's context, or of the pod we run in."""
        return self._transport.connection.namespace

    async def write_many(self, writes: Sequence[Write]) -> tuple[object, ...]:
        return await write_in_order(self, writes)  # the Kubernetes API has no transactions

    async def read_path(self, path: str) -> bytes:
        """What the server answers for a path that is not about objects, such as `/version`. Raises ClusterError."""
        return await self._transport.send(HttpRequest("GET", path))

    async def close(self) -> None:
        await self._transport.close()

    async def _get(self, target: Target, codec: Codec[T], options: GetOptions) -> T:
        return await self._send(HttpRequest("GET", path_of(target), options.query()), codec.decode)

    async def _list(self, target: Target, codec: Codec[T], options: ListOptions) -> Page[T]:
        request = HttpRequest("GET", path_of(target), options.query())
        return Page.of(*await self._send(request, codec.decode_list))

    @asynccontextmanager
    async def _watch(
        self, target: Target, resource: Resource[T], options: WatchOptions
    ) -> AsyncIterator[AsyncIterator[Change[T] | Bookmark]]:
        request = HttpRequest("GET", path_of(target), options.query())
        async with self._transport.stream(request, options.timeout_seconds or None) as pieces:
            yield events(resource, pieces)

    async def _create(self, target: Target, value: T, codec: Codec[T], options: WriteOptions) -> T:
        request = HttpRequest("POST", path_of(target), options.query(), codec.encode(value))
        return await self._send(request, codec.decode)

    async def _update(self, target: Target, value: T, codec: Codec[T], options: WriteOptions) -> T:
        request = HttpRequest("PUT", path_of(target), options.query(), codec.encode(value))
        return await self._send(request, codec.decode)

    async def _patch(
        self, target: Target, patch: Patch, codec: Codec[T], options: WriteOptions
    ) -> T:
        request = HttpRequest(
            "PATCH", path_of(target), options.query(), patch.encode(), patch.media_type
        )
        return await self._send(request, codec.decode)

    async def _delete(self, target: Target, codec: Codec[T], options: DeleteOptions) -> T | None:
        body = objects.encode_json(options.body())
        request = HttpRequest("DELETE", path_of(target), body=body)
        return await self._send(
            request, lambda answer: None if _is_status(answer) else codec.decode(answer)
        )

    async def _delete_collection(
        self, target: Target, codec: Codec[T], options: DeleteOptions, selection: ListOptions
    ) -> tuple[T, ...]:
        body = objects.encode_json(options.body())
        request = HttpRequest("DELETE", path_of(target), selection.query(), body)
        return await self._send(
            request, lambda answer: () if _is_status(answer) else codec.decode_list(answer)[1]
        )

    async def _send(self, request: HttpRequest, decode: Callable[[bytes], R]) -> R:
        answer = await self._transport.send(request)
        try:
            return decode(answer)
        except DecodeError as error:
            raise ProtocolError(f"{request.method} {request.path}: {error}") from error


def _is_status(answer: bytes) -> bool:
    """Whether an answer is a Status and not an object."""
    return objects.decode(_Answer, answer).kind == "Status"

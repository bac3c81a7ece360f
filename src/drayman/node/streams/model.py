"""Logs and commands of containers as a node offers them, whatever carries them to a client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ContainerName:
    """One container of one pod."""

    namespace: str
    pod: str
    uid: str
    """Of the pod."""
    container: str


@dataclass(frozen=True, slots=True)
class PodName:
    """One pod."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which part of a log, and whether to wait for more."""

    follow: bool = False
    previous: bool = False
    """The log of the run before the last restart."""
    timestamps: bool = False
    since: datetime | None = None
    since_seconds: int | None = None
    tail: int | None = None
    limit_bytes: int | None = None
    trusts_any_certificate: bool = False
    """Whether the node need not prove who it is."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Which streams of a command its client wants."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


@dataclass(frozen=True, slots=True)
class WindowSize:
    """Of the client's terminal, in characters."""

    width: int
    height: int


class Streams(Protocol):
    """The client of a command. Writing waits while the client does not read."""

    async def read(self) -> bytes:
        """The next input; empty at its end."""
        ...

    async def write(self, data: bytes) -> None:
        """Standard output."""
        ...

    async def write_error(self, data: bytes) -> None:
        """Standard error; standard output where the client has a terminal, because that has one stream."""
        ...

    async def resized(self) -> WindowSize:
        """The size of the terminal when it next changes."""
        ...


class Connection(Protocol):
    """Bytes in both directions, each of which ends on its own."""

    async def read(self) -> bytes:
        """The next bytes; empty at their end. Raises ConnectionError, and NodeApiError if the node says why there are none."""
        ...

    async def write(self, data: bytes) -> None:
        """Waits while the other end does not read. Raises ConnectionError if it is gone."""
        ...

    async def end(self) -> None:
        """Say that nothing more is written."""
        ...

    async def close(self) -> None:
        """Give the connection up, wherever it stands."""
        ...


class NodeApiError(Exception):
    """A node refuses. The code is that of HTTP; the message is one sentence that is shown to the client."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class NodeApi(Protocol):
    """One node, or all nodes of one sort, as clients reach them through the API server."""

    async def logs(self, name: ContainerName, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of a container. Raises NodeApiError."""
        ...

    async def execute(
        self,
        name: ContainerName,
        command: tuple[str, ...],
        options: StreamOptions,
        streams: Streams,
    ) -> int:
        """Run a command in a container; its exit code. Raises NodeApiError."""
        ...

    async def attach(self, name: ContainerName, options: StreamOptions, streams: Streams) -> int:
        """Join the streams of a container until it ends; its exit code. Raises NodeApiError."""
        ...

    async def forward(self, pod: PodName, port: int) -> Connection:
        """A connection to a port of a pod. Raises NodeApiError."""
        ...

"""Both ends of a WebSocket without a network, and a client that collects what a command prints."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from drayman.node.streams.model import WindowSize


@dataclass(slots=True)
class FakeSocket:
    """What the other end sends is put in; what it would receive is taken out."""

    incoming: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    sent: list[bytes] = field(default_factory=list)
    closed: int | None = None

    async def receive(self) -> bytes | None:
        return await self.incoming.get()

    async def send(self, message: bytes) -> None:
        self.sent.append(message)

    async def close(self, code: int) -> None:
        self.closed = code

    def on(self, channel: int) -> bytes:
        return b"".join(message[1:] for message in self.sent if message[0] == channel)


@dataclass(slots=True)
class Collected:
    """A client with its input at hand."""

    input: list[bytes] = field(default_factory=list)
    output: bytes = b""
    errors: bytes = b""
    sizes: list[WindowSize] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> bytes:
        return self.input.pop(0) if self.input else b""

    async def write(self, data: bytes) -> None:
        self.output += data

    async def write_error(self, data: bytes) -> None:
        self.errors += data

    async def resized(self) -> WindowSize:
        if self.sizes:
            return self.sizes.pop(0)
        await self.gone.wait()
        raise AssertionError("nobody sets it")

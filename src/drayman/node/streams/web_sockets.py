"""Messages of WebSockets as they arrive, at either end."""

from __future__ import annotations

from aiohttp import ClientWebSocketResponse, WSMsgType, web


async def next_message(socket: ClientWebSocketResponse | web.WebSocketResponse) -> bytes | None:
    """In bytes, also of one that came as text; None when the other end has closed the WebSocket."""
    received = await socket.receive()
    if received.type is WSMsgType.BINARY:
        return bytes(received.data)
    return str(received.data).encode() if received.type is WSMsgType.TEXT else None

"""Connections that become WebSockets, or something that is not HTTP at all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from drayman.apiserver.protocol.exchange import UpgradedResponse
from drayman.apiserver.serving.connections import Connections, Sending
from drayman.node.streams import channels
from drayman.node.streams.departing import while_there
from drayman.node.streams.negotiating import STREAM_PROTOCOL
from drayman.node.streams.takeover import RawSocket, taken_over
from drayman.node.streams.web_sockets import next_message

_log: Final = logging.getLogger(__name__)
CLOSE_S: Final = 2.0
"""How long a client may take to agree to the end."""


class ServedSocket:
    """The near end of a WebSocket that a client has opened."""

    def __init__(self, response: web.WebSocketResponse, sending: Sending) -> None:
        self._response = response
        self._sending = sending

    async def receive(self) -> bytes | None:
        return await next_message(self._response)

    async def send(self, message: bytes) -> None:
        with self._sending.waiting():
            await self._response.send_bytes(message)

    async def close(self, code: int) -> None:
        await self._response.close(code=code)


async def upgrade(
    incoming: web.BaseRequest,
    answer: UpgradedResponse,
    headers: CIMultiDict[str],
    connections: Connections,
) -> web.StreamResponse:
    """Make the connection what the answer wants, and let the answer have it."""
    if answer.is_spdy:
        return await _take_over(incoming, answer, headers, connections)
    response = web.WebSocketResponse(
        protocols=(answer.protocol,),
        max_msg_size=channels.MOST_BYTES_OF_CLIENTS,
        timeout=CLOSE_S,
        compress=False,
    )
    response.headers.update(_without_length(headers))
    try:
        with connections.sending(incoming) as sending:
            await response.prepare(incoming)
            with while_there(incoming, response.ping):
                await answer.converse(ServedSocket(response, sending))
    except ConnectionError:
        _log.debug("the client of %s went away", incoming.path)
    return response


class _RawSocket:
    """The near end of a connection that is not HTTP any more."""

    def __init__(self, raw: RawSocket, sending: Sending) -> None:
        self._raw = raw
        self._sending = sending

    async def receive(self) -> bytes | None:
        return await self._raw.receive()

    async def send(self, message: bytes) -> None:
        with self._sending.waiting():
            await self._raw.send(message)

    async def close(self, code: int) -> None:
        await self._raw.close(code)


async def _take_over(
    incoming: web.BaseRequest,
    answer: UpgradedResponse,
    headers: CIMultiDict[str],
    connections: Connections,
) -> web.StreamResponse:
    agreed = {**_without_length(headers), STREAM_PROTOCOL: answer.protocol}
    with connections.sending(incoming) as sending:
        async with taken_over(incoming, agreed) as (response, raw):
            try:
                with while_there(incoming, raw.ping):
                    await answer.converse(_RawSocket(raw, sending))
            except ConnectionError:
                _log.debug("the client of %s went away", incoming.path)
            return response


def _without_length(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "Content-Length"}

"""Connections to nodes that do not do their part."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path

from cluster.certificates import Authority
from drayman.node.streams.dialing import upgraded
from drayman.node.streams.takeover import RawSocket
from patience import PATIENCE_S

LOCAL = "127.0.0.1"


async def test_a_node_that_says_nothing_is_left_at_once(tmp_path: Path) -> None:
    """It would not answer a farewell either."""
    authority = Authority()
    near = ssl.create_default_context(cadata=authority.pem().decode())
    near.verify_flags &= ~ssl.VERIFY_X509_STRICT
    far = authority.server(tmp_path, LOCAL)
    with socket.create_server((LOCAL, 0)) as listening:

        def asked() -> ssl.SSLSocket:
            """Returns when the node has heard what is wanted of it."""
            accepted, _ = listening.accept()
            accepted.settimeout(PATIENCE_S)
            node = far.wrap_socket(accepted, server_side=True)
            node.recv(1000)
            return node

        def heard() -> bytes:
            """What comes before the end of the connection, as it is on the wire."""
            with suppress(ConnectionResetError):
                return socket.socket.recv(node, 1000)
            return b""

        port = listening.getsockname()[1]
        asking = asyncio.create_task(upgraded(LOCAL, port, near, "/", "portforward.k8s.io"))
        with await asyncio.to_thread(asked) as node:
            asking.cancel()
            await asyncio.wait((asking,))
            assert await asyncio.to_thread(heard) == b""


async def test_a_connection_that_is_closed_does_not_stay_open() -> None:
    """Also if the other end does not read what was sent last."""
    with socket.create_server((LOCAL, 0)) as listening:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        raw, near = RawSocket(reader, writer), writer.get_extra_info("socket")
        sending = asyncio.create_task(raw.send(bytes(64 * 1024 * 1024)))
        await asyncio.sleep(0)
        await raw.close(1000)
        await asyncio.sleep(0)  # transports close their sockets then
        assert near.fileno() == -1
        await sending

"""The connections of a benchmark."""

from __future__ import annotations

import asyncio
import queue
import socket
import ssl
from pathlib import Path

import pytest

from cli.test_connecting import Meeting, meeting
from cluster.certificates import Authority
from drayman.cli.bench.wire import Address, ConnectionPool, RequestError
from patience import PATIENCE_S

__all__ = ["meeting"]

TAKEN = 2


async def _open(address: Address, ended: queue.Queue[bytes]) -> list[bytes]:
    """What the server has received on the connections that it took, while the loop that they belong to still runs."""
    with pytest.raises(RequestError, match="no connection"):
        await ConnectionPool(address, size=TAKEN + 1).__aenter__()
    return [await asyncio.to_thread(ended.get, timeout=PATIENCE_S) for _ in range(TAKEN)]


def test_a_pool_that_cannot_open_leaves_no_connection_open(
    meeting: Meeting, tmp_path: Path
) -> None:
    """Where a server takes only some of the connections, those are closed."""
    authority = Authority()
    tls = authority.server(tmp_path, "127.0.0.1")
    ended: queue.Queue[bytes] = queue.Queue()

    def take_a_few(taken: socket.socket) -> None:
        if stranger.met <= TAKEN:
            with tls.wrap_socket(taken, server_side=True) as connection:
                ended.put(connection.recv(1))

    stranger = meeting(take_a_few)
    trusting = ssl.create_default_context(cadata=authority.pem().decode())
    address = Address(f"https://{stranger.address}", trusting, ())
    assert asyncio.run(_open(address, ended)) == [b""] * TAKEN, "the client has closed them"

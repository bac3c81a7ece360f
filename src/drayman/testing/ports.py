"""Ports that are known before anybody listens on them, or while nobody does."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[int]:
    """A port of 127.0.0.1 on which nobody listens, and which nobody is given by chance meanwhile.

    A server that binds with SO_REUSEADDR may take it and give it back any number of times. A port that is merely free now may belong to
    any outgoing connection later; a client that tries to reach a server that is away may even be given it itself, and meet itself.
    """
    with socket.socket() as keeping:
        keeping.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeping.bind(("127.0.0.1", 0))
        port: int = keeping.getsockname()[1]
        if sys.platform != "linux":  # where nobody else may bind it while it is kept
            keeping.close()
        yield port

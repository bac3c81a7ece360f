"""The streams of a container for those who attach to it. Part of the shim: it imports nothing but the standard library.

Clients connect to the socket `attach` in the folder of the container, as many as like to. Messages both ways are one byte for what they
are, four for the length of the rest, and the rest. Everybody gets what the container says from then on; who says something speaks to its
input. A client that does not read holds the container up for a while, as a slow terminal would, and is then left behind.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time

from drayman.node.agent.processes import window_sizes

STDIN, STDOUT, STDERR, RESIZE, CLOSE = 0, 1, 2, 4, 255
"""As the channels of a WebSocket have them. CLOSE ends the input of the client that sends it."""
HEAD = struct.Struct(">BI")
LONGEST = 64 * 1024
"""Of a message."""
MOST_CLIENTS = 16
"""The agent tells those that come later. Should one come here, it is left without an answer."""
MOST_WAITING = 256 * 1024
"""Bytes that wait for a client before the container waits, and bytes of input before clients wait."""
PATIENCE_S = 10.0
"""How long the container waits for a client that reads nothing."""


def message(kind: int, data: bytes) -> bytes:
    return HEAD.pack(kind, len(data)) + data


def messages(received: bytearray) -> list[tuple[int, bytes]]:
    """Take the complete messages out of what was received. Raises ValueError."""
    found = []
    while len(received) >= HEAD.size:
        kind, length = HEAD.unpack_from(received)
        if length > LONGEST:
            raise ValueError(f"a message has {length} bytes")
        end = HEAD.size + length
        if len(received) < end:
            break
        found.append((kind, bytes(received[HEAD.size : end])))
        del received[:end]
    return found


class Client:
    """One who has attached."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.waiting = bytearray()
        self.progress = time.monotonic()
        """When it last read something, or had nothing to read."""
        self.has_spoken = False
        """Whether it may have something to say, and its going away is the end of the input."""


def listener(folder: str) -> socket.socket:
    """The socket in a folder, by way of the folder: the path of a socket must not be long."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.setblocking(False)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found.bind(f"/proc/self/fd/{place}/attach")
    finally:
        os.close(place)
    found.listen(MOST_CLIENTS)
    return found


class Attached:
    """Those who have attached to a container. `sink`: what its input is written to, or its terminal; -1 if it has neither."""

    def __init__(
        self,
        listener: socket.socket,
        poll: select.poll,
        sink: int,
        *,
        is_terminal: bool,
        has_input: bool,
        once: bool,
    ) -> None:
        self._poll = poll
        self._sink = sink
        self._is_terminal = is_terminal
        self._once = once
        self._input = bytearray()
        self._is_input_over = not has_input
        self._is_sink_watched = False
        self._clients: dict[int, Client] = {}
        self._listener = listener
        if sink >= 0:
            os.set_blocking(sink, False)
        poll.register(self._listener, select.POLLIN)

    # --- What the loop of the shim asks --------------------------------------------------------

    def is_held_up(self) -> bool:
        """Whether the container is to wait for a client. Those who read nothing for too long are left behind."""
        latest = time.monotonic() - PATIENCE_S
        slow = [each for each in self._clients.values() if len(each.waiting) > MOST_WAITING]
        for client in slow:
            if client.progress < latest:
                self._drop(client)
        return any(client.progress >= latest for client in slow)

    def handle(self, descriptor: int, event: int) -> None:
        """Act on an event of a client, of the input, or of the socket."""
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._clients:
            client = self._clients[descriptor]
            if event & select.POLLOUT:
                self._send(client)
            is_there = descriptor in self._clients
            if is_there and event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._receive(client)
        elif descriptor == self._sink:
            self._feed()

    def say(self, kind: int, data: bytes) -> None:
        """What the container says goes to everybody."""
        for client in tuple(self._clients.values()):
            if not client.waiting:
                client.progress = time.monotonic()
            client.waiting += message(kind, data)
            self._send(client)

    def finish(self) -> None:
        """The container has ended: whoever reads on gets what waits, for a moment."""
        self._listener.close()
        latest = time.monotonic() + PATIENCE_S
        for client in tuple(self._clients.values()):
            left = latest - time.monotonic()
            client.connection.settimeout(max(0.01, left))
            try:
                client.connection.sendall(client.waiting)
            except OSError:
                pass
            client.connection.close()
        self._clients.clear()

    # --- Clients -------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        if len(self._clients) >= MOST_CLIENTS:
            self._drop_gone()
        if len(self._clients) >= MOST_CLIENTS:
            connection.close()
            return
        connection.setblocking(False)
        self._clients[connection.fileno()] = Client(connection)
        self._poll.register(connection, self._interest(b""))

    def _drop_gone(self) -> None:
        """Those that have left just now have made room, though their turn has not come."""
        for client in tuple(self._clients.values()):
            try:
                is_gone = not client.connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            except OSError:
                is_gone = True
            if is_gone:
                self._drop(client)

    def _interest(self, waiting: bytes | bytearray) -> int:
        reads = select.POLLIN if len(self._input) <= MOST_WAITING else 0
        return reads | (select.POLLOUT if waiting else 0)

    def _drop(self, client: Client) -> None:
        number = client.connection.fileno()
        self._poll.unregister(number)
        del self._clients[number]
        client.connection.close()
        if client.has_spoken:
            self._end_input()

    def _send(self, client: Client) -> None:
        try:
            while client.waiting:
                del client.waiting[: client.connection.send(client.waiting[:LONGEST])]
                client.progress = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        self._poll.modify(client.connection, self._interest(client.waiting))

    def _receive(self, client: Client) -> None:
        try:
            data = client.connection.recv(LONGEST)
            client.received += data
            found = messages(client.received)
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._drop(client)
            return
        for kind, rest in found:
            self._obey(client, kind, rest)
        if not data:
            self._drop(client)

    def _obey(self, client: Client, kind: int, data: bytes) -> None:
        if kind == STDIN and not self._is_input_over:
            client.has_spoken = True
            self._input += data
            self._feed()
        elif kind == CLOSE and client.has_spoken:
            client.has_spoken = False
            self._end_input()
        elif kind == RESIZE and self._is_terminal and len(data) == window_sizes.PACKED.size:
            window_sizes.set_size(self._sink, data)

    # --- The input of the container ------------------------------------------------------------

    def _end_input(self) -> None:
        """Who was the first to speak was the only one, if the container reads its input once. A terminal has no end."""
        if self._once and not self._is_terminal:
            self._is_input_over = True
            self._feed()

    def _feed(self) -> None:
        """Write as much of the input as the container takes."""
        if self._sink < 0:
            return
        try:
            while self._input:
                del self._input[: os.write(self._sink, self._input[:4096])]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more
            self._input.clear()
        self._watch_sink()
        for client in self._clients.values():
            self._poll.modify(client.connection, self._interest(client.waiting))
        if self._is_input_over and not self._input and not self._is_terminal:
            os.close(self._sink)
            self._sink = -1

    def _watch_sink(self) -> None:
        if bool(self._input) != self._is_sink_watched:
            self._is_sink_watched = bool(self._input)
            if self._input:
                self._poll.register(self._sink, select.POLLOUT)
            else:
                self._poll.unregister(self._sink)

"""Channels: the streams of a command in the messages of one WebSocket.

The first byte of a message says which stream it belongs to. `v5.channel.k8s.io` has one channel more than `v4.channel.k8s.io`, by which a
client says that another one, its input, has ended. When the command has ended, the channel for errors carries a Status.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from drayman.api.struct import Json
from drayman.node.streams.model import NodeApiError, WindowSize

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
PROTOCOLS: Final = (V5, V4)
"""The best one first."""

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255
"""Of the channel in the second byte; version 5 only."""
NORMAL_CLOSURE: Final = 1000
MOST_BYTES: Final = 1024 * 1024
"""Of one message of a node."""
MOST_BYTES_OF_CLIENTS: Final = 256 * 1024
"""Of one message of a client, of which a few are in memory for each session. kubectl sends at most 32 KiB at a time."""
_NON_ZERO: Final = "NonZeroExitCode"
_EXIT_CODE: Final = "ExitCode"
_INTERNAL: Final = "Internal error occurred: "


class Socket(Protocol):
    """One end of a WebSocket."""

    async def receive(self) -> bytes | None:
        """The next message; None when the other end has closed it."""
        ...

    async def send(self, message: bytes) -> None:
        """Send a message. Waits while the other end does not read. Raises ConnectionError if it is gone."""
        ...

    async def close(self, code: int) -> None: ...


class _Terminal(msgspec.Struct):
    """The size of a terminal as clients write it."""

    width: int = msgspec.field(name="Width", default=0)
    height: int = msgspec.field(name="Height", default=0)


def message(channel: int, data: bytes) -> bytes:
    """Data of a channel."""
    return bytes((channel,)) + data


def is_end_of_input(data: bytes) -> bool:
    """Whether what came on the channel CLOSE says that there is no more input."""
    return data[:1] == bytes((STDIN,))


def size_of(data: bytes) -> WindowSize | None:
    """A size as it came on the channel RESIZE; None for anything else, which is not worth the end of a session."""
    try:
        found = msgspec.json.decode(data, type=_Terminal)
    except msgspec.DecodeError:
        return None
    return WindowSize(found.width, found.height)


def size_data(size: WindowSize) -> bytes:
    return msgspec.json.encode(_Terminal(size.width, size.height))


def ended(code: int) -> bytes:
    """The Status that says how a command ended."""
    if code == 0:
        return _status({"status": "Success"})
    return _status(
        {
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": _NON_ZERO,
            "details": {"causes": [{"reason": _EXIT_CODE, "message": str(code)}]},
        }
    )


def refused(why: str, code: int = 500) -> bytes:
    """The Status of a command that could not be started or followed to its end. `code` is that of HTTP."""
    if code == 400:
        return _status({"status": "Failure", "message": why, "reason": "BadRequest", "code": code})
    return _status(
        {
            "status": "Failure",
            "message": f"{_INTERNAL}{why}",
            "reason": "InternalError",
            "details": {"causes": [{"message": why}]},
            "code": 500,
        }
    )


def exit_code(status: bytes) -> int:
    """The exit code in a Status. Raises NodeApiError if the command did not get as far as that."""
    try:
        found = msgspec.json.decode(status, type=dict[str, Json])
    except msgspec.DecodeError as error:
        raise NodeApiError(502, f"the node's report of the end makes no sense: {error}") from error
    if found.get("status") == "Success":
        return 0
    if found.get("reason") == _NON_ZERO:
        causes = (found.get("details") or {}).get("causes") or ()
        for cause in causes:
            text = str(cause.get("message", ""))
            if cause.get("reason") == _EXIT_CODE and text.isdigit():
                return int(text)
    why = str(found.get("message") or "the node does not say why it failed")
    if found.get("reason") == "BadRequest":
        raise NodeApiError(400, why)
    # Whoever passes it on says again that it is an internal error.
    raise NodeApiError(500, why.removeprefix(_INTERNAL))


def _status(members: dict[str, Json]) -> bytes:
    return msgspec.json.encode({"metadata": {}, **members})

"""The size of a terminal on its way from a client to the system. Part of the shim: it imports nothing but the standard library."""

from __future__ import annotations

import fcntl
import struct
import termios

PACKED = struct.Struct(">HH")
"""As messages have it: lines, columns."""
MOST = 0xFFFF
"""Columns or lines that the system can write down."""


def packed(width: int, height: int) -> bytes | None:
    """None for a size that no terminal can have."""
    is_possible = 0 < width <= MOST and 0 < height <= MOST
    return PACKED.pack(height, width) if is_possible else None


def set_size(terminal: int, size: bytes) -> None:
    """Give a terminal a size that was packed. The system tells its processes."""
    height, width = PACKED.unpack(size)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

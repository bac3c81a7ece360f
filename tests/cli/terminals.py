"""What a command shows on a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(command: Sequence[str], columns: int) -> list[str]:
    """The lines that a command writes to a pseudo-terminal, without colours. It must end by itself, with 0."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := _read(ours):
            shown += chunk
        assert process.wait() == 0, shown.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return _CONTROLS.sub("", shown.decode()).splitlines()


def _read(descriptor: int) -> bytes:
    """What there is to read; nothing once nobody writes any more."""
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        return b""

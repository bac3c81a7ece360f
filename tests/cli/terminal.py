"""A command on a real pseudo-terminal, and the screen that a person would see.

The terminal has the size that the command is told; the screen behind it is wider. So a line that does not fit, which a real terminal
would break, shows as one that is too long.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyte

from patience import PATIENCE_S

DRAYMAN: Final = (sys.executable, "-m", "drayman")

_OWN: Final = ("NO_COLOR", "COLUMNS", "LINES", "KUBECONFIG", "DRAYMAN_DATA_DIR", "XDG_STATE_HOME")
"""Variables of whoever runs the tests, which would make a difference."""
_SCREEN_COLUMNS: Final = 600
_SCREEN_LINES: Final = 3_000
"""Nothing scrolls away."""
_CTRL_C: Final = b"\x03"

FAULTS: Final = re.compile(
    r"^internal error|Traceback|Exception ignored|never retrieved", re.MULTILINE
)
"""What no command may ever show."""


def person(home: Path, **settings: str) -> dict[str, str]:
    """The environment of somebody who has a home directory and sits at a terminal."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OWN}
    return {**inherited, "HOME": str(home), "TERM": "xterm-256color", **settings}


class Terminal:
    """A running command. In `with`, it is ended in any case."""

    def __init__(
        self,
        words: Sequence[str | Path],
        environment: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 50,
        folder: Path | None = None,
    ) -> None:
        self._screen = pyte.Screen(_SCREEN_COLUMNS, _SCREEN_LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        self.raw = b""
        """Everything that was written, control sequences included."""
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            [*map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - it makes one system call
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()

    @property
    def lines(self) -> list[str]:
        """What is on the screen, without empty lines at the end and spaces at the ends of lines."""
        rows = self._screen.buffer
        last = max(rows, default=-1)
        found = [_text(rows[number]) if number in rows else "" for number in range(last + 1)]
        return "\n".join(found).rstrip().split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def read_until(self, is_enough: Callable[[Terminal], bool]) -> str:
        """Takes in what is written until that is enough; the screen then. Fails if the command ends before."""
        self._read(is_enough)
        assert is_enough(self), f"the command has ended, and shows only\n{self.text}"
        return self.text

    def wait_for(self, pattern: str) -> str:
        """The same, until a line of the screen matches."""
        wanted = re.compile(pattern, re.MULTILINE)
        return self.read_until(lambda terminal: wanted.search(terminal.text) is not None)

    def end(self) -> int:
        """Takes in everything until the command has ended; its exit status."""
        self._read(lambda _: False)
        return self.process.wait(PATIENCE_S)

    def interrupt(self) -> int:
        """Ctrl-C, as somebody would press it; the exit status."""
        os.write(self._master, _CTRL_C)
        return self.end()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def resize(self, columns: int, rows: int) -> None:
        """The window is made larger or smaller; the command gets a signal."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def hang_up(self) -> None:
        """The window is closed."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _read(self, is_enough: Callable[[Terminal], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_enough(self):
            left = deadline - time.monotonic()
            assert left > 0, f"after {PATIENCE_S:.0f} s the screen shows only\n{self.text}"
            if not select.select([self._master], [], [], left)[0]:
                continue
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # nobody has the other end any more
                return
            self.raw += data
            self._stream.feed(data)


def run(
    words: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    columns: int = 80,
    folder: Path | None = None,
) -> Terminal:
    """A command that ends by itself, when it has."""
    with Terminal(words, environment, columns=columns, folder=folder) as terminal:
        terminal.end()
    return terminal


def _take_terminal() -> None:
    """Standard input is the terminal of the new session, so that keys become signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _text(row: Mapping[int, pyte.screens.Char]) -> str:
    return "".join(row[column].data for column in range(max(row, default=-1) + 1)).rstrip()

"""An interactive shell on a terminal, for typing commands as somebody would who reads the documents."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli.terminal import Terminal

_PROMPT: Final = r"\#:$?> "
"""How many commands there were, and how the last one ended."""
_CTRL_C: Final = b"\x03"


class Shell(Terminal):
    """A shell that waits for commands."""

    def __init__(self, environment: Mapping[str, str], folder: Path, *, columns: int = 80) -> None:
        words = ("bash", "--norc", "--noprofile", "--noediting", "-i")
        settings = {**environment, "PS1": _PROMPT, "PS2": ""}
        super().__init__(words, settings, columns=columns, folder=folder)
        self._number = 1
        self._status(0)

    def type(self, command: str) -> int:
        """Run a command that ends by itself; its exit status."""
        seen = self._enter(command)
        return self._status(seen)

    def type_and_interrupt(self, command: str) -> int:
        """Run a command that goes on, and press Ctrl-C once it has shown something; its exit status."""
        seen = self._enter(command)
        # What was typed shows too, in a line of its own.
        self.read_until(lambda shell: len(shell.raw[seen:].splitlines()) > 3)
        self.press(_CTRL_C)
        return self._status(seen)

    def shown_since(self, seen: int) -> str:
        """Everything since so many bytes, control sequences included."""
        return self.raw[seen:].decode(errors="replace")

    def _enter(self, command: str) -> int:
        seen = len(self.raw)
        self._number += 1
        self.press(command.encode() + os.linesep.encode())
        return seen

    def _status(self, seen: int) -> int:
        prompt = re.compile(rf"^{self._number}:([0-9]+)> ".encode(), re.MULTILINE)
        self.read_until(lambda shell: prompt.search(shell.raw, seen) is not None)
        found = prompt.search(self.raw, seen)
        assert found is not None
        return int(found[1])

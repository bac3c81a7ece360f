"""Which of the instances of a driver on a node is the newest: the one that publishes. A file in their common folder names it."""

from __future__ import annotations

from pathlib import Path

from drayman.plugins.files import write_atomically
from drayman.plugins.sockets import answers


class Instances:
    """Known by the sockets of their services."""

    def __init__(self, folder: Path, own_socket: Path) -> None:
        self._newest = folder / "newest"
        self._own = own_socket

    def enter(self) -> None:
        """From now on this one is the newest. Raises OSError."""
        self._newest.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._newest, str(self._own).encode())

    def is_newest(self) -> bool:
        """Whether this one is. If a newer one has come and gone, it is again. Raises OSError."""
        try:
            newest = Path(self._newest.read_text())
        except FileNotFoundError:
            newest = self._own
        if newest == self._own:
            return True
        if answers(newest):
            return False
        self.enter()
        return True

"""Signals to processes by descriptor: a pid alone may mean another process by the time that a signal is sent."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

_TO_GROUP: Final = 1 << 2
"""PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9."""


@dataclass(frozen=True, slots=True)
class PinnedProcess:
    """A process that stays the same one."""

    pid: int
    descriptor: int

    def send(self, number: int, *, to_group: bool = False) -> None:
        """Send a signal to it, or to the process group that it leads. Raises OSError, ProcessLookupError if it has ended."""
        if not to_group:
            signal.pidfd_send_signal(self.descriptor, number)
            return
        try:
            signal.pidfd_send_signal(self.descriptor, number, None, _TO_GROUP)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # An older kernel: the group has the number of this process as long as that exists.
            signal.pidfd_send_signal(self.descriptor, 0)
            os.killpg(self.pid, number)


@contextmanager
def pinned(pid: int) -> Iterator[PinnedProcess]:
    """The process that has a pid now. A caller that means a certain process checks within the context that it is that one.

    Raises ProcessLookupError.
    """
    descriptor = os.pidfd_open(pid)
    try:
        yield PinnedProcess(pid, descriptor)
    finally:
        os.close(descriptor)

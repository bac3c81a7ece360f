"""What a command does to the process that it has for itself. Where it was called from another program, it leaves the process alone.

A question about a cluster must not slow down the scheduler that may be on the same machine: it gives way. And it ends at once: to take a
hundred thousand objects apart one by one takes a noticeable part of the time of such a command, and the end of the process does it for
nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

_LESS_URGENT: Final = 10
"""The niceness of the process: mostly what others leave of the processors is enough, and where they leave nothing it still gets a tenth."""

_WHERE_CERTIFICATES_ARE: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")

_is_own = False
_kept: Final[list[object]] = []


def own() -> None:
    """The process is there for one command."""
    global _is_own  # noqa: PLW0603 - there is one process, and it is this one
    _is_own = True


def give_way() -> None:
    """Leave the processors to whoever needs them, once and for the rest of the process."""
    if _is_own and os.getpriority(os.PRIO_PROCESS, 0) < _LESS_URGENT:
        os.setpriority(os.PRIO_PROCESS, 0, _LESS_URGENT)


@contextmanager
def without_system_certificates() -> Iterator[None]:
    """Import the HTTP library without the certificates that a system trusts.

    It reads all of them when it is imported, for connections that say nothing about trust. Ours always do: they have a context of their
    own, which reads what it needs. To do without is a tenth of the time of a short command.
    """
    if not _is_own:
        yield
        return
    before = {name: os.environ.get(name) for name in _WHERE_CERTIFICATES_ARE}
    os.environ.update(dict.fromkeys(_WHERE_CERTIFICATES_ARE, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def keep(value: object) -> None:
    """Hold something large until the end, in place of what was kept before."""
    _kept[:] = [value]


def leave(status: int) -> NoReturn:
    """End the process. What was kept is left to the system."""
    if _is_own and _kept:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    sys.exit(status)

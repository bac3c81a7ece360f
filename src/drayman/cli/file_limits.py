"""How many files this process may have open: connections are files, and each command in a container has several."""

from __future__ import annotations

import resource
from contextlib import suppress


def raise_file_limit() -> None:
    """Allow as many open files as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems report a limit that they do not accept.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

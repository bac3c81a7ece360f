"""What all users together may hold at a time. Loaded by the command line, too, so it needs nothing else of the server."""

from __future__ import annotations

from typing import Final, NamedTuple


class Limit(NamedTuple):
    """A bound on one sort of thing."""

    what: str
    """The noun with its details, as it follows a number in a sentence."""
    usual: int
    """The number that applies unless the option states another one."""
    option: str
    """The option of `drayman up` that states the number."""
    unit: int = 1
    """How much one of the option's numbers stands for."""

    def shown(self, amount: int) -> str:
        return f"{round(amount / self.unit, 1):g}"


REQUESTS: Final = Limit("requests at a time", 1_000, "--max-requests-inflight")
WATCHES: Final = Limit("watches and followed logs at a time", 10_000, "--max-watches")
SESSIONS: Final = Limit("sessions in containers at a time", 500, "--max-sessions")
BODIES: Final = Limit(
    "MiB of large bodies and answers at a time", 256, "--max-body-memory", 1 << 20
)

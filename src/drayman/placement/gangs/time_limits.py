"""How long a gang may wait before it is reported as late, and how long it may be below its quorum before it is ended, by annotation.

They are read from pods and Jobs, and from groups that have no fields for this.
"""

from __future__ import annotations

from typing import Final

from drayman.placement.gangs.statements import Statements

TIMEOUT: Final = "drayman.dev/gang-timeout"
GRACE: Final = "drayman.dev/gang-grace"
STATED: Final = frozenset({TIMEOUT, GRACE})


def timeout_of(statements: Statements) -> float | None:
    """Raises InvalidGangError."""
    return statements.duration(TIMEOUT)


def grace_of(statements: Statements) -> float | None:
    """None: a gang below its quorum is not ended, as Kubernetes ends none. Raises InvalidGangError."""
    return statements.duration(GRACE)

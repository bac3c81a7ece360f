"""Whether a failed request may be sent again, and when.

A request that the server never saw can always be repeated, and so can one that it refused for now with "come back in n seconds". A read can
be repeated whatever happened. A write whose fate is unknown is never repeated here: it may have been carried out, and only the caller knows
what a second time would mean.

A control loop goes on asking, because the server will come back. A user at a terminal wants to know at once that there is no server: with
`insists` off, a server that has not answered yet is asked once. One that has answered is only away for a moment.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import (
    ClusterError,
    InternalError,
    ServerTimeoutError,
    SilentError,
    StatusError,
    TooManyRequestsError,
    UnavailableError,
    UnreachableError,
    UntrustedError,
)

_PASSING: Final = (InternalError, ServerTimeoutError, TooManyRequestsError, UnavailableError)
"""Refusals that say nothing about the request itself."""
_NOT_TAKEN: Final = (TooManyRequestsError, UnavailableError)
"""With a time to come back: the request was rejected before it was processed."""
_PATIENT: Final = Backoff(initial=0.1, cap=10.0)


class RetryPolicy(Struct, frozen=True):
    """How often and how patiently requests are repeated."""

    attempts: int = 6
    backoff: Backoff = _PATIENT
    patience: float = 60.0
    """The longest Retry-After that is waited for, in seconds; beyond it the refusal is the caller's to handle."""
    insists: bool = True
    """Whether to ask a server again that has never answered, or that has just let a request wait too long."""

    def delay(
        self, error: ClusterError, *, is_read: bool, failures: int, answered: bool = True
    ) -> float | None:
        """Seconds until the request is sent again, or None to give up. `answered`: whether the server ever has."""
        if failures >= self.attempts or not _may_repeat(error, is_read=is_read):
            return None
        if not self.insists and _is_absent(error, answered=answered):
            return None
        asked = error.retry_after if isinstance(error, StatusError) else 0
        if asked > self.patience:
            return None
        # Added to the time asked for: all clients were asked to come back at the same moment.
        return asked + self.backoff.delay(failures)


def _is_absent(error: ClusterError, *, answered: bool) -> bool:
    """Whether the server seems to be absent, and not just for a moment."""
    if isinstance(error, SilentError):
        return True
    return isinstance(error, UnreachableError) and not answered


def _may_repeat(error: ClusterError, *, is_read: bool) -> bool:
    if isinstance(error, UnreachableError):
        # Asking again does not fix a certificate.
        return not isinstance(error, UntrustedError) and (is_read or not error.outcome_unknown)
    if isinstance(error, StatusError):
        turned_away = isinstance(error, _NOT_TAKEN) and error.retry_after > 0
        return turned_away or (is_read and isinstance(error, _PASSING))
    return False


DEFAULT_RETRIES: Final = RetryPolicy()
FOR_PEOPLE: Final = RetryPolicy(insists=False)
NO_RETRIES: Final = RetryPolicy(attempts=1)

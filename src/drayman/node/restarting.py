"""When a container that has ended is started again: the rules of a kubelet, for real and simulated nodes."""

from __future__ import annotations

from typing import Final

FIRST_BACKOFF_S: Final = 10.0
LONGEST_BACKOFF_S: Final = 300.0
FORGIVEN_AFTER_S: Final = 600.0
"""A container that ran for so long is started again as if it had never ended before."""
_MOST_DOUBLINGS: Final = 64
"""Beyond any longest wait, and far from what a number can hold."""


def restarts(policy: str, *, has_succeeded: bool) -> bool:
    """Whether a container that has ended is started again. `policy` is its own, or else its pod's."""
    return policy != "Never" and not (policy == "OnFailure" and has_succeeded)


def crashes_after(crashes: int, ran_s: float) -> int:
    """How often a container counts as having ended, now that it has once more."""
    return 1 if ran_s > FORGIVEN_AFTER_S else crashes + 1


def backoff(
    restarted: int, first_s: float = FIRST_BACKOFF_S, longest_s: float = LONGEST_BACKOFF_S
) -> float:
    """How long a container waits that has ended, having been started again so often: the first time not at all."""
    if restarted == 0:
        return 0.0
    return min(first_s * 2.0 ** min(restarted - 1, _MOST_DOUBLINGS), longest_s)

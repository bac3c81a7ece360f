"""How important pods are that stand or fall together: as their group says, if it says so, and otherwise as they say themselves.

Members should have one priority in common. Where they have not, nobody gains by that: those that wait come when the least important of them
would, and make others go only as that one could; those that run are as hard to evict as the most important of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.core import Pod
from drayman.api.pods import priority_of


def importance_of_waiting(stated: int | None, pods: Iterable[Pod]) -> int:
    """Of pods that are to start together, of which `stated` is what their group says."""
    return min(map(priority_of, pods), default=0) if stated is None else stated


def importance_of_running(stated: int | None, pods: Iterable[Pod]) -> int:
    """Of pods that would have to go together."""
    return max(map(priority_of, pods), default=0) if stated is None else stated

"""Whether quota covers a pod that is about to be placed, as placement asks what keeps quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.placement.state import ClusterState

Uncharged: TypeAlias = Callable[[Pod, Sequence[ResourceClaim], float], str]
"""Why no quota covers a pod with these claims at this time; empty if one does, or if the pod needs none."""


class Charging(Protocol):
    """What keeps quota."""

    def uncharged(self, state: ClusterState) -> Uncharged:
        """Answers for the pods of a cluster as this state has it."""
        ...

    def listen(self, wake: Callable[[Iterable[str]], None]) -> Callable[[], None]:
        """`wake` is called with the uids of pods that were refused and may be covered now. The result ends that."""
        ...

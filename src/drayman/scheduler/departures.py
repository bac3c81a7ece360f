"""Whether those have gone for whom a gang waits.

A gang may wait for thousands of pods, and each that goes may be reason enough to try it again. So that takes no look at all of them:
whoever was seen to be gone is not looked at again.
"""

from __future__ import annotations

from collections import deque

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.placement.gangs.gang import GangKey
from drayman.placement.nominations import Nomination, Nominations
from drayman.scheduler.occupants import Occupants


class _Pending:
    def __init__(self, nomination: Nomination) -> None:
        self.departing = nomination.departing
        self.uids = {pod.metadata.uid for pod in nomination.departing}
        self.pods: deque[Pod] = deque(nomination.departing)
        self.claims: deque[ResourceClaim] = deque(nomination.freed)


class Departures:
    """The gangs that wait for others to go."""

    def __init__(self, nominations: Nominations, occupants: Occupants) -> None:
        self._nominations = nominations
        self._occupants = occupants
        self._pending: dict[GangKey, _Pending] = {}

    def have_ended(self, gang: GangKey) -> bool:
        """Whether a gang has a promise, and everything that it waited for has happened."""
        pending = self._looked_at(gang)
        return pending is not None and not pending.pods and not pending.claims

    def left(self, gang: GangKey) -> int | None:
        """How many pods, at most, have yet to go for a gang; None if it waits for none."""
        pending = self._looked_at(gang)
        return None if pending is None else len(pending.pods)

    @property
    def remembered(self) -> int:
        """Of how many gangs something is remembered."""
        return len(self._pending)

    def _looked_at(self, gang: GangKey) -> _Pending | None:
        nomination = self._nominations.of_gang(gang)
        if nomination is None:
            self._pending.pop(gang, None)
            return None
        pending = self._pending.get(gang)
        if pending is None or pending.departing is not nomination.departing:
            self._forget_others()
            pending = self._pending[gang] = _Pending(nomination)
        occupants = self._occupants
        while pending.pods and not occupants.is_here(pending.pods[0]):
            pending.pods.popleft()
        while (
            not pending.pods
            and pending.claims
            and not occupants.is_held(pending.claims[0], pending.uids)
        ):
            pending.claims.popleft()
        return pending

    def _forget_others(self) -> None:
        """Nobody asks again about a gang that has started, or is gone."""
        for gang in [each for each in self._pending if self._nominations.of_gang(each) is None]:
            del self._pending[gang]

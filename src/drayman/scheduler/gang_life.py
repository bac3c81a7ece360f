"""Follows gangs beyond the decision about them: ends those that fell below their quorum, and reports those that wait for too long.

How long a gang has been below its quorum is measured from the moment at which this scheduler noticed it, by a clock that is never set. So
the next scheduler begins again, and grants the whole grace period: it cannot know what happened before it came. Time limits for waiting
count from the creation of pods, and are the same for every scheduler.

Pods that another scheduler serves are left to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.times import timestamp_at
from drayman.cluster.background import in_background
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.patches import disruption_target
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import JOBS, PODS, typed
from drayman.cluster.together import Bundle, write_together
from drayman.placement.gangs.book import (
    GROUP_KINDS,
    GangBook,
    GroupObject,
    Member,
    MemberState,
    key_of_group,
    ranked,
)
from drayman.placement.gangs.gang import Gang, GangKey
from drayman.placement.gangs.lateness import time_to_wait
from drayman.placement.gangs.staleness import Fallen, fallen
from drayman.placement.schedulers import scheduler_of
from drayman.reasons.gangs import below_quorum, ended
from drayman.scheduler.writes import condition_write, deletion_write

_log: Final = logging.getLogger(__name__)

BELOW: Final = "GangBelowQuorum"
LATE: Final = "GangLate"
GATHER_S: Final = 0.1
PATIENCE_S: Final = 1.0
"""How long a gang may be below its quorum before that is reported: most members that are replaced are back by then."""
AGAIN_S: Final = 10.0
"""When a gang is looked at again that should have been ended or reported, and could not be."""
LONGEST_SLEEP_S: Final = 60.0
"""After which a time limit is looked at again: the clock may have been set meanwhile."""
MOST_TOLD: Final = 16
"""How many pods get an event about a gang that has no object."""


@dataclass(slots=True)
class _Life:
    """What is known about a gang that has members."""

    members: dict[str, tuple[MemberState, str]] = field(default_factory=dict)
    """By uid: what each does, and its subgroup."""
    done: Counter[str] = field(default_factory=Counter)
    """How many had succeeded and were then deleted, by subgroup."""
    since: float | None = None
    """Since when it has been below its quorum."""
    ending: tuple[float, asyncio.Task[None]] | None = None
    """With the grace period that it is granted."""
    waiting: asyncio.Task[None] | None = None
    """Reports when it is late. It is kept when it has."""

    def stop(self) -> list[asyncio.Task[None]]:
        tasks = [each for each in (self.ending and self.ending[1], self.waiting) if each]
        for task in tasks:
            task.cancel()
        self.ending = self.waiting = None
        return tasks


class GangLife:
    """The gangs of one scheduler."""

    def __init__(
        self,
        client: Client,
        gangs: GangBook,
        recorder: EventRecorder,
        names: frozenset[str],
        wall_clock: Callable[[], float],
        tell: Callable[[GangKey], str],
    ) -> None:
        """`tell` says why a gang waits, and has its pods say so too."""
        self._client = client
        self._gangs = gangs
        self._recorder = recorder
        self._names = names
        self._wall_clock = wall_clock
        self._tell = tell
        self._lives: dict[GangKey, _Life] = {}
        self._key_of: dict[str, GangKey] = {}  # by uid of the members
        self._changed: set[GangKey] = set()
        self._has_begun = False

    def follow(self, handlers: Handlers) -> None:
        """Has to be called after the state follows the same kinds: this looks at what the state has made of a change."""
        handlers.add(PODS, self._pod)
        for kind in GROUP_KINDS:
            handlers.add(typed(kind), self._group)
        handlers.add(JOBS, self._job)

    def begin(self) -> None:
        """Act from now on. Before all objects have been shown, gangs seem to lack members that exist."""
        self._has_begun = True
        self._note(*self._lives)

    async def stop(self) -> None:
        self._has_begun = False
        tasks = [task for life in self._lives.values() for task in life.stop()]
        await asyncio.gather(*tasks, return_exceptions=True)

    # What happens.

    def taken_back(self, pod: Pod) -> None:
        """A pod that counted as placed is not. The server, which never showed it as placed, shows no change."""
        key = self._gangs.key_of(pod)
        if key is not None:
            self._note(key)

    def _pod(self, notice: Notice[Pod]) -> None:
        uid = notice.object.metadata.uid
        member, known = self._gangs.member(uid), self._key_of.get(uid)
        if known is not None and (member is None or member.membership.key != known):
            del self._key_of[uid]
            self._left(known, uid)
            self._note(known)
        if member is not None:
            key = self._key_of[uid] = member.membership.key
            life = self._lives.setdefault(key, _Life())
            life.members[uid] = (member.state, member.membership.subgroup)
            self._note(key)

    def _left(self, key: GangKey, uid: str) -> None:
        life = self._lives[key]
        state, subgroup = life.members.pop(uid)
        if not life.members:
            del self._lives[key]
            life.stop()
        elif state is MemberState.SUCCEEDED:
            life.done[subgroup] += 1

    def _group(self, notice: Notice[Any]) -> None:
        group: GroupObject = notice.object
        self._note(key_of_group(group))

    def _job(self, notice: Notice[Job]) -> None:
        """With its annotations, the gangs of its pods may change."""
        old, new = notice.old, notice.object
        if old is not None and old.metadata.annotations == new.metadata.annotations:
            return
        for pod in self._gangs.pods_of_job(notice.object.metadata.uid):
            self._pod(Notice("MODIFIED", pod, pod))

    def _note(self, *keys: GangKey) -> None:
        """Look at gangs soon. Members come and go one after the other, and each look is at all of them."""
        if self._has_begun and keys:
            if not self._changed:
                asyncio.get_running_loop().call_later(GATHER_S, self._look)
            self._changed.update(keys)

    def _look(self) -> None:
        changed, self._changed = self._changed, set()
        if not self._has_begun:
            return
        for key in changed:
            life = self._lives.get(key)
            if life is not None:
                gang = self._gangs.gang(key)
                known = gang if isinstance(gang, Gang) else None
                self._look_at_quorum(life, known)
                self._look_at_limit(life, known)

    def _is_ours(self, members: Iterable[Member]) -> bool:
        return all(scheduler_of(member.pod) in self._names for member in members)

    # Below the quorum.

    def _look_at_quorum(self, life: _Life, gang: Gang | None) -> None:
        lost = None if gang is None or gang.grace_s is None else self._fallen(gang, life)
        grace = None if gang is None or lost is None else gang.grace_s
        if life.ending is not None and life.ending[0] != grace:
            life.ending[1].cancel()
            life.ending = None
        if grace is None or gang is None:
            life.since = None
        elif life.ending is None:
            life.since = life.since or asyncio.get_running_loop().time()
            due = life.since + grace
            work = self._end(gang.key, life, due)
            life.ending = grace, in_background(work, f"the end of {gang.key}", _log)

    def _fallen(self, gang: Gang, life: _Life) -> Fallen | None:
        lost = fallen(self._gangs, gang, life.done)
        return lost if lost is not None and self._is_ours(lost.left) else None

    async def _end(self, key: GangKey, life: _Life, due: float) -> None:
        """Warn, grant the grace period, evict. The task is cancelled when the gang has enough members again.

        It must not end before: a decision that gives the gang enough members may still be taken back, which no pod shows.
        """
        loop = asyncio.get_running_loop()
        first = min(due, loop.time() + PATIENCE_S)
        await asyncio.sleep(max(first - loop.time(), 0.0))
        self._warn(key, life, max(due - loop.time(), 0.0))
        await asyncio.sleep(max(due - loop.time(), 0.0))
        while True:
            gang = self._gangs.gang(key)
            lost = self._fallen(gang, life) if isinstance(gang, Gang) else None
            if lost is not None:
                await self._evict(lost)
            await asyncio.sleep(AGAIN_S)

    def _warn(self, key: GangKey, life: _Life, left_s: float) -> None:
        gang = self._gangs.gang(key)
        lost = self._fallen(gang, life) if isinstance(gang, Gang) else None
        if lost is not None:
            note = below_quorum(lost, left_s)
            for about in self._concerned(key, lost.left):
                self._recorder.record(about, "Warning", BELOW, note, "Scheduling")

    async def _evict(self, lost: Fallen) -> None:
        note = ended(lost)
        when = timestamp_at(self._wall_clock())
        condition = disruption_target(BELOW, note, when)
        _log.info("%s", note)
        about = self._reference(lost.gang.key)
        if about is not None:
            self._recorder.record(about, "Warning", "GangEnded", note, "Evicting")
        bundles = [self._eviction(member.pod, condition, note) for member in lost.left]
        await write_together(self._client, bundles)

    def _eviction(self, pod: Pod, condition: dict[str, Any], note: str) -> Bundle:
        metadata = pod.metadata

        def refused(error: ClusterError) -> None:
            is_expected = isinstance(error, NotFoundError | ConflictError)
            level = logging.INFO if is_expected else logging.WARNING
            _log.log(level, "pod %s cannot be evicted: %s", metadata.name, error)

        def written(_: Sequence[object]) -> None:
            self._recorder.record(Reference.to(PODS, pod), "Warning", "GangEnded", note, "Evicting")

        return Bundle([condition_write(pod, condition), deletion_write(pod)], refused, written)

    # Waiting for too long.

    def _look_at_limit(self, life: _Life, gang: Gang | None) -> None:
        waits = gang is not None and self._time_to_wait(gang) is not None
        if gang is None or not waits:
            if life.waiting is not None:
                life.waiting.cancel()
                life.waiting = None
        elif life.waiting is None:
            work = self._report_late(gang.key)
            life.waiting = in_background(work, f"the time limit of {gang.key}", _log)

    def _time_to_wait(self, gang: Gang) -> float | None:
        left = time_to_wait(self._gangs, gang, self._wall_clock())
        waiting = self._gangs.waiting(gang.key).values()
        return left if left is not None and self._is_ours(waiting) else None

    async def _report_late(self, key: GangKey) -> None:
        """The task is cancelled when the gang does not wait any more, and must not end without a report before, as above."""
        while True:
            gang = self._gangs.gang(key)
            left = self._time_to_wait(gang) if isinstance(gang, Gang) else None
            if left is not None and left <= 0.0:
                break
            await asyncio.sleep(AGAIN_S if left is None else min(left, LONGEST_SLEEP_S))
        note = self._tell(key)
        for about in self._concerned(key, ranked(self._gangs.waiting(key))):
            self._recorder.record(about, "Warning", LATE, note, "Scheduling")

    # Whom events are about.

    def _concerned(self, key: GangKey, members: Sequence[Member]) -> list[Reference]:
        """The object of the gang, or else some of its pods."""
        about = self._reference(key)
        if about is not None:
            return [about]
        return [Reference.to(PODS, member.pod) for member in members[:MOST_TOLD]]

    def _reference(self, key: GangKey) -> Reference | None:
        group = self._gangs.object_of(key)
        return None if group is None else Reference.to(typed(type(group)), group)

"""Which pods run, and when each of them will have ended, as far as that is declared or was observed.

What was observed are the run times of pods that did the same before: same namespace, same containers. Of those that succeeded, the latest
few are kept, and the longest of them counts. One or two runs say little, so there have to be some.

A pod that runs longer than it should is expected to go on for a while, the longer the more it is overdue: otherwise everything that waits
for it would be decided about again at every moment. That has an end: one that has run for twice as long as it should says nothing any more
about when it ends. Otherwise room would be reserved for ever for whoever waits for it, and nobody else could use it. For the same reason
an end that is very far ahead counts as none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.meta import controller_of
from drayman.api.pods import containers_of, is_leaving, started_at
from drayman.api.times import seconds_of
from drayman.inventory.undo import UndoLog
from drayman.placement.runs.declaring import (
    Basis,
    JobTerms,
    deadline_of,
    declared_by,
    ends_by_itself,
    expected,
    says_something,
    terms_of,
)

LEAST_RUNS: Final = 3
"""How many runs have to be known before they say anything about the next."""
MOST_RUNS: Final = 8
"""How many runs of pods that do the same are kept: the latest."""
MOST_KINDS: Final = 1024
"""Of how many kinds of pods runs are kept."""
SHORTEST_DELAY_S: Final = 60.0
DELAY_SHARE: Final = 0.1
"""A pod that is overdue goes on for this part of the time that it has run so far, and no less than the shortest delay."""
LEAST_PATIENCE_S: Final = 600.0
"""However short a pod should have been, it may be overdue for so long before its end is no longer known."""
LONGEST_LIKENESS: Final = 1 << 14
"""Of pods with more text than this in their containers, no runs are kept: what they have in common is kept with them."""
HORIZON_S: Final = 7 * 86400.0
"""What ends later than that is not expected to end: nothing is kept free for a week."""
_SUCCEEDED: Final = "Succeeded"


class Run(Struct, frozen=True, order=True):
    """A run that has ended."""

    ended_at: float
    uid: str
    seconds: float


class Ending(Struct, frozen=True):
    """When a pod will have ended, and what that rests on."""

    at: float
    basis: Basis
    runs: int = 0
    """How many earlier runs it was observed in."""
    is_overdue: bool = False
    """Whether it should have ended before: then it is only a guess."""


class Departure(Struct, frozen=True):
    """A pod that runs now and is expected to end."""

    pod: Pod
    node: str
    ending: Ending

    @property
    def order(self) -> tuple[float, str]:
        return self.ending.at, self.pod.metadata.uid


class RunBook:
    """Follows pods on nodes, and Jobs. Belongs to a cluster state and takes part in its trials."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._running: dict[str, Pod] = {}  # by uid
        self._placed: dict[str, tuple[float, str]] = {}  # when and where, by uid, if decided here
        self._telling: dict[str, None] = {}  # uids of those that declare something themselves
        self._jobs: dict[str, JobTerms] = {}  # by uid
        self._observed: dict[Hashable, tuple[Run, ...]] = {}  # by what pods have in common

    @property
    def tells_anything(self) -> bool:
        """Whether the end of any pod might be known."""
        return bool(self._telling or self._jobs or self._observed)

    # What the API server shows, and decisions.

    def see(self, pod: Pod) -> bool:
        """A pod on a node, as the API server shows it. Returns whether it declares something else than before."""
        uid = pod.metadata.uid
        known = self._running.get(uid)
        self._log.put(self._running, uid, pod)
        if says_something(pod):
            self._log.put(self._telling, uid, None)
        elif uid in self._telling:
            self._log.pop(self._telling, uid)
        else:
            return False
        return known is not None and declared_by(known) != declared_by(pod)

    def begin(self, pod: Pod, node: str, now: float) -> None:
        """A pod is about to get its node."""
        self._log.put(self._placed, pod.metadata.uid, (now, node))
        self.see(pod)

    def forget(self, uid: str) -> None:
        """A pod has no node any more."""
        if self._log.pop(self._running, uid) is not None:
            self._log.pop(self._placed, uid)
            self._log.pop(self._telling, uid)

    def observe(self, pod: Pod) -> None:
        """A pod has ended. Its run counts if it did what it was to do."""
        started, ended = seconds_of(pod.status.start_time), _ended_at(pod)
        if pod.status.phase != _SUCCEEDED or started is None or ended is None or ended < started:
            return
        if _length(pod) > LONGEST_LIKENESS:
            return
        key = likeness(pod)
        known = self._observed.get(key, ())
        run = Run(ended, pod.metadata.uid, ended - started)
        if run in known:
            return
        self._log.pop(self._observed, key)
        self._log.put(self._observed, key, tuple(sorted((*known, run))[-MOST_RUNS:]))
        if len(self._observed) > MOST_KINDS:
            self._log.pop(self._observed, next(iter(self._observed)))

    def set_job(self, job: Job) -> bool:
        """Returns whether it declares something else for its pods than before."""
        terms = terms_of(job)
        if terms == self._jobs.get(job.metadata.uid):
            return False
        if terms is None:
            self._log.pop(self._jobs, job.metadata.uid)
        else:
            self._log.put(self._jobs, job.metadata.uid, terms)
        return True

    def remove_job(self, job: Job) -> None:
        self._log.pop(self._jobs, job.metadata.uid)

    # Answers.

    @property
    def running(self) -> Mapping[str, Pod]:
        """The pods on nodes, by uid."""
        return self._running

    def departures(self, now: float) -> list[Departure]:
        """The pods that are expected to end, in that order."""
        if not self.tells_anything:
            return []
        found = [
            Departure(pod, self._node_of(pod), ending)
            for pod in self._running.values()
            if (ending := self.ending_of(pod, now)) is not None
        ]
        return sorted(found, key=lambda each: each.order)

    def ending_of(self, pod: Pod, now: float) -> Ending | None:
        """When a pod that runs will have ended; None if that is not known."""
        leaves = pod.metadata.deletion_timestamp if is_leaving(pod) else None
        started = self._started(pod, now)
        found = self._ending(pod, started)
        if leaves is not None:
            gone = Ending(seconds_of(leaves), Basis.LEAVING)
            found = gone if found is None or gone.at < found.at else found
        if found is None or found.at > now:
            return found if found is not None and found.at - now <= HORIZON_S else None
        is_going = found.basis is Basis.LEAVING
        patience = LEAST_PATIENCE_S if is_going else max(LEAST_PATIENCE_S, found.at - started)
        if now - found.at > patience:
            return None
        delay = max(SHORTEST_DELAY_S, DELAY_SHARE * (now - started))
        return Ending(now + delay, found.basis, found.runs, is_overdue=True)

    def would_end(self, pod: Pod, at: float) -> Ending | None:
        """When a pod would have ended that starts at some time; None if that is not known."""
        return self._ending(pod, at)

    def _ending(self, pod: Pod, started: float) -> Ending | None:
        owner = controller_of(pod.metadata) if self._jobs else None
        job = None if owner is None else self._jobs.get(owner.uid)
        seconds = expected(pod, job)
        found = None if seconds is None else Ending(started + seconds, Basis.DECLARED)
        if found is None:
            found = self._as_observed(pod, started)
        deadline = deadline_of(pod, job, started)
        if deadline is not None and (found is None or deadline < found.at):
            return Ending(deadline, Basis.DEADLINE)
        return found

    def _as_observed(self, pod: Pod, started: float) -> Ending | None:
        if not self._observed or not ends_by_itself(pod):
            return None
        runs = self._observed.get(likeness(pod), ())
        if len(runs) < LEAST_RUNS:
            return None
        return Ending(started + max(run.seconds for run in runs), Basis.OBSERVED, len(runs))

    def _node_of(self, pod: Pod) -> str:
        return pod.spec.node_name or self._placed[pod.metadata.uid][1]

    def _started(self, pod: Pod, now: float) -> float:
        """When a pod started; for one that is about to, when it got its node."""
        begun = started_at(pod)
        if begun is not None:
            return begun
        placed = self._placed.get(pod.metadata.uid)
        return now if placed is None else placed[0]


def likeness(pod: Pod) -> Hashable:
    """Equal for pods that do the same: same namespace, containers and kinds of claims."""
    claims = [each.resource_claim_template_name for each in pod.spec.resource_claims]
    containers = [
        (c.image, c.command, c.args, tuple(c.resources.requests.items()))
        for c in containers_of(pod)
    ]
    return pod.metadata.namespace, tuple(claims), tuple(containers)


def _length(pod: Pod) -> int:
    """How much text of its containers says what a pod does."""
    texts = (text for c in containers_of(pod) for text in (c.image or "", *c.command, *c.args))
    return sum(map(len, texts))


def _ended_at(pod: Pod) -> float | None:
    """When the last of the containers ended."""
    states = (status.state.terminated for status in pod.status.container_statuses)
    times = [seconds_of(state.finished_at) for state in states if state is not None]
    known = [at for at in times if at is not None]
    return max(known, default=None)

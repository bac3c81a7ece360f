"""Reports why pods wait: in the PodScheduled condition and an event.

A pod that is refused and placed a moment later is not worth a write, and thousands of pods that wait for the same thing must not cause
thousands of writes a second. So reports are collected for a moment; only those that still hold then, and are new, are written, many at a
time. Later reports for the same pod are delayed a little longer, and their text is worked out only then: while a cluster is busy, the
reasons of waiting pods change all the time. An event is recorded only if more than numbers have changed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeAlias

from drayman.api.core import Pod, PodCondition
from drayman.api.times import timestamp_at
from drayman.bounded import Bounded
from drayman.cluster.backoff import Backoff
from drayman.cluster.breaks import Breaks
from drayman.cluster.cache import Cache
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError, is_final
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import pod_condition_patch
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import PatchWrite
from drayman.inventory.allowance import UnfinishedError
from drayman.scheduler.writes import MANAGER

_log: Final = logging.getLogger(__name__)

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
_GATHER_S: Final = 0.1
REFRESH_S: Final = 1.0
"""How long a report is delayed for a pod that already has one."""
COPIES_S: Final = 5.0
"""When the reason changes for many pods that wait for the same thing, how long after the first report the others follow."""
Explain: TypeAlias = Callable[[], str]
"""Says why a pod waits."""
Copies: TypeAlias = Callable[[], Iterable[tuple[Pod, Explain]]]
BETWEEN_PARTS_S: Final = 0.05
"""How long a reason that takes long to work out pauses between two parts."""
MOST_AT_ONCE: Final = 500
"""Reports that are worked out before they are written."""
RETRIES: Final = Backoff(initial=1.0, cap=60.0)
"""When a condition is written again that could not be."""
REMEMBERED: Final = 10_000
"""Objects of which it is known what was written last. Others are compared with what the server shows, which may be older."""
_NUMBER: Final = re.compile(r"[0-9]+")
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class _Report:
    pod: Pod
    reason: str
    explain: Explain
    due: float
    copies: Copies
    shape: Hashable
    failures: int = 0
    """How often it could not be written."""
    recorded: str | None = None
    """What an event has said already, though the condition could not be written."""


@dataclass(frozen=True, slots=True)
class _News:
    """Something to write."""

    report: _Report
    message: str
    is_event: bool

    @property
    def pod(self) -> Pod:
        return self.report.pod

    @property
    def reason(self) -> str:
        return self.report.reason


class Reporter:
    """Writes the reasons of one scheduler."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        still_waits: Callable[[str], bool],
        wall_clock: Callable[[], float],
        note_reason: Callable[[Pod, str, str], None] = lambda _pod, _reason, _message: None,
        shown: Callable[[Pod], Pod] = lambda pod: pod,
    ) -> None:
        """`note_reason` is called with each pod that waits for a new reason, and with that reason.

        `shown` is a pod as the server last showed it. What it says may be another reason than when the pod was refused.
        """
        self._client = client
        self._note_reason = note_reason
        self._shown = shown
        self._recorder = recorder
        self._still_waits = still_waits
        self._wall_clock = wall_clock
        self._pending: dict[str, _Report] = {}
        self._being_written: set[str] = set()
        """Pods that still wait for the reason that is being written."""
        self._said: Bounded[str, tuple[str, str]] = Bounded(REMEMBERED)
        """The reason and the message that were last written, or tried, by uid."""
        self._news = asyncio.Event()
        self._breaks = Breaks()

    def refuse(
        self,
        pod: Pod,
        reason: str,
        explain: Explain,
        *,
        patience_s: float = 0.0,
        urgent: bool = False,
        copies: Copies = tuple,
        shape: Hashable = None,
    ) -> None:
        """A pod waits, for this reason. Written if it still waits after a moment, or after `patience_s`; as soon as possible if urgent.

        `copies` are pods that wait for the same reason and have been reported before: they are updated some time after this one. Pods of
        the same `shape` have the same copies, which are looked at once when several of them are reported together.
        """
        uid = pod.metadata.uid
        refresh_s = REFRESH_S if condition_of(pod) and not urgent else 0.0
        due = asyncio.get_running_loop().time() + max(patience_s, refresh_s)
        report = _Report(pod, reason, explain, due, copies, shape)
        earlier = self._pending.get(uid)
        if earlier is not None:
            report = _in_place_of(earlier, report)
        self._pending[uid] = report
        self._news.set()

    def _refuse_copies(self, report: _Report) -> None:
        for pod, explain in report.copies():
            if condition_of(pod) is not None:
                self.refuse(pod, report.reason, explain, patience_s=COPIES_S)

    def bound(self, pod: Pod, node: str) -> None:
        self.forget(pod.metadata.uid)
        metadata = pod.metadata
        note = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}"
        self._recorder.record(Reference.to(PODS, pod), "Normal", "Scheduled", note, "Binding")

    def note(self, pod: Pod, reason: str, note: str, action: str) -> None:
        """Record something other than a refusal."""
        self._recorder.record(Reference.to(PODS, pod), "Normal", reason, note, action)

    def forget(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._being_written.discard(uid)

    async def run(self) -> None:
        """Write reports until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(_GATHER_S)
            self._news.clear()
            await self._write(await self._take_due(asyncio.get_running_loop().time()))
            if self._pending:
                self._news.set()

    async def _take_due(self, now: float) -> list[_News]:
        """Some of the reports that have waited long enough, still hold and are new."""
        waited = (uid for uid, report in self._pending.items() if report.due <= now)
        found: list[_News] = []
        shapes: set[Hashable] = set()
        for uid in tuple(islice(waited, MOST_AT_ONCE)):
            await self._breaks.between()
            report = self._pending.get(uid)
            if report is None or report.due > now:
                continue  # it was forgotten or replaced in a break
            del self._pending[uid]
            try:
                report = replace(report, pod=self._shown(report.pod))
                said = self._said.get(uid)
                news = _worked_out(report, said) if self._still_waits(uid) else None
            except UnfinishedError:
                self._pending[uid] = replace(report, due=now + BETWEEN_PARTS_S)
                continue
            if news is None:
                continue
            found.append(news)
            if news.is_event and report.shape not in shapes:
                if report.shape is not None:
                    shapes.add(report.shape)
                self._refuse_copies(report)
        return found

    async def _write(self, reports: list[_News]) -> None:
        for report in reports:
            self._being_written.add(report.pod.metadata.uid)
            self._said[report.pod.metadata.uid] = (report.reason, report.message)
            if report.is_event:
                self._note_reason(report.pod, report.reason, report.message)
                self._recorder.record(
                    Reference.to(PODS, report.pod),
                    "Warning",
                    "FailedScheduling",
                    report.message,
                    "Scheduling",
                )
        await write_together(self._client, [self._bundle(report) for report in reports])
        self._being_written.clear()

    def _bundle(self, report: _News) -> Bundle:
        def refused(error: ClusterError) -> None:
            expected = isinstance(error, NotFoundError | ConflictError) or report.report.failures
            level = logging.DEBUG if expected else logging.WARNING
            _log.log(level, "pod %s: %s", report.pod.metadata.name, error)
            if may_help_to_retry(error):
                self._write_again(report)

        return Bundle([self._patch(report)], refused)

    def _write_again(self, news: _News) -> None:
        """Later, unless the pod does not wait any more. What it waits for by then counts."""
        uid = news.pod.metadata.uid
        if uid not in self._being_written:
            return
        failures = news.report.failures + 1
        due = asyncio.get_running_loop().time() + RETRIES.delay(failures)
        failed = replace(news.report, due=due, failures=failures, recorded=news.message)
        later = self._pending.get(uid)
        self._pending[uid] = failed if later is None else _in_place_of(failed, later)

    def _patch(self, report: _News) -> PatchWrite[Pod]:
        metadata = report.pod.metadata
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": report.reason,
            "message": report.message,
            "lastTransitionTime": _transition_time(report.pod, self._wall_clock()),
            "lastProbeTime": None,
        }
        return PatchWrite(
            PODS,
            metadata.name,
            pod_condition_patch(metadata.uid, condition),
            metadata.namespace,
            subresource="status",
            options=WriteOptions(field_manager=MANAGER),
        )


def may_help_to_retry(error: ClusterError) -> bool:
    """Whether a condition that could not be written is to be written again: not if its object is gone, or refuses it for good."""
    return not (isinstance(error, NotFoundError) or is_final(error))


def _in_place_of(earlier: _Report, later: _Report) -> _Report:
    """A report that replaces one which is not written yet. After a failure it is not written any sooner."""
    if earlier.failures:
        due = max(earlier.due, later.due)
        return replace(later, due=due, failures=earlier.failures, recorded=earlier.recorded)
    return replace(later, due=min(earlier.due, later.due))


def _worked_out(report: _Report, said: tuple[str, str] | None) -> _News | None:
    """What to write; None if the pod says so already. What was `said` last may not be shown yet."""
    try:
        message = report.explain()[:_LONGEST]
    except Exception:
        # A pod that cannot be explained must not hold up reports for the others.
        _log.exception("pod %s/%s", report.pod.metadata.namespace, report.pod.metadata.name)
        return None
    known = condition_of(report.pod)
    new = (report.reason, message)
    if known is not None and (known.reason, known.message) == new and said in (None, new):
        return None
    told = [] if report.recorded is None else [report.recorded]
    if known is not None and known.reason == report.reason:
        told.append(known.message or "")
    is_event = _words(message) not in map(_words, told)
    return _News(report, message, is_event)


def condition_of(pod: Pod) -> PodCondition | None:
    """The pod's condition that says why it waits."""
    for condition in pod.status.conditions:
        if condition.type_ == "PodScheduled" and condition.status == "False":
            return condition
    return None


def last_shown(cache: Cache[Pod], pod: Pod) -> Pod:
    """A pod as the server last showed it."""
    metadata = pod.metadata
    found = cache.get(metadata.name, metadata.namespace)
    return pod if found is None or found.metadata.uid != metadata.uid else found


def _words(text: str) -> str:
    return _NUMBER.sub("#", text)


def _transition_time(pod: Pod, now: float) -> str:
    """A change of only the text does not count as a transition."""
    known = condition_of(pod)
    return (known.last_transition_time if known else None) or timestamp_at(now)

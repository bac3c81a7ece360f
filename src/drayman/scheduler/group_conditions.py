"""The condition PodGroupScheduled of Kubernetes' own groups: whether enough members have a node, and why not.

It is True from the first time that members are bound, whatever happens to them later, and says so once. While a group waits, the reason is
that of its members; it is worked out a moment after the decision, for the cluster as it is then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from drayman.api.core import Pod
from drayman.api.meta import Condition
from drayman.api.pod_groups import PodGroup
from drayman.api.times import timestamp_at
from drayman.bounded import Bounded
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import POD_GROUPS
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import PatchWrite
from drayman.inventory.allowance import UnfinishedError
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.gang import GangKey
from drayman.scheduler.reporting import REMEMBERED, RETRIES, UNSCHEDULABLE, may_help_to_retry
from drayman.scheduler.writes import MANAGER

_log: Final = logging.getLogger(__name__)

SCHEDULED_CONDITION: Final = "PodGroupScheduled"
SCHEDULED: Final = "Scheduled"
_GATHER_S: Final = 0.1
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a group is to say."""

    uid: str
    explain: Callable[[], str] | None
    """None: it is scheduled."""
    due: float = 0.0
    failures: int = 0
    """How often it could not be written."""


class GroupConditions:
    """Writes the conditions of groups."""

    def __init__(self, client: Client, gangs: GangBook, wall_clock: Callable[[], float]) -> None:
        self._client = client
        self._gangs = gangs
        self._wall_clock = wall_clock
        self._pending: dict[GangKey, _Wanted] = {}
        self._said: Bounded[str, tuple[str, str]] = Bounded(REMEMBERED)
        """The status and the message that were last written, or are being written, by uid."""
        self._news = asyncio.Event()

    def bound(self, pod: Pod) -> None:
        """A pod has its node."""
        if pod.spec.scheduling_group is None:
            return
        key = self._gangs.key_of(pod)
        group = self._gangs.pod_group_of(pod)
        if key is not None and group is not None:
            self._want(key, group, None)

    def stuck(self, key: GangKey, explain: Callable[[], str]) -> None:
        """There is no room for a group."""
        group = self._gangs.pod_group(key)
        if group is not None:
            self._want(key, group, explain)

    def _want(self, key: GangKey, group: PodGroup, explain: Callable[[], str] | None) -> None:
        if not self._is_scheduled(group):
            wanted, earlier = _Wanted(group.metadata.uid, explain), self._pending.get(key)
            self._pending[key] = wanted if earlier is None else _in_place_of(earlier, wanted)
            self._news.set()

    async def run(self) -> None:
        """Write conditions until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._news.wait()
            await asyncio.sleep(_GATHER_S)
            self._news.clear()
            now = loop.time()
            due = {key: each for key, each in self._pending.items() if each.due <= now}
            for key in due:
                del self._pending[key]
            bundles = [self._bundle(key, wanted) for key, wanted in due.items()]
            await write_together(self._client, [each for each in bundles if each is not None])

    def _bundle(self, key: GangKey, wanted: _Wanted) -> Bundle | None:
        group, explain = self._gangs.pod_group(key), wanted.explain
        if group is None or group.metadata.uid != wanted.uid or self._is_scheduled(group):
            return None
        condition = Condition(
            type_=SCHEDULED_CONDITION,
            status="True" if explain is None else "False",
            reason=SCHEDULED if explain is None else UNSCHEDULABLE,
            message="" if explain is None else self._explained(key, explain),
        )
        known = condition_of(group)
        new = (condition.status, condition.message)
        said = self._said.get(wanted.uid, new)
        if known is not None and (known.status, known.message) == new == said:
            return None
        self._said[wanted.uid] = new
        is_same = known is not None and known.status == condition.status
        since = (known.last_transition_time if known is not None and is_same else None) or (
            timestamp_at(self._wall_clock())
        )
        return Bundle([_patch(group, condition, since)], partial(self._refused, key, wanted))

    def _refused(self, key: GangKey, wanted: _Wanted, error: ClusterError) -> None:
        self._said.pop(wanted.uid, None)
        is_expected = isinstance(error, NotFoundError | ConflictError) or wanted.failures
        _log.log(logging.DEBUG if is_expected else logging.WARNING, "%s: %s", key, error)
        if may_help_to_retry(error):
            failures = wanted.failures + 1
            loop = asyncio.get_running_loop()
            failed = replace(wanted, due=loop.time() + RETRIES.delay(failures), failures=failures)
            later = self._pending.get(key)
            self._pending[key] = failed if later is None else _in_place_of(failed, later)
            loop.call_at(failed.due, self._news.set)

    def _is_scheduled(self, group: PodGroup) -> bool:
        """Whether a group says so, or will: what is shown may be older than what was written."""
        said = self._said.get(group.metadata.uid)
        return _is_scheduled(group) or (said is not None and said[0] == "True")

    def _explained(self, key: GangKey, explain: Callable[[], str]) -> str:
        try:
            return explain()[:_LONGEST]
        except UnfinishedError:
            return f"{key} does not fit at the moment; the reason takes long to work out."
        except Exception:
            # A group that cannot be explained must not hold up the others.
            _log.exception("%s", key)
            return f"{key} does not fit at the moment."


def _in_place_of(earlier: _Wanted, later: _Wanted) -> _Wanted:
    """What replaces something that is not written yet. After a failure it is not written any sooner, and what is scheduled stays so."""
    if earlier.uid != later.uid:
        return later
    explain = None if earlier.explain is None else later.explain
    return replace(earlier, explain=explain)


def condition_of(group: PodGroup) -> Condition | None:
    for condition in group.status.conditions:
        if condition.type_ == SCHEDULED_CONDITION:
            return condition
    return None


def _is_scheduled(group: PodGroup) -> bool:
    condition = condition_of(group)
    return condition is not None and condition.status == "True"


def _patch(group: PodGroup, condition: Condition, since: str) -> PatchWrite[PodGroup]:
    metadata = group.metadata
    value = {
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since,
    }
    patch = strategic_merge_patch(
        {"metadata": {"uid": metadata.uid}, "status": {"conditions": [value]}}
    )
    return PatchWrite(
        POD_GROUPS,
        metadata.name,
        patch,
        metadata.namespace,
        subresource="status",
        options=WriteOptions(field_manager=MANAGER),
    )

"""The condition PodGroupScheduled of Kubernetes' own groups: whether enough members have a node, and why not.

It is True from the first time that members are bound, whatever happens to them later, and says so once. While a group waits, the reason is
that of its members; it is worked out a moment after the decision, for the cluster as it is then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from drayman.api.core import Pod
from drayman.api.meta import Condition
from drayman.api.pod_groups import PodGroup
from drayman.api.times import timestamp_at
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
from drayman.scheduler.reporting import UNSCHEDULABLE
from drayman.scheduler.writes import MANAGER

_log: Final = logging.getLogger(__name__)

SCHEDULED_CONDITION: Final = "PodGroupScheduled"
SCHEDULED: Final = "Scheduled"
_GATHER_S: Final = 0.1
_LONGEST: Final = 1000


class GroupConditions:
    """Writes the conditions of groups."""

    def __init__(self, client: Client, gangs: GangBook, wall_clock: Callable[[], float]) -> None:
        self._client = client
        self._gangs = gangs
        self._wall_clock = wall_clock
        self._pending: dict[GangKey, Callable[[], str] | None] = {}  # None: it is scheduled
        self._news = asyncio.Event()

    def bound(self, pod: Pod) -> None:
        """A pod has its node."""
        if pod.spec.scheduling_group is None:
            return
        key = self._gangs.key_of(pod)
        group = self._gangs.pod_group_of(pod)
        if key is not None and group is not None and not _is_scheduled(group):
            self._pending[key] = None
            self._news.set()

    def stuck(self, key: GangKey, explain: Callable[[], str]) -> None:
        """There is no room for a group."""
        group = self._gangs.pod_group(key)
        if group is not None and not _is_scheduled(group) and self._pending.get(key, explain):
            self._pending[key] = explain
            self._news.set()

    async def run(self) -> None:
        """Write conditions until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(_GATHER_S)
            self._news.clear()
            pending, self._pending = self._pending, {}
            bundles = [self._bundle(key, explain) for key, explain in pending.items()]
            await write_together(self._client, [each for each in bundles if each is not None])

    def _bundle(self, key: GangKey, explain: Callable[[], str] | None) -> Bundle | None:
        group = self._gangs.pod_group(key)
        if group is None or _is_scheduled(group):
            return None
        condition = Condition(
            type_=SCHEDULED_CONDITION,
            status="True" if explain is None else "False",
            reason=SCHEDULED if explain is None else UNSCHEDULABLE,
            message="" if explain is None else self._explained(key, explain),
        )
        known = condition_of(group)
        if known is not None and (known.status, known.message) == (
            condition.status,
            condition.message,
        ):
            return None
        is_same = known is not None and known.status == condition.status
        since = (known.last_transition_time if known is not None and is_same else None) or (
            timestamp_at(self._wall_clock())
        )
        return Bundle([_patch(group, condition, since)], lambda error: _complain(key, error))

    def _explained(self, key: GangKey, explain: Callable[[], str]) -> str:
        try:
            return explain()[:_LONGEST]
        except UnfinishedError:
            return f"{key} does not fit at the moment; the reason takes long to work out."
        except Exception:
            # A group that cannot be explained must not hold up the others.
            _log.exception("%s", key)
            return f"{key} does not fit at the moment."


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


def _complain(key: GangKey, error: ClusterError) -> None:
    is_expected = isinstance(error, NotFoundError | ConflictError)
    _log.log(logging.DEBUG if is_expected else logging.WARNING, "%s: %s", key, error)

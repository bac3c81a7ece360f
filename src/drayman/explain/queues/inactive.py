"""Why a cluster queue gives no quota to anybody."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.api.errors import ApiError
from drayman.api.kueue import ClusterQueue, ClusterQueueStatus, status_of
from drayman.explain.queues.engine import Queues
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.reasons import (
    CHECK_INACTIVE,
    CHECK_NOT_FOUND,
    FLAVOR_NOT_FOUND,
    STOPPED,
    TERMINATING,
)
from drayman.reasons.wording import counted, named

_ACTIVE = "Active"


def why_inactive(queues: Queues, queue: ClusterQueueState) -> str:
    """As the engine sees it; otherwise as the object says. Empty if it is active."""
    if queue.node is None:
        return f"its cohorts form a circle, beginning with {queue.spec.cohort_name}"
    if queue.inactive == STOPPED:
        return f"it is stopped (stopPolicy {queue.spec.stop_policy})"
    if queue.inactive == TERMINATING:
        number = len(queue.holders)
        return f"it is being deleted, and stays until {counted(number, 'workload')} with quota of it ended"
    if queue.inactive == FLAVOR_NOT_FOUND:
        gone = [name for name in queue.flavors if name not in queues.state.books.flavors]
        return _there_is_no("ResourceFlavor", gone)
    checks = queues.state.books.checks
    if queue.inactive == CHECK_NOT_FOUND and checks is not None:
        return _there_is_no("AdmissionCheck", checks.missing(queue))
    if queue.inactive == CHECK_INACTIVE and checks is not None:
        idle = checks.inactive(queue)
        are = "is" if len(idle) == 1 else "are"
        return f"{named('AdmissionCheck', idle)} {are} not active"
    if queue.inactive:
        return queue.inactive
    return _as_written(queues.cluster_queues.get(queue.name))


def _there_is_no(kind: str, names: Sequence[str]) -> str:
    return f"there {'is' if len(names) == 1 else 'are'} no {named(kind, names)}"


def _as_written(value: ClusterQueue | None) -> str:
    """What the condition Active of a queue says, if it says that it is not."""
    if value is None:
        return ""
    try:
        conditions = status_of(ClusterQueueStatus, value).conditions
    except ApiError:
        return ""
    for condition in conditions:
        if condition.type_ == _ACTIVE and condition.status == "False":
            return f"{condition.reason}: {condition.message}".rstrip(": .")
    return ""

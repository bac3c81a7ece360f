"""Why a cluster queue gives no quota to anybody."""

from __future__ import annotations

from drayman.api.errors import ApiError
from drayman.api.kueue import ClusterQueue, ClusterQueueStatus, status_of
from drayman.explain.queues.engine import Queues
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.reasons import FLAVOR_NOT_FOUND, STOPPED, TERMINATING
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
        are = "is" if len(gone) == 1 else "are"
        return f"there {are} no {named('ResourceFlavor', gone)}"
    if queue.inactive:
        return queue.inactive
    return _as_written(queues.cluster_queues.get(queue.name))


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

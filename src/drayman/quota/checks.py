"""What admission checks mean for queues: one with a check that is not there, or not active, gives quota to nobody, and some checks have
pods run in another cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drayman.api.errors import DecodeError
from drayman.api.kueue import AdmissionCheck, ConditionsStatus, status_of
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.reasons import CHECK_INACTIVE, CHECK_NOT_FOUND
from drayman.workloads.dispatching.names import CONTROLLER


class Checks:
    """The checks of a cluster, wherever they are kept."""

    def __init__(self, find: Callable[[str], AdmissionCheck | None]) -> None:
        """`find` returns a check by its name."""
        self._find = find

    def problem(self, queue: ClusterQueueState) -> str:
        """Why a queue gives quota to nobody; empty if its checks are no reason."""
        if self.missing(queue):
            return CHECK_NOT_FOUND
        return CHECK_INACTIVE if self.inactive(queue) else ""

    def missing(self, queue: ClusterQueueState) -> list[str]:
        """The checks that a queue names and that are not there."""
        return [name for name in _named_by(queue) if self._find(name) is None]

    def inactive(self, queue: ClusterQueueState) -> list[str]:
        """The checks of a queue that are there, and not active."""
        found = ((name, self._find(name)) for name in _named_by(queue))
        return [name for name, each in found if each is not None and not is_active(each)]

    def sends_elsewhere(self, queue: ClusterQueueState) -> bool:
        """Whether the pods of a queue run in another cluster, whichever flavors they get."""
        return self.send_elsewhere(_named_by(queue))

    def send_elsewhere(self, names: Iterable[str]) -> bool:
        """Whether one of these checks has pods run in another cluster, so that they need no room here."""
        found = map(self._find, names)
        return any((each.spec or {}).get("controllerName") == CONTROLLER for each in found if each)


def _named_by(queue: ClusterQueueState) -> list[str]:
    strategy = queue.spec.admission_checks_strategy
    return [] if strategy is None else [each.name for each in strategy.admission_checks]


def is_active(check: AdmissionCheck) -> bool:
    """Whether its controller says that it is."""
    try:
        conditions = status_of(ConditionsStatus, check).conditions
    except DecodeError:
        return False
    return any(each.type_ == "Active" and each.status == "True" for each in conditions)

"""Whether the admission checks that queues name exist and are active. A queue with one that does not gives quota to nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drayman.api.errors import DecodeError
from drayman.api.kueue import AdmissionCheck, ConditionsStatus, status_of
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import typed
from drayman.quota.books import Books
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.reasons import CHECK_INACTIVE, CHECK_NOT_FOUND
from drayman.workloads.dispatching.names import CONTROLLER


class Checks:
    """The checks of a cluster."""

    def __init__(self, informers: Informers, changed: Callable[[], None]) -> None:
        """`changed` is called when a check comes, goes, or becomes active or inactive."""
        informer = informers.informer(typed(AdmissionCheck))
        self._cache = informer.cache
        self._changed = changed
        informer.add_handler(self._notice)

    def judge(self, books: Books) -> None:
        """Have queues be inactive whose checks are not there, and active again when they are."""
        for queue in books.queues.values():
            if queue.spec.admission_checks_strategy is None:
                if queue.inactive in (CHECK_NOT_FOUND, CHECK_INACTIVE):
                    books.judge(queue)
                continue
            was = queue.inactive
            books.judge(queue)
            queue.inactive = queue.inactive or self._problem(queue)
            if was and not queue.inactive:
                books.wake(queue.name)
                books.is_ready(queue.name)

    def send_elsewhere(self, names: Iterable[str]) -> bool:
        """Whether one of these checks has pods run in another cluster, so that they need no room here."""
        found = (self._cache.get(name) for name in names)
        return any((each.spec or {}).get("controllerName") == CONTROLLER for each in found if each)

    def _problem(self, queue: ClusterQueueState) -> str:
        strategy = queue.spec.admission_checks_strategy
        found = [
            self._cache.get(rule.name)
            for rule in (strategy.admission_checks if strategy is not None else ())
        ]
        if any(each is None for each in found):
            return CHECK_NOT_FOUND
        return (
            "" if all(each is not None and _is_active(each) for each in found) else CHECK_INACTIVE
        )

    def _notice(self, notice: Notice[AdmissionCheck]) -> None:
        is_as_before = (
            notice.type != "DELETED"
            and notice.old is not None
            and _is_active(notice.old) == _is_active(notice.object)
        )
        if not is_as_before:
            self._changed()


def _is_active(check: AdmissionCheck) -> bool:
    try:
        conditions = status_of(ConditionsStatus, check).conditions
    except DecodeError:
        return False
    return any(each.type_ == "Active" and each.status == "True" for each in conditions)

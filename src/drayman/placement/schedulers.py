"""Which scheduler is responsible for a pod, and whether one runs.

A scheduler that runs renews a Lease in kube-system: Drayman's has one for each `schedulerName` that it serves, kube-scheduler has one of
its own name. Others hold none, such as the kube-scheduler of a cluster that runs without leader election. So the absence of a Lease proves
nothing while pods show that some scheduler has evaluated them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_active
from drayman.api.times import seconds_of
from drayman.api.workloads import Lease

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""For pods that name none."""
OWN_SCHEDULER: Final = "drayman"
"""For pods that name Drayman's scheduler, where another is the default."""
KAI_SCHEDULER: Final = "kai-scheduler"
"""For pods that were written for KAI."""
SERVED: Final = frozenset({DEFAULT_SCHEDULER, OWN_SCHEDULER, KAI_SCHEDULER})
"""The names that the scheduler of `drayman up` serves unless configured otherwise."""

LEASE_NAMESPACE: Final = "kube-system"
_LEASE: Final = "drayman-scheduler"
_KUBE_SCHEDULER: Final = "kube-scheduler"
_CLOCKS_APART_S: Final = 30.0
"""How far the clocks of a scheduler and of the reader of its Lease may differ before a Lease that is renewed looks as if it were not."""
_EVALUATED_AFTER_S: Final = 5.0
"""How long a pod may exist before a scheduler that runs has evaluated it."""
_SCHEDULED: Final = "PodScheduled"
_LEASED_HERE: Final = (DEFAULT_SCHEDULER, OWN_SCHEDULER)
"""Names whose schedulers hold Leases in `LEASE_NAMESPACE`. Another scheduler, such as KAI's, may hold one elsewhere."""
_GATED: Final = "SchedulingGated"
"""The reason that the API server writes, without any scheduler."""


def scheduler_of(pod: Pod) -> str:
    """The name of the scheduler that is responsible for a pod."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER


def awaits_scheduler(pod: Pod) -> bool:
    """Whether the pod has no node and a scheduler is to find one."""
    return not pod.spec.node_name and is_active(pod) and not pod.spec.scheduling_gates


def lease_of(name: str) -> str:
    """The Lease of those of Drayman's schedulers that serve a `schedulerName`."""
    return _LEASE if name == OWN_SCHEDULER else f"{_LEASE}-{name}"


@dataclass(frozen=True, slots=True)
class AbsentScheduler:
    """A `schedulerName` that no scheduler serves."""

    name: str
    lease: Lease | None = None
    """The Lease that was renewed last by one that did, if there is a Lease."""


class Leases:
    """The Leases of schedulers at one moment."""

    def __init__(self, leases: Iterable[Lease], now: float) -> None:
        """`now` is in seconds since the epoch."""
        self._leases = {lease.metadata.name: lease for lease in leases}
        self._now = now

    def holder(self, name: str) -> str:
        """The process that schedules the pods of a `schedulerName`; empty for none."""
        renewed = (lease for lease in self._of(name) if self.ends(lease) > self._now)
        return next((lease.spec.holder_identity for lease in renewed), "")

    def latest(self, name: str) -> Lease | None:
        """The Lease for a `schedulerName` that ends last, whether or not it has ended."""
        return max(self._of(name), key=self.ends, default=None)

    def ends(self, lease: Lease) -> float:
        """When a Lease ends unless it is renewed, with an allowance for clocks that differ; a Lease without holder has ended."""
        renewed = seconds_of(lease.spec.renew_time) or 0.0
        if not lease.spec.holder_identity:
            return min(renewed, self._now)
        return renewed + (lease.spec.lease_duration_seconds or 0) + _CLOCKS_APART_S

    def _of(self, name: str) -> list[Lease]:
        names = (lease_of(name), *((_KUBE_SCHEDULER,) if name == DEFAULT_SCHEDULER else ()))
        return [self._leases[each] for each in names if each in self._leases]


class Schedulers:
    """Which schedulers run, by their Leases and by the pods that they have evaluated."""

    def __init__(self, leases: Iterable[Lease], pods: Iterable[Pod], now: float) -> None:
        """`now` is in seconds since the epoch."""
        self._leases = Leases(leases, now)
        self._pods = pods
        self._now = now
        self._evaluated: dict[str, float] | None = None

    def absent_for(self, pod: Pod) -> AbsentScheduler | None:
        """The scheduler that is responsible for a pod and does not run; None if it runs, or may run, or the pod waits for none."""
        created = seconds_of(pod.metadata.creation_timestamp or None)
        name = scheduler_of(pod)
        if created is None or not awaits_scheduler(pod) or self._leases.holder(name):
            return None
        latest = self._leases.latest(name)
        if latest is None and name not in _LEASED_HERE:
            return None
        since = created if latest is None else self._leases.ends(latest)
        if self._now < created + _EVALUATED_AFTER_S or self._last_evaluation(name) >= since:
            return None
        return AbsentScheduler(name, latest)

    def _last_evaluation(self, name: str) -> float:
        """When a scheduler of this name last wrote that it has placed or refused a pod; 0 for never."""
        if self._evaluated is None:
            self._evaluated = {}
            for pod in self._pods:
                served = scheduler_of(pod)
                for condition in pod.status.conditions:
                    if condition.type_ == _SCHEDULED and condition.reason != _GATED:
                        at = seconds_of(condition.last_transition_time or None) or 0.0
                        self._evaluated[served] = max(at, self._evaluated.get(served, 0.0))
        return self._evaluated.get(name, 0.0)

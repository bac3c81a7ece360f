"""Which pods a budget covers, how many of them are healthy, how many have to be, and so how many may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from drayman.api.core import Pod
from drayman.api.errors import SelectorError
from drayman.api.labels import Labels, compile_selector
from drayman.api.meta import Condition, LabelSelector
from drayman.api.pods import is_finished, is_leaving
from drayman.api.times import seconds_of, timestamp_at
from drayman.api.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus
from drayman.workloads import shares
from drayman.workloads.pod_state import is_ready

CONDITION: Final = "DisruptionAllowed"
EVICTION_PATIENCE_S: Final = 120.0
"""How long an eviction that was granted counts against the budget while its pod is still not deleted."""


class Expected(NamedTuple):
    """How many pods a budget is about, and how many of them must be healthy."""

    pods: int
    healthy: int


class NoScaleError(Exception):
    """A share was asked for, and a pod's controller does not say how many there should be."""


def coverage(selector: LabelSelector | None) -> Callable[[Labels], bool]:
    """Whether pods with some labels are covered by a budget with this selector: an empty one covers all, an absent or invalid one none."""
    if selector is None:
        return _covers_none
    try:
        return compile_selector(selector).matches
    except SelectorError:
        return _covers_none


def _covers_none(_: Labels) -> bool:
    return False


def expected(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scales: Mapping[str, int] | None
) -> Expected:
    """`scales` has the number of replicas of each controller of the pods; None where one has no such number.

    Raises NoScaleError.
    """
    spec = budget.spec
    if spec.max_unavailable is not None:
        total = _scale(scales)
        most = shares.resolve(spec.max_unavailable, total, up=True)
        return Expected(total, max(0, total - most))
    if isinstance(spec.min_available, int):
        return Expected(len(pods), spec.min_available)
    if spec.min_available is not None:
        total = _scale(scales)
        return Expected(total, shares.resolve(spec.min_available, total, up=True))
    return Expected(len(pods), 0)


def _scale(scales: Mapping[str, int] | None) -> int:
    if scales is None:
        raise NoScaleError("a pod's controller has no number of replicas")
    return sum(scales.values())


def relevant(pods: Iterable[Pod]) -> list[Pod]:
    """The pods that a budget counts: those that have not ended."""
    return [pod for pod in pods if not is_finished(pod)]


def still_disrupted(budget: PodDisruptionBudget, pods: Iterable[Pod], now: float) -> dict[str, str]:
    """The evictions that were granted and not yet carried out, by pod; those that never happened are forgotten."""
    present = {pod.metadata.name: pod for pod in pods}
    kept = {}
    for name, since in budget.status.disrupted_pods.items():
        pod = present.get(name)
        if pod is None or is_leaving(pod):
            continue
        if seconds_of(since) + EVICTION_PATIENCE_S > now:
            kept[name] = since
    return kept


def status_of(
    budget: PodDisruptionBudget, pods: Sequence[Pod], wanted: Expected, now: float
) -> PodDisruptionBudgetStatus:
    disrupted = still_disrupted(budget, pods, now)
    healthy = sum(
        is_ready(pod) and not is_leaving(pod) and pod.metadata.name not in disrupted for pod in pods
    )
    allowed = max(0, healthy - wanted.healthy) if wanted.pods else 0
    status = msgspec.structs.replace(
        budget.status,
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=wanted.healthy,
        expected_pods=wanted.pods,
    )
    reason = "SufficientPods" if allowed else "InsufficientPods"
    return _with(status, budget, bool(allowed), reason, "", now)


def failed(budget: PodDisruptionBudget, why: str, now: float) -> PodDisruptionBudgetStatus:
    """A status that allows nothing, because what the budget asks for cannot be worked out."""
    status = msgspec.structs.replace(
        budget.status, observed_generation=budget.metadata.generation, disruptions_allowed=0
    )
    return _with(status, budget, False, "SyncFailed", why, now)


def _with(
    status: PodDisruptionBudgetStatus,
    budget: PodDisruptionBudget,
    allowed: bool,
    reason: str,
    message: str,
    now: float,
) -> PodDisruptionBudgetStatus:
    old = next((c for c in status.conditions if c.type_ == CONDITION), None)
    value = "True" if allowed else "False"
    new = Condition(
        type_=CONDITION,
        status=value,
        observed_generation=budget.metadata.generation,
        last_transition_time=old.last_transition_time
        if old is not None and old.status == value
        else timestamp_at(now),
        reason=reason,
        message=message,
    )
    others = tuple(c for c in status.conditions if c.type_ != CONDITION)
    return msgspec.structs.replace(status, conditions=(*others, new))


def next_change(budget: PodDisruptionBudget, now: float) -> float | None:
    """Seconds until an eviction that was granted and did not happen no longer counts."""
    times = map(seconds_of, budget.status.disrupted_pods.values())
    left = [max(0.0, moment + EVICTION_PATIENCE_S - now) for moment in times]
    return min(left, default=None)

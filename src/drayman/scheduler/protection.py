"""Disruption budgets as preemption sees them: pods that had better stay."""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.errors import SelectorError
from drayman.api.labels import matches
from drayman.api.workloads import PodDisruptionBudget
from drayman.cluster.cache import Cache


class Budgets:
    """The disruption budgets of a cluster."""

    def __init__(self, budgets: Cache[PodDisruptionBudget]) -> None:
        self._budgets = budgets

    def protects(self, pod: Pod) -> bool:
        """Whether a budget that allows no more disruptions covers the pod."""
        return any(
            budget.metadata.namespace == pod.metadata.namespace
            and budget.status.disruptions_allowed <= 0
            and pod.metadata.name not in budget.status.disrupted_pods
            and _covers(budget, pod)
            for budget in self._budgets
        )


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.spec.selector is None or not pod.metadata.labels:
        return False
    try:
        return matches(budget.spec.selector, pod.metadata.labels)
    except SelectorError:
        return False

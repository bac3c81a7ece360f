"""Disruption budgets as preemption sees them: pods that should preferably stay.

A budget covers the same pods here as for an eviction. Kubernetes' scheduler overlooks budgets with an empty selector, which are about all
pods of their namespace, and pods without labels.
"""

from __future__ import annotations

from collections.abc import Sequence

from drayman.api.core import Pod
from drayman.api.workloads import PodDisruptionBudget
from drayman.cluster.cache import Cache
from drayman.workloads.disruption import coverage


class Budgets:
    """The disruption budgets of a cluster."""

    def __init__(self, budgets: Cache[PodDisruptionBudget]) -> None:
        self._budgets = budgets

    def violated_by(self, pods: Sequence[Pod]) -> frozenset[str]:
        """Which of these pods, by uid, exceed a budget if they go in this order."""
        if not pods or not len(self._budgets):
            return frozenset()
        left = {budget.metadata.uid: budget.status.disruptions_allowed for budget in self._budgets}
        violating = set()
        for pod in pods:
            for budget in self._budgets:
                if not _protects(budget, pod):
                    continue
                left[budget.metadata.uid] -= 1
                if left[budget.metadata.uid] < 0:
                    violating.add(pod.metadata.uid)
        return frozenset(violating)


def _protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether evicting the pod counts against the budget: one that is expected to go has already been counted."""
    return (
        budget.metadata.namespace == pod.metadata.namespace
        and pod.metadata.name not in budget.status.disrupted_pods
        and coverage(budget.spec.selector)(pod.metadata.labels)
    )

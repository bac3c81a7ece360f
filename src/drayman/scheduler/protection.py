"""Disruption budgets as preemption sees them: pods that should preferably stay.

A budget covers the same pods here as for an eviction. Kubernetes' scheduler overlooks budgets with an empty selector, which are about all
pods of their namespace, and pods without labels.

There may be thousands of budgets for thousands of pods. So selectors are compiled once, pods with the same labels are judged once, and
breaks are taken where that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.api.labels import Labels
from drayman.api.meta import LabelSelector
from drayman.api.workloads import PodDisruptionBudget
from drayman.bounded import Bounded
from drayman.cluster.cache import Cache
from drayman.placement.pauses import never
from drayman.workloads.disruption import coverage

_BY_NAMESPACE: Final = "namespace"
_MOST_COMPILED: Final = 4096


class Budgets:
    """The disruption budgets of a cluster."""

    def __init__(self, budgets: Cache[PodDisruptionBudget]) -> None:
        self._budgets = budgets
        budgets.add_indexers({_BY_NAMESPACE: _namespace_of})
        self._compiled: Bounded[str, tuple[LabelSelector | None, Callable[[Labels], bool]]] = (
            Bounded(_MOST_COMPILED)
        )

    def asked(self, is_due: Callable[[], bool] = never) -> Protection:
        """For one search, in which breaks are taken where they are due."""
        return Protection(self, is_due)

    def of(self, namespace: str) -> Sequence[PodDisruptionBudget]:
        return self._budgets.by_index(_BY_NAMESPACE, namespace)

    def covers(self, budget: PodDisruptionBudget, labels: Labels) -> bool:
        """Whether a budget covers pods with these labels."""
        uid, selector = budget.metadata.uid, budget.spec.selector
        compiled = self._compiled.get(uid)
        if compiled is None or (compiled[0] is not selector and compiled[0] != selector):
            compiled = self._compiled[uid] = (selector, coverage(selector))
        return compiled[1](labels)


class Protection:
    """Which pods budgets protect, during one search."""

    def __init__(self, budgets: Budgets, is_due: Callable[[], bool]) -> None:
        self._budgets = budgets
        self._is_due = is_due
        self._covering: dict[
            tuple[str, frozenset[tuple[str, str]]], tuple[PodDisruptionBudget, ...]
        ] = {}

    def violated_by(self, pods: Sequence[Pod]) -> Generator[None, None, Collection[str]]:
        """Which of these pods, by uid, exceed a budget if they go in this order."""
        used: dict[str, int] = {}
        violating = set()
        for pod in pods:
            for budget in (yield from self._budgets_of(pod)):
                # One that is expected to go has already been counted.
                if pod.metadata.name in budget.status.disrupted_pods:
                    continue
                uid = budget.metadata.uid
                used[uid] = used.get(uid, 0) + 1
                if used[uid] > budget.status.disruptions_allowed:
                    violating.add(pod.metadata.uid)
            if self._is_due():
                yield
        return violating

    def _budgets_of(self, pod: Pod) -> Generator[None, None, tuple[PodDisruptionBudget, ...]]:
        labels = pod.metadata.labels
        key = pod.metadata.namespace, frozenset(labels.items())
        if key not in self._covering:
            found = []
            for budget in self._budgets.of(pod.metadata.namespace):
                if self._budgets.covers(budget, labels):
                    found.append(budget)
                if self._is_due():
                    yield
            self._covering[key] = tuple(found)
        return self._covering[key]


def _namespace_of(budget: PodDisruptionBudget) -> tuple[str, ...]:
    return (budget.metadata.namespace,)

"""Keeps the status of disruption budgets, which evictions use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from drayman.api.core import Pod
from drayman.api.labels import Labels
from drayman.api.meta import OwnerReference, controller_of
from drayman.api.pods import is_finished, is_leaving
from drayman.api.workloads import PodDisruptionBudget
from drayman.cluster.breaks import Breaks
from drayman.cluster.cache import Cache
from drayman.cluster.informer import Notice
from drayman.cluster.resources import (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from drayman.controllers.workloads.reconciling import Key, LabelSet, Reconciler
from drayman.workloads.disruption import (
    NoScaleError,
    coverage,
    expected,
    failed,
    next_change,
    relevant,
    status_of,
)
from drayman.workloads.pod_state import is_ready

_SCALED: Final[tuple[Resource[Any], ...]] = (
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    DEPLOYMENTS,
    STATEFUL_SETS,
)
"""What says how many pods there should be."""
_PODS_CHANGED: Final = ""
"""The name, which no budget has, under which changes to pods of a namespace are looked at."""


class DisruptionController(Reconciler[PodDisruptionBudget]):
    """Counts the pods of each budget."""

    resource = DISRUPTION_BUDGETS
    component = "controllermanager"
    workers = 1

    def follow_others(self) -> None:
        self._covers: dict[Key, Callable[[Labels], bool]] = {}
        """Which labels a budget covers."""
        self._touched: dict[str, set[LabelSet]] = {}
        """The labels of pods that have changed, by namespace, until it is known which budgets cover them. That takes a while where there
        are many budgets, and what else follows pods must not wait for it."""
        self._breaks = Breaks()
        self._pods = self.follow(PODS, self._pod_changed)
        self._scaled: dict[str, Cache[Any]] = {
            resource.kind: self.follow(resource, self._scaled_changed) for resource in _SCALED
        }

    async def reconcile(self, key: Key) -> None:
        if key[1] == _PODS_CHANGED:
            await self._find_budgets(key[0])
            return
        budget = self.find(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return
        pods, now = relevant(self._selected(budget)), self.clock()
        try:
            wanted = expected(budget, pods, self._scales(key[0], pods))
        except NoScaleError as error:
            self.record(budget, "Warning", "CalculateExpectedPodCountFailed", str(error))
            status = failed(budget, str(error), now)
        else:
            if not pods:
                self.record(budget, "Normal", "NoPods", "No matching pods found")
            status = status_of(budget, pods, wanted, now)
        if status != budget.status:
            budget = await self.write_status(budget, status)
        if (wait := next_change(budget, now)) is not None:
            self.queue.add_after(key, wait)

    def _selected(self, budget: PodDisruptionBudget) -> Iterable[Pod]:
        covers, namespace = coverage(budget.spec.selector), budget.metadata.namespace
        # Budgets are few and looked at seldom, so no index is kept for them. Most pods have the labels of many others.
        known: dict[LabelSet, bool] = {}
        for pod in self._pods:
            if pod.metadata.namespace == namespace:
                labels = frozenset(pod.metadata.labels.items())
                if labels not in known:
                    known[labels] = covers(pod.metadata.labels)
                if known[labels]:
                    yield pod

    def _scales(self, namespace: str, pods: Iterable[Pod]) -> dict[str, int] | None:
        """The size of each controller of the pods, by its uid; None where a pod has no controller with a size."""
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None:
                # A bare pod counts for nothing where shares are asked for, as with Kubernetes.
                continue
            if owner.uid in sizes:
                continue
            found = self._find(namespace, owner)
            if found is None:
                return None
            above = controller_of(found.metadata)
            if above is not None and (upper := self._find(namespace, above)) is not None:
                found = upper
            sizes[found.metadata.uid] = found.spec.replicas
        return sizes

    def _find(self, namespace: str, owner: OwnerReference) -> Any:
        cache = self._scaled.get(owner.kind)
        found = None if cache is None else cache.get(owner.name, namespace)
        return found if found is not None and found.metadata.uid == owner.uid else None

    def object_changed(self, notice: Notice[PodDisruptionBudget]) -> None:
        budget = notice.object
        key = (budget.metadata.namespace, budget.metadata.name)
        if notice.type == "DELETED":
            self._covers.pop(key, None)
        else:
            self._covers[key] = coverage(budget.spec.selector)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        metadata, old = notice.object.metadata, notice.old
        if (
            old is not None
            and notice.type == "MODIFIED"
            and _counts_as(old) == _counts_as(notice.object)
        ):
            return
        if not self.has_any(metadata.namespace):
            return
        touched = self._touched.setdefault(metadata.namespace, set())
        touched.add(frozenset(metadata.labels.items()))
        if old is not None:
            touched.add(frozenset(old.metadata.labels.items()))
        self.queue.add((metadata.namespace, _PODS_CHANGED))

    async def _find_budgets(self, namespace: str) -> None:
        """Queues the budgets that cover pods which have changed."""
        touched = [dict(labels) for labels in self._touched.pop(namespace, ())]
        for budget in self.in_namespace(namespace):
            key = (namespace, budget.metadata.name)
            covers = self._covers.get(key, _covers_nothing)
            for labels in touched:
                await self._breaks.between()
                if covers(labels):
                    self.queue.add(key)
                    break

    def _scaled_changed(self, notice: Notice[Any]) -> None:
        """The size of a workload affects every budget of its namespace that may cover it."""
        old = notice.old
        if old is not None and old.spec.replicas == notice.object.spec.replicas:
            return
        namespace = notice.object.metadata.namespace
        for budget in self.in_namespace(namespace):
            self.queue.add((namespace, budget.metadata.name))


def _covers_nothing(_: Labels) -> bool:
    """Of a budget that is gone."""
    return False


def _counts_as(pod: Pod) -> tuple[object, ...]:
    """What budgets look at. Most changes of a pod are about something else."""
    return pod.metadata.labels, is_ready(pod), is_finished(pod), is_leaving(pod)

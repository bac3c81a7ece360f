"""The price of devices as the cluster is now, and whom a change of classes, slices, claims, templates, taints or nodes concerns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from drayman.api.core import Node
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.cluster.informer import Notice
from drayman.controllers.quota.view import DELETED, ClusterView
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.outcome import Dependencies, PriceRefusal
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Gates
from drayman.quota.charging.waking import Changed, PriceDependents
from drayman.quota.demands import Charged, PodSetRequest


class Devices:
    """Prices Workloads, and remembers what each price was made from."""

    def __init__(self, view: ClusterView, concerned: Callable[[str], None]) -> None:
        """`concerned` is called with the key of each Workload whose price may be another one."""
        self._view = view
        self._concerned = concerned
        self._waiting = PriceDependents()
        self._pricing: DevicePricing | None = None
        self._mappings = DeviceClassMappings()
        self._gates = Gates()
        view.listen(self._changed)

    def price_workload(
        self,
        namespace: str,
        pod_sets: Sequence[PodSetRequest],
        *,
        workload: str = "",
        flavor: Mapping[str, str] | None = None,
    ) -> Mapping[str, Charged] | PriceRefusal:
        """What one pod of each set costs, and what the set costs once."""
        if (
            flavor is not None
        ):  # It depends on nothing that the price in the whole cluster does not depend on.
            return self._prices().price_workload(namespace, pod_sets, flavor=flavor)
        if not any(each.may_ask_for_devices for each in pod_sets):
            self._waiting.forget(workload)
            return {}
        found = self._prices().price_workload(namespace, pod_sets, workload=workload)
        priced = (found,) if isinstance(found, PriceRefusal) else tuple(found.values())
        depends_on = reduce(or_, (each.depends_on for each in priced), Dependencies())
        self._waiting.note(workload, depends_on)
        return found

    @property
    def mappings(self) -> DeviceClassMappings:
        """What devices are charged under now."""
        return self._mappings

    def forget(self, key: str) -> None:
        self._waiting.forget(key)

    def set_mappings(self, mappings: DeviceClassMappings, gates: Gates) -> None:
        """Charge devices under other names from now on."""
        changed = Changed.of_mappings(self._mappings, mappings)
        self._mappings, self._gates = mappings, gates
        if self._pricing is not None:
            self._pricing.mappings, self._pricing.gates = mappings, gates
        self._notify(changed)

    def _prices(self) -> DevicePricing:
        if self._pricing is None:
            self._pricing = DevicePricing(self._view.state, self._mappings, gates=self._gates)
        return self._pricing

    def _changed(self, type_: type, notice: Notice[Any]) -> None:
        if self._pricing is not None:
            self._notify(_changed(type_, notice))

    def _notify(self, changed: Changed) -> None:
        for key in self._waiting.concerned_by(changed):
            self._concerned(key)


def _changed(type_: type, notice: Notice[Any]) -> Changed:
    """What is not as it was before."""
    before = notice.object if notice.type == DELETED else notice.old
    after = None if notice.type == DELETED else notice.object
    if type_ is DeviceClass:
        return Changed.of_class(before, after)
    if type_ is ResourceSlice:
        return Changed.of_slice(before, after)
    if type_ is DeviceTaintRule:
        return Changed.of_taint_rule(before, after)
    if type_ is ResourceClaimTemplate:
        return Changed.of_template(notice.object)
    if type_ is ResourceClaim:
        return Changed.of_claim(notice.object)
    if type_ is Node and (before is None or after is None or _is_elsewhere(before, after)):
        return Changed.of_nodes()
    return Changed()


def _is_elsewhere(before: Node, after: Node) -> bool:
    return before.metadata.labels != after.metadata.labels

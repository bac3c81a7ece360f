"""The price of devices as the cluster is now, and the Workloads that a change of objects or nodes concerns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from drayman.quota.charging.outcome import PriceRefusal
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Gates
from drayman.quota.charging.waking import (
    Changed,
    KeptPrices,
    PriceDependents,
    depends_on,
    question_of,
)
from drayman.quota.demands import Charged, PodSetRequest


class Devices:
    """Prices Workloads, and keeps prices until something that they were made from changes."""

    def __init__(self, view: ClusterView, changed: Callable[[], None]) -> None:
        """`changed` is called when there are Workloads whose price may be another one: see `take_concerned`."""
        self._view = view
        self._report = changed
        self._waiting: PriceDependents[str] = PriceDependents()
        self._kept = KeptPrices()
        self._drivers: frozenset[str] = frozenset()
        """Drivers whose devices have changed. Slices change in bursts, so the concerned Workloads are determined once for a burst."""
        self._concerned: dict[str, None] = {}
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
        if not any(each.may_ask_for_devices for each in pod_sets):
            self._waiting.forget(workload)
            return {}
        self._apply_drivers()
        question = question_of(namespace, pod_sets, flavor)
        found = self._kept.get(question)
        if found is None:
            found = self._prices().price_workload(namespace, pod_sets, flavor=flavor)
            self._kept.keep(question, found)
        if flavor is None:  # In a flavor, it depends on nothing else.
            self._waiting.note(workload, depends_on(found))
        return found

    def take_concerned(self) -> list[str]:
        """The keys of Workloads whose price may have changed since the last call."""
        self._apply_drivers()
        concerned, self._concerned = self._concerned, {}
        return list(concerned)

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
        self._kept.clear()
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
        if changed.drivers:
            self._drivers |= changed.drivers
            self._report()
            return
        self._apply(changed)
        if self._concerned:
            self._report()

    def _apply_drivers(self) -> None:
        if self._drivers:
            drivers, self._drivers = self._drivers, frozenset()
            self._apply(Changed(drivers=drivers))

    def _apply(self, changed: Changed) -> None:
        self._kept.drop(changed)
        self._concerned.update(dict.fromkeys(self._waiting.concerned_by(changed)))


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

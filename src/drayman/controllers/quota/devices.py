"""The price of devices as the cluster is now, and whom a change of classes, slices, claims, templates, taints or nodes concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drayman.api.core import Node
from drayman.api.kueue import PodTemplate
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
from drayman.quota.charging.outcome import Charges, Dependencies, Refused
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Gates
from drayman.quota.charging.waking import Changed, Waiting
from drayman.quota.demands import Charged, Price


class Devices:
    """Prices pod sets, and remembers what each price was made from."""

    def __init__(self, view: ClusterView, concerned: Callable[[str], None]) -> None:
        """`concerned` is called with the key of each Workload whose price may be another one."""
        self._view = view
        self._concerned = concerned
        self._waiting = Waiting()
        self._pricing: DevicePricing | None = None
        self._mappings = DeviceClassMappings()
        self._gates = Gates()
        self._seen = Dependencies()
        view.listen(self._changed)

    def price(self, namespace: str, pod_set: str, template: PodTemplate) -> Price:
        """What one pod of a set costs."""
        spec = template.spec
        if not spec.resource_claims and not _asks_extended(template):
            return Charged({})
        found = self._prices().price(namespace, pod_set, template)
        self._seen |= found.depends_on
        assert isinstance(found, Charges | Refused)
        return found

    def begin(self) -> None:
        """The prices that follow are those of one Workload."""
        self._seen = Dependencies()

    def end(self, key: str) -> None:
        """All pod sets of a Workload are priced."""
        self._waiting.note(key, self._seen)

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


def _asks_extended(template: PodTemplate) -> bool:
    """Whether a container asks for a resource that devices may stand behind."""
    spec = template.spec
    return any(
        "/" in name
        for container in (*spec.init_containers, *spec.containers)
        for name in {**container.resources.requests, **container.resources.limits}
    )


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

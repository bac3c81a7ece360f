"""The price of devices as the cluster is now: classes, slices, claims, templates, taints and nodes, and whom a change of these concerns.

A state of its own, because the scheduler's is the scheduler's: here it is counted which devices there are, not who gets which. It is
filled when the first Workload asks for a device, so that a cluster without queues pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from drayman.api.core import Namespace, Node
from drayman.api.kueue import PodTemplate
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.cluster.informer import Informer, Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import typed
from drayman.inventory.features import Features
from drayman.placement.followed import FOLLOWED, Followed
from drayman.placement.state import ClusterState
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.outcome import Charges, Dependencies, Refused
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.waking import Changed, Waiting
from drayman.quota.demands import Charged, Price

DELETED: Final = "DELETED"
_READ: Final = (
    Namespace,
    Node,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceClaim,
)


class Devices:
    """Prices pod sets, and remembers what each price was made from."""

    def __init__(self, informers: Informers, concerned: Callable[[str], None]) -> None:
        """`concerned` is called with the key of each Workload whose price may be another one."""
        self._concerned = concerned
        self._waiting = Waiting()
        self._followed: list[tuple[Followed, Informer[Any]]] = [
            (kind, informers.informer(typed(kind.type))) for kind in FOLLOWED if kind.type in _READ
        ]
        self._pricing: DevicePricing | None = None
        self._mappings = DeviceClassMappings()
        self._seen = Dependencies()
        for kind, informer in self._followed:
            informer.add_handler(self._handler(kind))

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

    def set_mappings(self, mappings: DeviceClassMappings) -> None:
        """Charge devices under other names from now on."""
        changed = Changed.of_mappings(self._mappings, mappings)
        self._mappings = mappings
        if self._pricing is not None:
            self._pricing.mappings = mappings
        self._notify(changed)

    def _prices(self) -> DevicePricing:
        if self._pricing is None:
            state = ClusterState(Features(), _wake_nothing)
            for kind, informer in self._followed:
                for each in informer.cache:
                    kind.put(state, each)
            self._pricing = DevicePricing(state, self._mappings)
        return self._pricing

    def _handler(self, kind: Followed) -> Callable[[Notice[Any]], None]:
        def handle(notice: Notice[Any]) -> None:
            if self._pricing is None:
                return
            if notice.type == DELETED:
                kind.remove(self._pricing.state, notice.object)
            elif kind.put(self._pricing.state, notice.object) is False:
                return
            self._notify(_changed(kind.type, notice))

        return handle

    def _notify(self, changed: Changed) -> None:
        for key in self._waiting.concerned_by(changed):
            self._concerned(key)


def _wake_nothing(_change: object) -> None:
    """Nobody waits for nodes here."""


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

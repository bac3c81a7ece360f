"""What wakes what: from a change of an object to the workloads whose price may be another one.

Prices list the objects that they were made from (`Dependencies`), also where there is none because one of these is missing. Turned round,
that is an index: a class, a template or a slice that appears reaches exactly the workloads that wait for it. The same index says how long a
price that was worked out once holds for all workloads that ask for the same (`KeptPrices`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final, Generic, TypeVar

from msgspec import Struct

from drayman.api import codec
from drayman.api.core import Container
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.placement.extended import IMPLICIT_PREFIX
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.outcome import (
    ANY_DRIVER,
    NOTHING,
    Charges,
    Code,
    Dependencies,
    PriceRefusal,
)
from drayman.quota.claims.prices import ObjectKey
from drayman.quota.demands import PodSetRequest

Prices = Mapping[str, Charges] | PriceRefusal
"""What the pod sets of a workload cost, by name, or why they have no price."""
K = TypeVar("K", bound=Hashable)
_DRIVER: Final = "driver"
_MOST_KEPT: Final = 4_096


class Changed(Struct, frozen=True):
    """What is not as it was before. Several changes can be looked up as one."""

    classes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    templates: frozenset[ObjectKey] = frozenset()
    claims: frozenset[ObjectKey] = frozenset()
    drivers: frozenset[str] = frozenset()
    """Whose devices changed, or `ANY_DRIVER` if that may be devices of all drivers."""

    @classmethod
    def of_class(cls, before: DeviceClass | None, after: DeviceClass | None) -> Changed:
        """A class came, went or changed: for those who name it, or a resource that it stands, or stood, behind."""
        if before is not None and after is not None and before.spec == after.spec:
            return cls()
        given = [each for each in (before, after) if each is not None]
        classes = frozenset(each.metadata.name for each in given)
        names = {each.spec.extended_resource_name for each in given}
        names |= {f"{IMPLICIT_PREFIX}{name}" for name in classes}
        return cls(classes=classes, names=frozenset(name for name in names if name))

    @classmethod
    def of_slice(cls, before: ResourceSlice | None, after: ResourceSlice | None) -> Changed:
        """Devices came, went or changed."""
        if before is not None and after is not None and before.spec == after.spec:
            return cls()
        return cls(drivers=frozenset(s.spec.driver for s in (before, after) if s is not None))

    @classmethod
    def of_template(cls, template: ResourceClaimTemplate) -> Changed:
        return cls(templates=frozenset((_key(template),)))

    @classmethod
    def of_claim(cls, claim: ResourceClaim) -> Changed:
        return cls(claims=frozenset((_key(claim),)))

    @classmethod
    def of_taint_rule(
        cls, before: DeviceTaintRule | None, after: DeviceTaintRule | None
    ) -> Changed:
        """A rule taints other devices than before, or none any more."""
        if before is not None and after is not None and before.spec == after.spec:
            return cls()
        selectors = [rule.spec.device_selector for rule in (before, after) if rule is not None]
        drivers = {s.driver or ANY_DRIVER for s in selectors if s is not None}
        return cls(drivers=frozenset(drivers))

    @classmethod
    def of_nodes(cls) -> Changed:
        """Nodes came, went, or have other labels: devices are elsewhere now, or in other flavors."""
        return cls(drivers=frozenset((ANY_DRIVER,)))

    @classmethod
    def of_mappings(cls, before: DeviceClassMappings, after: DeviceClassMappings) -> Changed:
        """Devices are charged in another way."""
        return cls(classes=before.difference(after).classes)

    def concerns(self, price: Dependencies) -> bool:
        """Whether a price may be another one now."""
        if self.drivers and price.drivers and _meet(self.drivers, price.drivers):
            return True
        return not (
            self.classes.isdisjoint(price.classes)
            and self.names.isdisjoint(price.names)
            and self.templates.isdisjoint(price.templates)
            and self.claims.isdisjoint(price.claims)
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Group(Generic[K]):
    """All that depend on the same."""

    price: Dependencies
    keys: dict[K, None] = field(default_factory=dict)


class PriceDependents(Generic[K]):
    """Who depends on what: workloads, or prices themselves, by their keys.

    Thousands of workloads are made from one template and depend on the same, so that is kept once for all of them.
    """

    def __init__(self) -> None:
        self._group_of: dict[K, _Group[K]] = {}
        self._groups: dict[Dependencies, _Group[K]] = {}
        self._marked: dict[tuple[str, Hashable], dict[_Group[K], None]] = {}

    def note(self, key: K, price: Dependencies) -> None:
        """A price was worked out, or could not be. It replaces what was known of the same key."""
        known = self._group_of.get(key)
        if known is not None and known.price == price:
            return
        self.forget(key)
        group = self._groups.get(price)
        if group is None:
            group = self._groups[price] = _Group(price)
            for mark in _marks(price):
                self._marked.setdefault(mark, {})[group] = None
        group.keys[key] = None
        self._group_of[key] = group

    def forget(self, key: K) -> None:
        """Nobody waits for this price any more."""
        group = self._group_of.pop(key, None)
        if group is None:
            return
        del group.keys[key]
        if group.keys:
            return
        del self._groups[group.price]
        for mark in _marks(group.price):
            groups = self._marked[mark]
            del groups[group]
            if not groups:
                del self._marked[mark]

    def concerned_by(self, changed: Changed) -> list[K]:
        """Whose price may be another one now, each once."""
        marks = [*_marks(changed)]
        if ANY_DRIVER in changed.drivers:
            marks += [mark for mark in self._marked if mark[0] == _DRIVER]
        elif changed.drivers:
            marks.append((_DRIVER, ANY_DRIVER))
        groups = dict.fromkeys(group for mark in marks for group in self._marked.get(mark, ()))
        return [key for group in groups for key in group.keys]


class KeptPrices:
    """Prices that were worked out, by what was asked for, until something changes that they depend on.

    Workloads are read again with every change of their status, and thousands are copies of each other: all of them cost one price.
    """

    def __init__(self) -> None:
        self._prices: dict[Hashable, Prices] = {}
        self._dependents: PriceDependents[Hashable] = PriceDependents()

    def get(self, question: Hashable) -> Prices | None:
        return self._prices.get(question)

    def keep(self, question: Hashable, found: Prices) -> None:
        """Keep a price or a refusal. A search that was cut off continues at the next attempt, so its refusal is not kept."""
        if isinstance(found, PriceRefusal) and found.code is Code.UNFINISHED:
            return
        if len(self._prices) >= _MOST_KEPT:
            self.clear()
        self._prices[question] = found
        self._dependents.note(question, depends_on(found))

    def drop(self, changed: Changed) -> None:
        """Objects have changed: prices that depend on them are worked out again when asked for."""
        for question in self._dependents.concerned_by(changed):
            self._dependents.forget(question)
            del self._prices[question]

    def clear(self) -> None:
        self._prices.clear()
        self._dependents = PriceDependents()


def depends_on(found: Prices) -> Dependencies:
    """The objects that the prices of a workload were made from."""
    if isinstance(found, PriceRefusal):
        return found.depends_on
    return reduce(or_, (each.depends_on for each in found.values()), NOTHING)


def question_of(
    namespace: str, pod_sets: Sequence[PodSetRequest], flavor: Mapping[str, str] | None = None
) -> Hashable:
    """All that a price depends on besides objects of the cluster: equal for copies of a workload."""
    labels = None if flavor is None else frozenset(flavor.items())
    return namespace, labels, tuple(map(_asked, pod_sets))


def _asked(pods: PodSetRequest) -> Hashable:
    spec = pods.template.spec
    return (
        pods.name,
        pods.count,
        pods.min_count,
        pods.runs_elsewhere,
        tuple(map(codec.encode, spec.resource_claims)),
        _resources(spec.init_containers),
        _resources(spec.containers),
    )


def _resources(containers: Iterable[Container]) -> Hashable:
    return tuple((each.restart_policy, codec.encode(each.resources)) for each in containers)


def _meet(changed: frozenset[str], looked_at: frozenset[str]) -> bool:
    if ANY_DRIVER in changed or ANY_DRIVER in looked_at:
        return True
    return not changed.isdisjoint(looked_at)


def _marks(of: Dependencies | Changed) -> Iterator[tuple[str, Hashable]]:
    yield from (("class", name) for name in of.classes)
    yield from (("name", name) for name in of.names)
    yield from (("template", key) for key in of.templates)
    yield from (("claim", key) for key in of.claims)
    yield from ((_DRIVER, name) for name in of.drivers)


def _key(value: ResourceClaim | ResourceClaimTemplate) -> ObjectKey:
    return value.metadata.namespace, value.metadata.name

"""One way to serve a request: which devices match it, how many it gets, and what each of them is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from drayman.api.quantity import Format, Quantity
from drayman.api.resource import (
    DeviceClass,
    ExactDeviceRequest,
    RequestSpec,
)
from drayman.quota.amounts import saturated
from drayman.quota.charging.demand import DeviceDemand
from drayman.quota.charging.fleet import Fleet
from drayman.quota.charging.mappings import (
    CapacitySource,
    DeviceClassMapping,
    DeviceClassMappings,
    Source,
)
from drayman.quota.charging.matching import Match, capacities_of, expressions_of
from drayman.quota.charging.measuring import Measured, counted, measure, short_name
from drayman.quota.charging.outcome import (
    NOTHING,
    Code,
    Dependencies,
    Item,
    refuse,
)
from drayman.quota.charging.rules import Rules
from drayman.quota.settings import CONFIG_MAP, KUEUE_NAMESPACE

EXACT: Final = "ExactCount"
ALL: Final = "All"


@dataclass(slots=True)
class Bill:
    """What pricing has come to so far. It is also kept where there is no price: the objects that were looked at may change."""

    items: list[Item] = field(default_factory=list)
    admin_devices: int = 0
    measured: set[str] = field(default_factory=set)
    depends_on: Dependencies = NOTHING
    before: Dependencies = NOTHING
    """What earlier pod sets of the workload depend on."""

    @property
    def looked_at(self) -> Dependencies:
        """What the workload depends on so far."""
        return self.before | self.depends_on

    def begin(self) -> None:
        """Leave what is on it to the pod set that it is for, and begin with the next one."""
        self.items, self.admin_devices, self.measured = [], 0, set()
        self.before, self.depends_on = self.looked_at, NOTHING


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the requests of a claim come from."""

    title: str
    """For people: `template t`."""
    path: str
    """Of the claim's spec, beginning with the object that has it."""
    pods: int = 1
    """How many pods have such a claim each."""
    is_shared: bool = False
    resource: str = ""
    """The extended resource that the claim is made for."""
    runs_elsewhere: bool = False
    """Whether the pods run in another cluster, so that the devices are there."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What prices are made with."""

    fleet: Fleet
    classes: Mapping[str, DeviceClass]
    mappings: DeviceClassMappings
    rules: Rules
    bill: Bill


class Asked:
    """One way to serve a request: so many devices of a class."""

    def __init__(
        self, terms: Terms, name: str, spec: RequestSpec, path: str, origin: Origin
    ) -> None:
        self._fleet, self._rules, self._bill = terms.fleet, terms.rules, terms.bill
        self._classes = terms.classes
        self._name, self._spec, self._path, self._origin = name, spec, path, origin
        self._class = spec.device_class_name
        self.mappings = terms.mappings.of_class(self._class)
        self._is_admin = isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access)
        self._matching: int | None = None  # worked out where it matters
        self._capacities = capacities_of(spec)
        self._needs_devices = not origin.runs_elsewhere and bool(
            expressions_of(spec.selectors) or (self._rules.whole_requests and self._capacities)
        )
        self._match = Match(
            terms.fleet, terms.classes.get(self._class), spec, self.mappings, terms.rules, path
        )
        self.admin_devices = 0

    def items(self) -> list[Item]:
        """What it costs, under each of the names that its class is charged under. Raises RefusedError."""
        if not self._class:  # The API does not accept that; there is nothing to charge.
            return []
        mode = self._spec.allocation_mode
        if mode not in ("", EXACT, ALL) or (mode == ALL and not self._rules.all_devices):
            text = f"devices are not charged in mode {mode}; ask for a number of them"
            raise refuse(Code.UNSUPPORTED, f"{self._path}.allocationMode", text)
        self._look_up_class()
        if self._is_admin:
            return [self._looked_at()]
        if not self.mappings and not self._origin.resource:
            raise refuse(
                Code.CLASS_UNMAPPED,
                f"{self._path}.deviceClassName",
                f"no mapping says what devices of class {self._class} are charged under: add the class to"
                f" resources.deviceClassMappings of Kueue's Configuration, in the file of `drayman up --queue-config`"
                f" or in ConfigMap {KUEUE_NAMESPACE}/{CONFIG_MAP}",
            )
        if not self.mappings:
            return [self._count(self._origin.resource)]
        return [
            self._measure(mapping) if mapping.sources else self._count(mapping.name)
            for mapping in self.mappings
        ]

    def demand(self) -> DeviceDemand | None:
        """The devices that it needs for itself, if any were looked up."""
        if self._matching is None or self._is_admin or self._spec.allocation_mode == ALL:
            return None
        if self._origin.runs_elsewhere:
            return None
        if not (self._rules.all_pods or self._spec.selectors):
            return None
        pods = self._origin.pods if self._rules.all_pods and not self._origin.is_shared else 1
        shareable = self._matching & self._fleet.hardware.shareable
        return DeviceDemand(self._path, self._class, self._matching, shareable, self._wanted, pods)

    @property
    def _wanted(self) -> int:
        return max(1, self._spec.count)

    def _look_up_class(self) -> None:
        self._bill.depends_on |= Dependencies(classes=frozenset((self._class,)))
        if self._origin.runs_elsewhere:
            return  # The class may be in the other cluster only.
        measures = any(mapping.sources for mapping in self.mappings)
        needed = self._needs_devices or measures or self._spec.allocation_mode == ALL
        if (needed or self._rules.classes_exist) and self._class not in self._classes:
            text = f"there is no DeviceClass {self._class}"
            raise refuse(Code.CLASS_MISSING, f"{self._path}.deviceClassName", text, retryable=True)

    def _looked_at(self) -> Item:
        """Admin access takes a device from nobody. It needs one to look at, though."""
        all_of_them = self._spec.allocation_mode == ALL
        number = self._most_on_a_node(self._matched()) if all_of_them else self._wanted
        if not all_of_them and self._needs_devices:
            self._check_number(self._matched(), number)
        self.admin_devices = number
        return self._item("", number, 0, "admin access costs nothing")

    def _count(self, resource: str) -> Item:
        if self._spec.allocation_mode == ALL:
            number = self._most_on_a_node(self._matched())
            why = f"all devices of a node: {number} on the one with most of them"
            return self._item(resource, number, number, why)
        number = self._wanted
        if self._needs_devices:
            self._check_number(self._matched(), number)
        return self._item(resource, number, number, _counted(number, "device"))

    def _measure(self, mapping: DeviceClassMapping) -> Item:
        """By each source alone as Kueue does it, or by the first that is for a device."""
        matching = self._matched()
        groups = [mapping.measures]
        if not self._rules.first_source:
            groups = [(source,) for source in mapping.measures]
        total, parts, number = 0, [], self._wanted
        mode = self._spec.allocation_mode
        for sources in groups:
            found = measure(
                sources,
                self._fleet,
                matching,
                self._capacities,
                whole=self._rules.whole_requests,
            )
            name = " or ".join(dict.fromkeys(source.name for source in sources))
            if self._origin.runs_elsewhere and not found.levels and mode != ALL:
                total += self._requested(sources, name, mapping) * number
                parts.append(f"{name} as requested, x {number}")
                continue
            self._check_measured(found, name, mapping)
            if mode == ALL:
                number = self._most_on_a_node(found.devices)
                total += max(found.worth(devices) for _, devices in self._fleet.by_node())
                parts.append(f"{name} of all devices of the node where that is most")
            else:
                total += found.dearest * number
                kinds = (
                    f", the dearest of {len(found.levels)} kinds" if len(found.levels) > 1 else ""
                )
                worth = Quantity(found.dearest, Format.BINARY_SI)
                parts.append(f"{name} {worth} x {number}{kinds}")
        return self._item(mapping.name, number, saturated(total), "; ".join(parts))

    def _requested(self, sources: Sequence[Source], name: str, mapping: DeviceClassMapping) -> int:
        """What a device of another cluster costs, where no device of this one shows it: the capacity that is requested."""
        for source in sources:
            if isinstance(source, CapacitySource):
                wanted = short_name(source.name, source.driver)
                for capacity, amount in self._capacities.items():
                    if short_name(capacity, source.driver) == wanted:
                        return counted(amount)
        text = (
            f"class {self._class}: its devices are in another cluster, and no device of this one"
            f" shows the {name} that {mapping.name} is measured by: request a capacity that is"
            " measured, or map the class to a resource that counts devices"
        )
        raise refuse(Code.DEVICE_SHORTAGE, self._path, text, retryable=True)

    def _check_measured(self, found: Measured, name: str, mapping: DeviceClassMapping) -> None:
        if self._spec.allocation_mode != ALL:
            self._check_number(found.devices, self._wanted)
        text = f"class {self._class}: {_counted(found.devices.bit_count(), 'device')} match"
        if not found.having:
            text += f", none has {name}, which {mapping.name} is measured by"
            raise refuse(Code.DEVICE_SHORTAGE, self._path, text, retryable=True)
        if not found.levels:
            text += f", none gives the {name} that is asked for"
            raise refuse(Code.POLICY_REJECTS, f"{self._path}.capacity.requests", text)
        if self._rules.whole_requests and self._spec.allocation_mode != ALL:
            serving_it = 0
            for _, members in found.levels:
                serving_it |= members
            self._check_number(serving_it, self._wanted)

    def _matched(self) -> int:
        """The devices of this cluster that the request can have, including devices in use. Raises RefusedError."""
        if self._class not in self._classes and self._origin.runs_elsewhere:
            return 0
        if self._matching is None:
            self._bill.depends_on |= Dependencies(drivers=self._match.drivers)
            self._matching = self._match.devices
        return self._matching

    def _most_on_a_node(self, devices: int) -> int:
        most = max(((devices & here).bit_count() for _, here in self._fleet.by_node()), default=0)
        if not most:
            summary = self._match.summary(devices)
            text = f"class {self._class}: all devices of a node are wanted, {summary}"
            raise refuse(Code.DEVICE_SHORTAGE, self._path, text, retryable=True)
        return most

    def _check_number(self, devices: int, number: int) -> None:
        if devices.bit_count() < number and not self._origin.runs_elsewhere:
            text = f"class {self._class}: {number} wanted, {self._match.summary(devices)}"
            raise refuse(Code.DEVICE_SHORTAGE, self._path, text, retryable=True)

    def _item(self, resource: str, devices: int, amount: int, why: str) -> Item:
        origin = self._origin
        return Item(
            source=origin.title,
            request=self._name,
            device_class=self._class,
            resource=resource,
            devices=devices,
            amount=saturated(amount),
            why=why,
            is_shared=origin.is_shared,
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

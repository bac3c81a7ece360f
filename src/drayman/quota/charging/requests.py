"""What the requests of one claim cost: for each, which devices match it, how many it gets, and what each of them is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from drayman.api.resource import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    RequestSpec,
    ResourceClaimSpec,
)
from drayman.cel.device import compile_selector
from drayman.cel.errors import CompileError
from drayman.inventory.device import Amount
from drayman.quota.amounts import saturated
from drayman.quota.charging.demand import Competition, DeviceDemand
from drayman.quota.charging.fleet import Fleet
from drayman.quota.charging.mappings import DeviceClassMapping, DeviceClassMappings
from drayman.quota.charging.measuring import Measured, measure, serving
from drayman.quota.charging.outcome import (
    ANY_DRIVER,
    NOTHING,
    Code,
    Dependencies,
    Item,
    RefusedError,
    refuse,
)
from drayman.quota.charging.rules import Rules

EXACT: Final = "ExactCount"
ALL: Final = "All"
_MOST_EXPRESSIONS: Final = 4_096


@dataclass(slots=True)
class Bill:
    """What pricing has come to so far. It is also kept where there is no price: the objects that were looked at may change."""

    items: list[Item] = field(default_factory=list)
    admin_devices: int = 0
    measured: set[str] = field(default_factory=set)
    depends_on: Dependencies = NOTHING


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


class ClaimPricing:
    """Prices claims for one workload, with the devices of a fleet."""

    def __init__(
        self,
        fleet: Fleet,
        classes: Mapping[str, DeviceClass],
        mappings: DeviceClassMappings,
        rules: Rules,
        bill: Bill,
    ) -> None:
        self._fleet = fleet
        self._classes = classes
        self._mappings = mappings
        self._rules = rules
        self._bill = bill
        self._competition = Competition()

    def add(self, spec: ResourceClaimSpec, origin: Origin) -> None:
        """Put the requests of a claim on the bill. Raises RefusedError."""
        for index, request in enumerate(spec.devices.requests):
            path = f"{origin.path}.devices.requests[{index}]"
            if request.exactly is not None:
                asked = _Asked(self, request.name, request.exactly, f"{path}.exactly", origin)
                self._put(asked.items(), asked)
            elif request.first_available:
                self._put_dearest(request, path, origin)
            else:
                text = "neither `exactly` nor `firstAvailable` says what is asked for"
                raise refuse(Code.UNSUPPORTED, path, text)

    def _put_dearest(self, request: DeviceRequest, path: str, origin: Origin) -> None:
        """Of several alternatives, the most that any may cost under each name: which one it will be is known when it is allocated."""
        if not self._rules.alternatives:
            text = "`firstAvailable` is not charged; ask for one kind of device with `exactly`"
            raise refuse(Code.UNSUPPORTED, f"{path}.firstAvailable", text)
        dearest: dict[str, Item] = {}
        reasons: list[RefusedError] = []
        chosen: list[_Asked] = []
        for index, (name, sub) in enumerate(request.alternatives()):
            asked = _Asked(self, name, sub, f"{path}.firstAvailable[{index}]", origin)
            try:
                items = asked.items()
            except RefusedError as error:
                # What is short may come back; what makes no sense makes no sense in any place of the list.
                if error.refusal.code not in (Code.DEVICE_SHORTAGE, Code.POLICY_REJECTS):
                    raise
                reasons.append(error)
                continue
            chosen.append(asked)
            for item in items:
                known = dearest.get(item.resource)
                if known is None or item.amount > known.amount:
                    dearest[item.resource] = item
        if not chosen:
            raise reasons[0]
        self._put(list(dearest.values()), *chosen)

    def _put(self, items: list[Item], *chosen: _Asked) -> None:
        demands = [demand for asked in chosen if (demand := asked.demand()) is not None]
        if demands and len(demands) == len(chosen):
            self._competition.add(_any_of(demands))
        bill = self._bill
        bill.items += items
        bill.admin_devices += max((asked.admin_devices for asked in chosen), default=0)
        bill.measured |= {m.name for asked in chosen for m in asked.mappings if m.sources}


class _Asked:
    """One way to serve a request: so many devices of a class."""

    def __init__(
        self, pricing: ClaimPricing, name: str, spec: RequestSpec, path: str, origin: Origin
    ) -> None:
        self._fleet, self._rules, self._bill = pricing._fleet, pricing._rules, pricing._bill
        self._classes = pricing._classes
        self._name, self._spec, self._path, self._origin = name, spec, path, origin
        self._class = spec.device_class_name
        self.mappings = pricing._mappings.of_class(self._class)
        self._is_admin = isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access)
        self._matching: int | None = None  # worked out where it matters
        self._needs_devices = bool(
            _expressions(spec.selectors) or (self._rules.whole_requests and self._capacities)
        )
        self.admin_devices = 0

    @property
    def _capacities(self) -> dict[str, Amount]:
        wanted = self._spec.capacity
        return {} if wanted is None else {n: q.amount for n, q in wanted.requests.items()}

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
                f"no mapping says what devices of class {self._class} are charged under:"
                " add the class to resources.deviceClassMappings",
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
        for sources in groups:
            found = measure(
                sources,
                self._fleet,
                matching,
                self._capacities,
                whole=self._rules.whole_requests,
            )
            name = " or ".join(dict.fromkeys(source.name for source in sources))
            self._check_measured(found, name, mapping)
            if self._spec.allocation_mode == ALL:
                number = self._most_on_a_node(found.devices)
                total += max(found.worth(devices) for _, devices in self._fleet.by_node())
                parts.append(f"{name} of all devices of the node where that is most")
            else:
                total += found.dearest * number
                kinds = (
                    f", the dearest of {len(found.levels)} kinds" if len(found.levels) > 1 else ""
                )
                parts.append(f"{name} {found.dearest} x {number}{kinds}")
        return self._item(mapping.name, number, saturated(total), "; ".join(parts))

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
        """The devices that the request can have, whoever has them now. Raises RefusedError."""
        if self._matching is None:
            self._matching = self._match()
        return self._matching

    def _match(self) -> int:
        fleet, spec = self._fleet, self._spec
        device_class = self._classes.get(self._class)
        of_class = () if device_class is None else _expressions(device_class.spec.selectors)
        self._check_compiles(of_class, f"deviceclass/{self._class} spec.selectors")
        own = _expressions(spec.selectors)
        self._check_compiles(own, f"{self._path}.selectors")
        among = self._looked_through()
        if self._rules.taints:
            among &= fleet.tolerated(spec.tolerations)
        found, failing = fleet.selected((*of_class, *own), among)
        if failing:
            text = f"a selector fails {fleet.failure((*of_class, *own), failing)}"
            raise refuse(Code.SELECTOR_INVALID, f"{self._path}.selectors", text, retryable=True)
        if self._rules.whole_requests and self._capacities and not self._is_measured:
            found &= serving(fleet, self._capacities)
        return found

    def _looked_through(self) -> int:
        """All devices, or those of the drivers that are measured where no others count."""
        drivers = frozenset((ANY_DRIVER,))
        among = self._fleet.scope
        if self.mappings and all(mapping.sources for mapping in self.mappings):
            drivers = frozenset(m.driver for mapping in self.mappings for m in mapping.measures)
            among = 0
            for driver in drivers:
                among |= self._fleet.of_driver(driver)
        self._bill.depends_on |= Dependencies(drivers=drivers)
        return among

    @property
    def _is_measured(self) -> bool:
        return any(mapping.sources for mapping in self.mappings)

    def _check_compiles(self, expressions: tuple[str, ...], path: str) -> None:
        for index, expression in enumerate(expressions):
            if problem := _compile_problem(expression):
                raise refuse(Code.SELECTOR_INVALID, f"{path}[{index}]", problem)

    def _most_on_a_node(self, devices: int) -> int:
        most = max(((devices & here).bit_count() for _, here in self._fleet.by_node()), default=0)
        if not most:
            text = f"class {self._class}: all devices of a node are wanted, and none matches"
            raise refuse(Code.DEVICE_SHORTAGE, self._path, text, retryable=True)
        return most

    def _check_number(self, devices: int, number: int) -> None:
        found = devices.bit_count()
        if found < number:
            text = f"class {self._class}: {number} wanted, {found} match"
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


def _any_of(demands: list[DeviceDemand]) -> DeviceDemand:
    """What alternatives need at least: as many devices as the most modest of them, from those that serve any."""
    first = demands[0]
    if len(demands) == 1:
        return first
    devices = shareable = 0
    for demand in demands:
        devices |= demand.devices
        shareable |= demand.shareable
    count = min(demand.count for demand in demands)
    return DeviceDemand(first.path, first.device_class, devices, shareable, count, first.pods)


def _expressions(selectors: tuple[DeviceSelector, ...]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def _compile_problem(expression: str) -> str:
    """Why an expression does not compile; empty if it does."""
    try:
        compile_selector(expression)
    except CompileError as error:
        return str(error)
    return ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

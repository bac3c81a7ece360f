"""A problem, read once: devices, requests with their alternatives, constraints, what is in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from oracle.nodes import JsonObject
from oracle.pools import Device, DeviceId, Pool, PoolId, gather_pools
from oracle.quantities import amount

MAX_RESULTS = 32
TypedValue = tuple[str, object]
_LISTS = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One way to serve a request: the request itself or one of `firstAvailable`."""

    name: str
    """`request`, or `request/subrequest`."""
    parent: str
    spec: JsonObject
    admin: bool
    matching: frozenset[int] | None
    """Devices for which the selectors are true; None without a verdict (unknown class, no CEL)."""
    failing: frozenset[int]
    """Devices for which a selector fails."""

    @property
    def mode(self) -> str:
        return str(self.spec.get("allocationMode", ""))

    @property
    def asked(self) -> dict[str, Fraction]:
        wanted = (self.spec.get("capacity") or {}).get("requests") or {}
        return {name: amount(value) for name, value in wanted.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request of a claim with its alternatives in the user's order."""

    name: str
    choices: tuple[Alternative, ...]
    listed: bool
    """Written as `firstAvailable`."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """`matchAttribute` or `distinctAttribute`, or neither (`attribute` is None)."""

    match: bool
    attribute: str | None
    requests: frozenset[str]

    def applies(self, choice: Alternative) -> bool:
        return not self.requests or bool({choice.parent, choice.name} & self.requests)


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    spec: JsonObject
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]


class Model:
    """The static part of a problem."""

    def __init__(self, problem: JsonObject) -> None:
        self.problem = problem
        self.features = frozenset(problem["features"])
        self.pools = gather_pools(problem)
        self.devices = [device for pool in self.pools for device in pool.devices]
        self.pool_of: dict[PoolId, Pool] = {pool.id: pool for pool in self.pools}
        self.classes = {item["metadata"]["name"]: item for item in problem["classes"]}
        self.claims = [self._claim(n, claim) for n, claim in enumerate(problem["claims"])]
        in_use = problem["allocated"]
        self.exclusive = {device_id(entry) for entry in in_use.get("devices") or []}
        self.aggregated: dict[DeviceId, dict[str, Fraction]] = {
            device_id(entry): {
                name: amount(value) for name, value in (entry.get("consumedCapacity") or {}).items()
            }
            for entry in in_use.get("aggregatedCapacity") or []
        }
        shared = {device_id(entry) for entry in in_use.get("sharedDevices") or []}
        self.in_use = self.exclusive | shared | set(self.aggregated)

    def on(self, gate: str) -> bool:
        return gate in self.features

    @property
    def binding_supported(self) -> bool:
        return {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"} <= self.features

    def _claim(self, number: int, claim: JsonObject) -> Claim:
        spec = claim["spec"].get("devices") or {}
        requests = tuple(self._request(number, request) for request in spec.get("requests") or [])
        return Claim(claim, requests, tuple(map(_constraint, spec.get("constraints") or [])))

    def _request(self, number: int, request: JsonObject) -> Request:
        name = request["name"]
        subrequests = request.get("firstAvailable") or []
        if subrequests:
            choices = [
                self._choice(number, f"{name}/{sub['name']}", name, sub) for sub in subrequests
            ]
        else:
            choices = [self._choice(number, name, name, request.get("exactly") or {})]
        return Request(name, tuple(choices), bool(subrequests))

    def _choice(self, number: int, name: str, parent: str, spec: JsonObject) -> Alternative:
        verdict = self.problem["eligible"][number].get(name)
        return Alternative(
            name=name,
            parent=parent,
            spec=spec,
            admin=bool(spec.get("adminAccess")),
            matching=None if verdict is None else frozenset(verdict),
            failing=frozenset(self.problem["cel_errors"][number].get(name, ())),
        )

    # --- Rules about one device and one alternative -----------------------------------------------

    def eligible(self, choice: Alternative, index: int) -> bool:
        """Selectors, node selection by device, binding conditions."""
        device = self.devices[index]
        return index in (choice.matching or ()) and device.on_node and not self.hidden(device)

    def hidden(self, device: Device) -> bool:
        """Devices with binding conditions do not exist without the features for them."""
        return bool(device.spec.get("bindingConditions")) and not self.binding_supported

    def untolerated(self, choice: Alternative, device: Device) -> list[JsonObject]:
        """Taints that keep the alternative away from the device."""
        if not self.on("DRADeviceTaints"):
            return []
        return [
            taint
            for taint in device.spec.get("taints") or []
            if taint.get("effect") in ("NoSchedule", "NoExecute")
            and not any(_tolerates(t, taint) for t in choice.spec.get("tolerations") or [])
        ]

    def consumption(self, choice: Alternative, device: Device) -> dict[str, Fraction] | None:
        """What the alternative consumes of each capacity; None if the device cannot serve it."""
        if not self.on("DRAConsumableCapacity"):
            return {}
        capacities = device.spec.get("capacity") or {}
        asked = choice.asked
        if not set(asked) <= set(capacities):
            return None
        consumed = {}
        for name, capacity in capacities.items():
            value = _consumed(asked.get(name), capacity)
            if value is None or value + self.aggregated_of(device, name) > amount(
                capacity["value"]
            ):
                return None
            consumed[name] = value
        return consumed

    def aggregated_of(self, device: Device, capacity: str) -> Fraction:
        return self.aggregated.get(device.id, {}).get(capacity, Fraction(0))

    def all_devices(self, choice: Alternative) -> list[int]:
        """The devices that `All` stands for, in the order of the search."""
        return [
            index
            for index, device in enumerate(self.devices)
            if self.eligible(choice, index) and self.consumption(choice, device) is not None
        ]

    def number(self, choice: Alternative) -> int:
        return len(self.all_devices(choice)) if choice.mode == "All" else int(choice.spec["count"])

    def values(self, device: Device, attribute: str) -> frozenset[TypedValue]:
        """The values of an attribute as a set; empty if the device does not have it."""
        attributes = device.spec.get("attributes") or {}
        found = attributes.get(attribute)
        domain, _, short = attribute.partition("/")
        if found is None and domain == device.id[0]:
            found = attributes.get(short)
        return frozenset(self._typed(found or {}))

    def _typed(self, value: JsonObject) -> Iterable[TypedValue]:
        for kind, content in value.items():
            if kind in _LISTS:
                if self.on("DRAListTypeAttributes"):
                    yield from ((_LISTS[kind], element) for element in content)
            elif content is not None:
                yield (kind, content)

    def overcommitted(self, pool: Pool) -> bool:
        """Whether devices in use already consume more than the pool has."""
        return any(left < 0 for left in self.counters_left(pool).values())

    def counters_left(self, pool: Pool) -> dict[tuple[str, str], Fraction]:
        left = dict(pool.counters)
        for consumer, spends in pool.consumers.items():
            if consumer in self.in_use:
                for key, value in spends.items():
                    left[key] -= value
        return left


def device_id(entry: JsonObject) -> DeviceId:
    return entry["driver"], entry["pool"], entry["device"]


def _constraint(spec: JsonObject) -> Constraint:
    attribute = spec.get("matchAttribute") or spec.get("distinctAttribute")
    return Constraint(
        bool(spec.get("matchAttribute")), attribute, frozenset(spec.get("requests") or ())
    )


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def _consumed(asked: Fraction | None, capacity: JsonObject) -> Fraction | None:
    policy = capacity.get("requestPolicy") or {}
    if asked is None:
        return amount(policy.get("default") or capacity["value"])
    if limits := policy.get("validRange"):
        return _on_range(asked, {name: amount(value) for name, value in limits.items()})
    if listed := policy.get("validValues"):
        return min((v for v in map(amount, listed) if v >= asked), default=None)
    return asked


def _on_range(asked: Fraction, limits: dict[str, Fraction]) -> Fraction | None:
    low = limits.get("min", Fraction(0))
    value = max(asked, low)
    if step := limits.get("step"):
        value = low + -(-(value - low) // step) * step
    return None if value > limits.get("max", value) else value

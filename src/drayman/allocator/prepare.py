"""From claims and a view to tables. Everything that is wrong with the claims themselves is found here, before any search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from drayman.allocator.limits import MAX_ENTRIES
from drayman.allocator.tables import (
    Alternative,
    Constraint,
    PreparationError,
    Request,
    RequestSpec,
    Tables,
    claim_name,
)
from drayman.api.resource import DeviceClass, DeviceRequest, ResourceClaim
from drayman.inventory.device import Amount
from drayman.inventory.view import NodeView, positions


class Judgement(Enum):
    """What becomes of a device on which a selector fails."""

    STRICT = "strict"  # trying it is an error, as upstream has it
    LENIENT = "lenient"  # it is not eligible
    HOPEFUL = "hopeful"  # it is taken to match: could it have mattered?


def prepare(view: NodeView, claims: Sequence[ResourceClaim], judgement: Judgement) -> Tables:
    """Compile the claims for the node. Raises PreparationError."""
    return _Preparation(view, judgement).run(claims)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where in the problem an alternative stands."""

    claim: ResourceClaim
    claim_index: int
    request_index: int
    parent: str
    matches: tuple[tuple[int, tuple[str, ...]], ...]  # constraint id and the requests it names
    distincts: tuple[tuple[int, tuple[str, ...]], ...]


class _Preparation:
    def __init__(self, view: NodeView, judgement: Judgement) -> None:
        self._view = view
        self._judgement = judgement
        self._matches: list[Constraint] = []
        self._distincts: list[Constraint] = []
        self._charge_ids: dict[tuple[tuple[str, Amount], ...], int] = {}
        self._charges: list[tuple[tuple[Amount, ...] | None, ...]] = []
        self._capacity_blocked: list[int] = []

    @property
    def _is_strict(self) -> bool:
        return self._judgement is Judgement.STRICT

    def run(self, claims: Sequence[ResourceClaim]) -> Tables:
        requests: list[Request] = []
        for index, claim in enumerate(claims):
            requests += self._claim(claim, index, len(requests))
        return Tables(
            self._view,
            tuple(claims),
            tuple(requests),
            tuple(self._matches),
            tuple(self._distincts),
            tuple(self._charges),
            tuple(self._capacity_blocked),
        )

    def _claim(self, claim: ResourceClaim, index: int, first: int) -> list[Request]:
        matches, distincts = self._constraints(claim, index)
        requests = []
        for offset, request in enumerate(claim.spec.devices.requests):
            scope = _Scope(claim, index, first + offset, request.name, matches, distincts)
            alternatives = self._alternatives(request, scope)
            listed = request.exactly is None
            requests.append(Request(index, request.name, alternatives, listed, offset == 0))
        self._refuse_oversized(claim, requests)
        for position, constraint in enumerate(claim.spec.devices.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                text = f"constraint #{position}: no attribute is compared"
                raise PreparationError(f"claim {claim_name(claim)}, {text}", claim)
        return requests

    def _refuse_oversized(self, claim: ResourceClaim, requests: list[Request]) -> None:
        least = sum(min(a.number for a in request.alternatives) for request in requests)
        if least > MAX_ENTRIES:
            text = f"needs {least} devices, a claim may have {MAX_ENTRIES}"
            raise PreparationError(f"claim {claim_name(claim)} {text}", claim)

    def _constraints(
        self, claim: ResourceClaim, index: int
    ) -> tuple[tuple[tuple[int, tuple[str, ...]], ...], tuple[tuple[int, tuple[str, ...]], ...]]:
        matches: list[tuple[int, tuple[str, ...]]] = []
        distincts: list[tuple[int, tuple[str, ...]]] = []
        for constraint in claim.spec.devices.constraints:
            if constraint.match_attribute is not None:
                name, known, mine = constraint.match_attribute, self._matches, matches
            elif constraint.distinct_attribute is not None:
                name, known, mine = constraint.distinct_attribute, self._distincts, distincts
            else:
                continue  # reported by _claim, after the requests
            mine.append((len(known), constraint.requests))
            known.append(Constraint(index, self._view.hardware.attribute(name), name))
        return tuple(matches), tuple(distincts)

    def _alternatives(self, request: DeviceRequest, scope: _Scope) -> tuple[Alternative, ...]:
        claim, features = scope.claim, self._view.features
        if request.exactly is not None:
            admin = request.exactly.admin_access
            if admin is not None and not features.admin_access:
                raise self._problem(scope, request.name, "asks for admin access, which is off")
            return (self._alternative(scope, 0, request.name, request.exactly, bool(admin)),)
        if not request.first_available:
            text = f"claim {claim_name(claim)}, request {request.name}: neither exactly nor firstAvailable"
            raise PreparationError(text, claim, request.name)
        if not features.prioritized_list:
            raise self._problem(scope, request.name, "has a prioritized list, which is off")
        return tuple(
            self._alternative(scope, index, f"{request.name}/{sub.name}", sub, admin=False)
            for index, sub in enumerate(request.first_available)
        )

    def _alternative(
        self, scope: _Scope, index: int, name: str, spec: RequestSpec, admin: bool
    ) -> Alternative:
        view, hardware = self._view, self._view.hardware
        device_class = self._device_class(scope, name, spec)
        selectors = self._selectors(scope, name, spec, device_class)
        selected, failing = hardware.select(selectors)
        if not view.features.binding_conditions:
            # Devices with binding conditions are passed over before their selectors are looked at.
            selected, failing = selected & ~hardware.binding, failing & ~hardware.binding
        if self._judgement is Judgement.HOPEFUL:
            selected |= failing
        eligible = selected & hardware.selects_node
        charge = self._charge(scope, name, spec)
        usable = hardware.tolerated(spec.tolerations) & ~view.overcommitted
        if not view.features.partitionable_devices:
            usable &= ~hardware.consumers
        if not admin:
            usable &= ~view.in_use
        matches = _applying(scope.matches, scope.parent, name)
        distincts = _applying(scope.distincts, scope.parent, name)
        unjudged = failing if admin else failing & ~view.in_use
        sequence: tuple[int, ...] | None = None
        if spec.allocation_mode == "All":
            sequence = self._all_devices(scope, name, selectors, eligible, failing, charge)
            number = len(sequence)
            candidates = eligible & ~self._capacity_blocked[charge] & usable
        elif spec.allocation_mode == "ExactCount":
            number = spec.count
            candidates = eligible & ~self._capacity_blocked[charge] & usable
            candidates &= self._with_attributes(matches, distincts)
        else:
            raise self._problem(
                scope, name, f"unsupported allocation mode {spec.allocation_mode!r}"
            )
        return Alternative(
            claim=scope.claim_index,
            request=scope.request_index,
            index=index,
            name=name,
            spec=spec,
            device_class=device_class,
            selectors=selectors,
            number=number,
            admin=admin,
            candidates=candidates,
            failing=unjudged if self._is_strict and sequence is None else 0,
            unjudged=unjudged,
            sequence=sequence,
            charge=charge,
            matches=matches,
            distincts=distincts,
        )

    def _device_class(self, scope: _Scope, name: str, spec: RequestSpec) -> DeviceClass:
        if not spec.device_class_name:
            raise self._problem(scope, name, "no device class is named")
        found = self._view.device_class(spec.device_class_name)
        if found is None:
            raise self._problem(
                scope, name, f"device class {spec.device_class_name} does not exist"
            )
        return found

    def _selectors(
        self, scope: _Scope, name: str, spec: RequestSpec, device_class: DeviceClass
    ) -> tuple[str, ...]:
        expressions = []
        for position, selector in enumerate((*device_class.spec.selectors, *spec.selectors)):
            if selector.cel is None:
                raise self._problem(scope, name, f"selector #{position} is not a CEL expression")
            expressions.append(selector.cel.expression)
        return tuple(expressions)

    def _charge(self, scope: _Scope, name: str, spec: RequestSpec) -> int:
        asked = spec.capacity.requests if spec.capacity is not None else {}
        if spec.capacity is not None and not self._view.features.consumable_capacity:
            raise self._problem(scope, name, "asks for capacity, which is off")
        amounts = {key: quantity.amount for key, quantity in asked.items()}
        return self._charge_id(amounts)

    def _charge_id(self, amounts: Mapping[str, Amount]) -> int:
        key = tuple(sorted(amounts.items()))
        known = self._charge_ids.get(key)
        if known is None:
            known = self._charge_ids[key] = len(self._charges)
            charges = self._view.charges(amounts)
            self._charges.append(charges)
            self._capacity_blocked.append(self._without_capacity(charges))
        return known

    def _without_capacity(self, charges: Sequence[tuple[Amount, ...] | None]) -> int:
        """The devices that cannot give what a request takes, before anything is placed."""
        blocked = 0
        if not self._view.features.consumable_capacity:
            return blocked
        for kind, left, devices in self._view.capacity_groups:
            charge = charges[kind]
            if charge is None or any(c > have for c, have in zip(charge, left, strict=True)):
                blocked |= devices
        return blocked

    def _all_devices(
        self,
        scope: _Scope,
        name: str,
        selectors: tuple[str, ...],
        eligible: int,
        failing: int,
        charge: int,
    ) -> tuple[int, ...]:
        if self._view.problems:
            problem = self._view.problems[0]
            text = f"asks for all devices, but pool {problem.id} is {problem.state.value}: {problem.reason}"
            raise self._problem(scope, name, text)
        if failing and self._is_strict:
            first = (failing & -failing).bit_length() - 1
            text = self._view.hardware.failure(selectors, first)
            raise self._problem(scope, name, f"device {self._view.id_of(first)}: {text}", failing)
        return tuple(positions(eligible & ~self._capacity_blocked[charge]))

    def _with_attributes(self, matches: tuple[int, ...], distincts: tuple[int, ...]) -> int:
        """The devices that have every attribute which is compared."""
        devices = self._view.hardware.everything
        for index in matches:
            devices &= self._matches[index].attribute.present
        for index in distincts:
            devices &= self._distincts[index].attribute.present
        return devices

    def _problem(
        self, scope: _Scope, request: str, text: str, devices: int = 0
    ) -> PreparationError:
        where = f"claim {claim_name(scope.claim)}, request {request}"
        return PreparationError(f"{where}: {text}", scope.claim, request, devices)


def _applying(
    constraints: tuple[tuple[int, tuple[str, ...]], ...], parent: str, name: str
) -> tuple[int, ...]:
    """The constraints that apply to a request or subrequest of this name."""
    return tuple(i for i, names in constraints if not names or parent in names or name in names)

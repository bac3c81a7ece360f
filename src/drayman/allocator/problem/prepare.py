"""From a question and a view to tables. Everything that is wrong with the claims themselves is found here, before any search."""

from __future__ import annotations

from enum import Enum

from drayman.allocator.problem.limits import MAX_ENTRIES
from drayman.allocator.problem.outcome import Defect
from drayman.allocator.problem.question import Question, WantedDevices, WantedRequest
from drayman.allocator.problem.stated import AlignedRequests, of_class
from drayman.allocator.problem.tables import (
    Alternative,
    Constraint,
    PreparationError,
    Request,
    Tables,
    claim_name,
)
from drayman.api.alignment import AlignmentError
from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount
from drayman.inventory.hardware import Charges
from drayman.inventory.view import NodeView


class Judgement(Enum):
    """What becomes of a device on which a selector fails."""

    STRICT = "strict"  # trying it is an error, as in upstream
    LENIENT = "lenient"  # it is not eligible
    HOPEFUL = "hopeful"  # it is taken to match: could it have mattered?


def prepare(view: NodeView, question: Question, judgement: Judgement) -> Tables:
    """Compile the question for the node. Raises PreparationError."""
    return _Preparation(view, question, judgement).run()


def without_capacity(view: NodeView, charges: Charges) -> int:
    """The devices that cannot give what a request takes, before anything is placed."""
    blocked = 0
    if not view.features.consumable_capacity:
        return blocked
    for kind, left, devices in view.usage.capacity_groups:
        charge = charges[kind]
        if charge is None:
            blocked |= devices
        elif charge is not left:
            for wanted, have in zip(charge, left, strict=True):
                if wanted > have:
                    blocked |= devices
                    break
    return blocked


class _Preparation:
    def __init__(self, view: NodeView, question: Question, judgement: Judgement) -> None:
        self._view = view
        self._hardware = view.hardware
        self._features = view.hardware.features
        self._question = question
        self._judgement = judgement
        self._charge_ids: dict[tuple[tuple[str, Amount], ...], int] = {}
        self._charges: list[Charges] = []
        self._capacity_blocked: list[int] = []
        attribute = view.hardware.attribute
        self._matches = [Constraint(c.claim, attribute(c.name), c.name) for c in question.matches]
        self._distincts = [
            Constraint(c.claim, attribute(c.name), c.name) for c in question.distincts
        ]

    def run(self) -> Tables:
        question = self._question
        requests: list[Request] = []
        for wanted in question.requests:
            if wanted.opens_claim:
                self._finish_claims(requests, wanted.claim)
            requests.append(self._request(wanted))
        self._finish_claims(requests, len(question.claims))
        return Tables(
            self._view,
            question,
            tuple(requests),
            tuple(self._matches),
            tuple(self._distincts),
            tuple(self._charges),
            tuple(self._capacity_blocked),
            tuple([constraint.attribute.all_values for constraint in self._matches]),
            self._alignment(requests),
        )

    def _alignment(self, requests: list[Request]) -> tuple[AlignedRequests, ...]:
        """What is stated about the places of devices, classes included."""
        own = self._question.stated
        if own.misstated is not None:
            claim = self._question.claims[own.misstated.claim]
            text = own.misstated.text
            raise PreparationError(f"claim {claim_name(claim)}: {text}", claim, why=text)
        groups: dict[AlignedRequests, None] = {}
        for request in requests:
            if request.claim in own.by_claim:
                continue
            for alternative in request.alternatives:
                device_class = alternative.device_class
                if not device_class.spec.config:
                    continue
                name = device_class.metadata.name
                try:
                    for ladder in of_class(device_class):
                        stated = AlignedRequests(ladder, (request.claim,), origin=f"class {name}")
                        groups[stated] = None
                except AlignmentError as error:
                    claim = self._question.claims[request.claim]
                    raise _flawed(claim, alternative.name, f"class {name}: {error}") from error
        return (*own.groups, *groups) if groups else own.groups

    def _finish_claims(self, requests: list[Request], before: int) -> None:
        """Look at claims as a whole once all their requests are there."""
        first = requests[-1].claim if requests else 0
        for index in range(first, before):
            claim = self._question.claims[index]
            mine = [request for request in requests if request.claim == index]
            least = sum([min([a.number for a in request.alternatives]) for request in mine])
            if least > MAX_ENTRIES:
                text = f"needs {least} devices, a claim may have {MAX_ENTRIES}"
                raise PreparationError(
                    f"claim {claim_name(claim)} {text}", claim, defect=Defect.TOO_MANY, why=text
                )
            pointless = self._question.pointless[index]
            if pointless is not None:
                text = f"constraint #{pointless}: no attribute is compared"
                raise PreparationError(f"claim {claim_name(claim)}, {text}", claim, why=text)

    def _request(self, wanted: WantedRequest) -> Request:
        request, claim = wanted.request, self._question.claims[wanted.claim]
        is_admin = False
        if request.exactly is not None:
            admin = request.exactly.admin_access
            if admin is not None and not self._features.admin_access:
                text = "asks for admin access, which is switched off"
                raise self._problem(wanted.alternatives[0], text, defect=Defect.FEATURE)
            is_admin = bool(admin)
        elif not wanted.alternatives:
            raise _flawed(claim, request.name, "has neither exactly nor firstAvailable")
        elif not self._features.prioritized_list:
            text = "has alternatives, but prioritized lists are switched off"
            raise _flawed(claim, request.name, text, Defect.FEATURE)
        alternatives = tuple([self._alternative(w, is_admin) for w in wanted.alternatives])
        listed = request.exactly is None
        return Request(wanted.claim, request.name, alternatives, listed, wanted.opens_claim)

    def _alternative(self, wanted: WantedDevices, admin: bool) -> Alternative:
        view, hardware, spec = self._view, self._hardware, wanted.spec
        device_class, selectors = self._selectors(wanted)
        selected, failing = hardware.select(selectors)
        if not self._features.binding_conditions:
            # Devices with binding conditions are passed over before their selectors are looked at.
            selected, failing = selected & ~hardware.binding, failing & ~hardware.binding
        if self._judgement is Judgement.HOPEFUL:
            selected |= failing
        eligible = selected & hardware.selects_node
        charge = self._charge(wanted)
        candidates = eligible & ~self._capacity_blocked[charge] & view.tolerated(spec.tolerations)
        candidates &= ~view.usage.overcommitted
        if not self._features.partitionable_devices:
            candidates &= ~hardware.consumers
        if not admin:
            candidates &= ~view.usage.in_use
        unjudged = failing if admin else failing & ~view.usage.in_use
        sequence: tuple[int, ...] | None = None
        if spec.allocation_mode == "All":
            sequence = self._all_devices(wanted, selectors, eligible, failing, charge)
            number = len(sequence)
        elif spec.allocation_mode == "ExactCount":
            number = spec.count
            candidates = self._with_attributes(candidates, wanted)
        else:
            raise self._problem(wanted, f"unsupported allocation mode {spec.allocation_mode!r}")
        strict = self._judgement is Judgement.STRICT
        return Alternative(
            claim=wanted.claim,
            request=wanted.request,
            index=wanted.index,
            name=wanted.name,
            spec=spec,
            device_class=device_class,
            selectors=selectors,
            number=number,
            admin=admin,
            candidates=candidates,
            failing=unjudged if strict and sequence is None else 0,
            unjudged=unjudged,
            sequence=sequence,
            charge=charge,
            matches=wanted.matches,
            distincts=wanted.distincts,
        )

    def _selectors(self, wanted: WantedDevices) -> tuple[DeviceClass, tuple[str, ...]]:
        """The class and the expressions of class and request, read again only if the class has changed."""
        name = wanted.spec.device_class_name
        if not name:
            raise self._problem(wanted, "no device class is named")
        device_class = self._view.device_class(name)
        if device_class is None:
            text = f"device class {name} does not exist"
            raise self._problem(wanted, text, defect=Defect.CLASS)
        if wanted.selectors is not None and wanted.selectors[0] is device_class:
            return wanted.selectors
        expressions = []
        for position, selector in enumerate((*device_class.spec.selectors, *wanted.spec.selectors)):
            if selector.cel is None:
                text = f"selector #{position} is not a CEL expression"
                raise self._problem(wanted, text, defect=Defect.SELECTOR)
            expressions.append(selector.cel.expression)
        wanted.selectors = (device_class, tuple(expressions))
        return wanted.selectors

    def _charge(self, wanted: WantedDevices) -> int:
        if wanted.spec.capacity is not None and not self._features.consumable_capacity:
            text = "asks for capacity, but consumable capacity is switched off"
            raise self._problem(wanted, text, defect=Defect.FEATURE)
        known = self._charge_ids.get(wanted.amounts)
        if known is None:
            known = self._charge_ids[wanted.amounts] = len(self._charges)
            charges = self._hardware.charges(wanted.amounts)
            self._charges.append(charges)
            self._capacity_blocked.append(without_capacity(self._view, charges))
        return known

    def _all_devices(
        self,
        wanted: WantedDevices,
        selectors: tuple[str, ...],
        eligible: int,
        failing: int,
        charge: int,
    ) -> tuple[int, ...]:
        if self._view.problems:
            problem = self._view.problems[0]
            text = f"asks for all devices, but pool {problem.id} is {problem.state.value}: {problem.reason}"
            raise self._problem(wanted, text, defect=Defect.POOL)
        if failing and self._judgement is Judgement.STRICT:
            first = (failing & -failing).bit_length() - 1
            text = f"device {self._view.id_of(first)}: {self._hardware.failure(selectors, first)}"
            raise self._problem(wanted, text, failing, Defect.SELECTOR)
        return tuple(positions(eligible & ~self._capacity_blocked[charge]))

    def _with_attributes(self, devices: int, wanted: WantedDevices) -> int:
        """The devices among these that have every compared attribute."""
        for index in wanted.matches:
            devices &= self._matches[index].attribute.present
        for index in wanted.distincts:
            devices &= self._distincts[index].attribute.present
        return devices

    def _problem(
        self, wanted: WantedDevices, text: str, devices: int = 0, defect: Defect = Defect.CLAIM
    ) -> PreparationError:
        claim = self._question.claims[wanted.claim]
        return _flawed(claim, wanted.name, text, defect, devices)


def _flawed(
    claim: ResourceClaim, request: str, text: str, defect: Defect = Defect.CLAIM, devices: int = 0
) -> PreparationError:
    where = f"claim {claim_name(claim)}, request {request}"
    return PreparationError(f"{where}: {text}", claim, request, devices, defect, text)

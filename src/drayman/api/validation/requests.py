"""What a claim asks for: requests, constraints and configuration. Claims and templates share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from drayman.api.resource import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from drayman.api.validation.alignment import check_claim_annotation
from drayman.api.validation.containers import Errors, check_list, check_set
from drayman.api.validation.field_errors import invalid, not_supported, required
from drayman.api.validation.names import device_class_name, dns_label, fully_qualified_name
from drayman.api.validation.selectors import (
    MAX_CONFIGS,
    SelectorChecker,
    check_configuration,
    check_selectors,
)
from drayman.api.validation.taints import check_tolerations

MAX_REQUESTS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_ALTERNATIVES: Final = 8
ALLOCATION_MODES: Final = ("All", "ExactCount")

_ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated"
    " by '/'"
)


@dataclass(frozen=True, slots=True)
class RequestNames:
    """The requests of a claim and the alternatives of each, by name."""

    alternatives: dict[str, frozenset[str]]

    @staticmethod
    def of(claim: DeviceClaim) -> RequestNames:
        return RequestNames(
            {
                request.name: frozenset(sub.name for sub in request.first_available)
                for request in claim.requests
            }
        )

    def __contains__(self, reference: str) -> bool:
        request, slash, alternative = reference.partition("/")
        known = self.alternatives.get(request)
        return known is not None and (not slash or alternative in known)

    def check_annotation(
        self, annotations: Mapping[str, str], path: str, old: Mapping[str, str] | None = None
    ) -> Errors:
        """What an annotation states about the alignment of the requests."""
        known = tuple(self.alternatives)
        yield from check_claim_annotation(annotations, path, self.__contains__, known, old)

    def check(self, reference: str, path: str) -> Errors:
        """A reference to a request, or to a request and one of its alternatives."""
        segments = reference.split("/")
        if len(segments) > 2:
            yield invalid(path, reference, _REFERENCE)
            return
        for segment in segments:
            yield from dns_label(segment, path)
        if reference not in self:
            yield invalid(path, reference, _REFERENCE)

    def check_all(self, references: tuple[str, ...], path: str) -> Errors:
        yield from check_set(references, MAX_REQUESTS, self.check, lambda name: name, path)


def check_device_claim(claim: DeviceClaim, selectors: SelectorChecker, path: str) -> Errors:
    names = RequestNames.of(claim)

    def check_config(config: DeviceClaimConfiguration, path: str) -> Errors:
        yield from names.check_all(config.requests, f"{path}.requests")
        yield from check_configuration(config, path)

    yield from check_set(
        claim.requests,
        MAX_REQUESTS,
        partial(_request, selectors),
        lambda request: request.name,
        f"{path}.requests",
    )
    yield from check_list(
        claim.constraints, MAX_CONSTRAINTS, partial(_constraint, names), f"{path}.constraints"
    )
    yield from check_list(claim.config, MAX_CONFIGS, check_config, f"{path}.config")


def _request(selectors: SelectorChecker, request: DeviceRequest, path: str) -> Errors:
    yield from dns_label(request.name, f"{path}.name")
    if request.exactly is not None and request.first_available:
        yield invalid(path, None, f"{_ONE_KIND}, but multiple fields are set")
    elif request.exactly is not None:
        yield from _wanted(request.exactly, selectors, f"{path}.exactly")
    elif request.first_available:

        def check(alternative: DeviceSubRequest, path: str) -> Errors:
            yield from dns_label(alternative.name, f"{path}.name")
            yield from _wanted(alternative, selectors, path)

        yield from check_set(
            request.first_available,
            MAX_ALTERNATIVES,
            check,
            lambda alternative: alternative.name,
            f"{path}.firstAvailable",
        )
    else:
        yield required(path, _ONE_KIND)


def _wanted(
    request: ExactDeviceRequest | DeviceSubRequest, selectors: SelectorChecker, path: str
) -> Errors:
    yield from device_class_name(request.device_class_name, f"{path}.deviceClassName")
    yield from check_selectors(request.selectors, selectors, f"{path}.selectors")
    yield from _count(request, path)
    yield from check_tolerations(request.tolerations, f"{path}.tolerations")


def _count(request: ExactDeviceRequest | DeviceSubRequest, path: str) -> Errors:
    match request.allocation_mode:
        case "ExactCount":
            if request.count <= 0:
                yield invalid(f"{path}.count", request.count, "must be greater than zero")
        case "All":
            if request.count != 0:
                detail = "must not be specified when allocationMode is 'All'"
                yield invalid(f"{path}.count", request.count, detail)
        case mode:
            yield not_supported(f"{path}.allocationMode", mode, ALLOCATION_MODES)


def _constraint(names: RequestNames, constraint: DeviceConstraint, path: str) -> Errors:
    """A constraint. With both attributes set only the first counts, as in upstream."""
    yield from names.check_all(constraint.requests, f"{path}.requests")
    if constraint.match_attribute is not None:
        yield from fully_qualified_name(constraint.match_attribute, f"{path}.matchAttribute")
    elif constraint.distinct_attribute is not None:
        yield from fully_qualified_name(constraint.distinct_attribute, f"{path}.distinctAttribute")
    else:
        # Not the actual problem, but what upstream says.
        yield required(
            path,
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields'
            " are set",
        )

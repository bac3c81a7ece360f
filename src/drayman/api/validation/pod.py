"""The parts of a Pod that concern devices. What else a pod must look like is not checked here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.core import (
    Container,
    ContainerClaim,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
)
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
)
from drayman.api.validation.names import dns_label, dns_subdomain

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_UNKNOWN_CONTAINER: Final = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_UNKNOWN_RESOURCE: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or"
    " spec.containers.resources.requests"
)
_NO_FIELD: Final = "[]"
"""What upstream calls the field of an error that is not about a field."""


def validate_pod(pod: Pod) -> list[FieldError]:
    """The errors of a pod about to be created."""
    return [*_claims(pod), *_container_claims(pod.spec)]


def validate_pod_status(pod: Pod) -> list[FieldError]:
    """The errors of a pod's status."""
    return [
        *_claim_statuses(pod.status.resource_claim_statuses, pod.spec),
        *_extended_resource_claim(pod.status.extended_resource_claim_status, pod.spec),
    ]


def _claims(pod: Pod) -> Errors:
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        if pod.spec.resource_claims:
            yield forbidden(_NO_FIELD, "static pods do not support resource claims")
        return
    names: set[str] = set()
    for index, claim in enumerate(pod.spec.resource_claims):
        yield from _claim(claim, names, f"spec.resourceClaims[{index}]")


def _claim(claim: PodResourceClaim, names: set[str], path: str) -> Errors:
    if not claim.name:
        yield required(f"{path}.name")
    elif claim.name in names:
        yield duplicate(f"{path}.name", claim.name)
    else:
        yield from dns_label(claim.name, f"{path}.name")
        names.add(claim.name)
    direct, template = claim.resource_claim_name, claim.resource_claim_template_name
    if direct is not None and template is not None:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        yield invalid(path, claim, detail)
    if direct is None and template is None:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid(path, claim, detail)
    for name, value in (("resourceClaimName", direct), ("resourceClaimTemplateName", template)):
        if value is not None:
            yield from dns_subdomain(value, f"{path}.{name}")


def _containers(spec: PodSpec) -> Iterator[tuple[str, Container]]:
    for index, container in enumerate(spec.init_containers):
        yield f"spec.initContainers[{index}]", container
    for index, container in enumerate(spec.containers):
        yield f"spec.containers[{index}]", container


def _container_claims(spec: PodSpec) -> Errors:
    known = {claim.name for claim in spec.resource_claims if claim.name}
    # One text for all references: each would be as long as the list of claims.
    choices = f": {', '.join(sorted(known))}" if known else " which is empty"
    unknown = f"must be one of the names in pod.spec.resourceClaims{choices}"
    if spec.resources is not None and spec.resources.claims:
        yield forbidden("spec.resources.claims", "claims may not be set for Resources at pod-level")
    for path, container in _containers(spec):
        references = container.resources.claims
        yield from _references(references, known, unknown, f"{path}.resources.claims")


def _references(
    claims: tuple[ContainerClaim, ...], known: set[str], unknown: str, path: str
) -> Errors:
    """References to the pod's claims, `unknown` is the detail for others. A claim as a whole overlaps with each of its requests."""
    seen: dict[str, set[str]] = {}
    for index, claim in enumerate(claims):
        field = f"{path}[{index}]"
        if not claim.name:
            yield required(field)
            continue
        yield from _overlap(claim, seen.setdefault(claim.name, set()), field)
        if claim.name not in known:
            yield not_found(field, claim.name, unknown)


def _overlap(claim: ContainerClaim, requests: set[str], path: str) -> Errors:
    """What a reference has in common with earlier ones to its claim, to whose requests it is added unless all of the claim is there."""
    name, request = claim.name, claim.request
    if "" in requests:
        yield duplicate(path, name)
        return
    if request:
        yield from dns_label(request, f"{path}.request")
        if request in requests:
            yield duplicate(path, f"{name}/{request}")
    else:
        yield from (duplicate(path, name) for _ in requests)
    requests.add(request)


def _claim_statuses(statuses: tuple[PodResourceClaimStatus, ...], spec: PodSpec) -> Errors:
    known = {claim.name for claim in spec.resource_claims}
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        path = f"status.resourceClaimStatuses[{index}]"
        if status.name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{path}.name", status.name, detail)
        if status.name in seen:
            yield duplicate(f"{path}.name", status.name)
        seen.add(status.name)
        if status.resource_claim_name is not None:
            yield from dns_subdomain(status.resource_claim_name, f"{path}.resourceClaimName")


def _extended_resource_claim(
    status: PodExtendedResourceClaimStatus | None, spec: PodSpec
) -> Errors:
    if status is None:
        return
    path = "status.extendedResourceClaimStatus"
    # A limit without a request is a request of the same amount.
    requested = {
        c.name: c.resources.requests.keys() | c.resources.limits.keys()
        for _, c in _containers(spec)
    }
    if not status.request_mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(status.request_mappings):
        field = f"{path}.requestMappings[{index}]"
        if mapping.container_name not in requested:
            yield invalid(f"{field}.containerName", mapping.container_name, _UNKNOWN_CONTAINER)
        elif mapping.resource_name not in requested[mapping.container_name]:
            yield invalid(f"{field}.resourceName", mapping.resource_name, _UNKNOWN_RESOURCE)
        yield from dns_label(mapping.request_name, f"{path}.requestName")
        key = (mapping.container_name, mapping.resource_name, mapping.request_name)
        if key in seen:
            for name, value in zip(
                ("containerName", "resourceName", "requestName"), key, strict=True
            ):
                yield duplicate(f"{field}.{name}", value)
        seen.add(key)
    if status.resource_claim_name:
        yield from dns_subdomain(status.resource_claim_name, f"{path}.resourceClaimName")
    else:
        yield required(f"{path}.resourceClaimName")

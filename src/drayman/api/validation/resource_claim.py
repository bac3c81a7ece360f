"""ResourceClaim and ResourceClaimTemplate: creation, update, admin access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.codec import to_dict
from drayman.api.core import Namespace
from drayman.api.resource import DeviceClaim, ResourceClaim, ResourceClaimTemplate
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import FieldError, forbidden, internal, invalid
from drayman.api.validation.metadata import (
    IMMUTABLE,
    check_metadata,
    check_metadata_update,
    check_template_metadata,
)
from drayman.api.validation.requests import RequestNames, check_device_claim
from drayman.api.validation.selectors import SelectorChecker

ADMIN_ACCESS_LABEL: Final = "resource.kubernetes.io/admin-access"
ADMIN_ACCESS_DETAIL: Final = f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"


def validate_claim(claim: ResourceClaim, selectors: SelectorChecker) -> list[FieldError]:
    """The errors of a claim about to be created. Its status does not count: creation clears it."""
    return [
        *check_metadata(claim.metadata, namespaced=True),
        *_alignment(claim.metadata.annotations, claim.spec.devices, "metadata.annotations"),
        *check_device_claim(claim.spec.devices, selectors, "spec.devices"),
    ]


def _alignment(
    annotations: Mapping[str, str],
    claim: DeviceClaim,
    path: str,
    old: Mapping[str, str] | None = None,
) -> Errors:
    yield from RequestNames.of(claim).check_annotation(annotations, path, old)


def validate_claim_update(new: ResourceClaim, old: ResourceClaim) -> list[FieldError]:
    """The spec may not change, so nothing else about it is reported again."""
    errors = [
        *check_metadata(new.metadata, namespaced=True),
        *check_metadata_update(new.metadata, old.metadata),
        *_alignment(
            new.metadata.annotations,
            old.spec.devices,
            "metadata.annotations",
            old.metadata.annotations,
        ),
    ]
    if new.spec != old.spec:
        errors.append(invalid("spec", new.spec, IMMUTABLE))
    return errors


def validate_template(
    template: ResourceClaimTemplate, selectors: SelectorChecker
) -> list[FieldError]:
    """The errors of a template about to be created."""
    return [
        *check_metadata(template.metadata, namespaced=True),
        *_template_spec(template, selectors),
    ]


def validate_template_update(
    new: ResourceClaimTemplate, old: ResourceClaimTemplate, selectors: SelectorChecker
) -> list[FieldError]:
    """Unlike a claim, a template is checked in full again before its spec is compared."""
    errors = [
        *validate_template(new, selectors),
        *check_metadata_update(new.metadata, old.metadata),
    ]
    if new.spec != old.spec:
        # Upstream shows the metadata of the future claim among the members of the spec.
        shown = {**to_dict(new.spec.metadata), "Spec": new.spec.spec}
        errors.append(invalid("spec", shown, IMMUTABLE))
    return errors


def _template_spec(template: ResourceClaimTemplate, selectors: SelectorChecker) -> Errors:
    spec = template.spec
    yield from check_template_metadata(spec.metadata, "spec.metadata")
    yield from _alignment(spec.metadata.annotations, spec.spec.devices, "spec.metadata.annotations")
    yield from check_device_claim(template.spec.spec.devices, selectors, "spec.spec.devices")


def check_admin_access(
    value: ResourceClaim | ResourceClaimTemplate, namespace: Namespace | None
) -> Errors:
    """Admin access is for namespaces with a certain label; `namespace` is None where it could not be looked up."""
    if isinstance(value, ResourceClaim):
        yield from _admin_requests(value.spec.devices, namespace)
    else:
        yield from _admin_requests(value.spec.spec.devices, namespace)


def check_admin_access_status(
    new: ResourceClaim, old: ResourceClaim, namespace: Namespace | None
) -> Errors:
    """Admin access that a status newly grants. What was granted already is left alone."""
    if _first_admin_result(old) is None and (index := _first_admin_result(new)) is not None:
        path = f"status.allocation.devices.results[{index}].adminAccess"
        yield from _admin_allowed(namespace, path)


def _first_admin_result(claim: ResourceClaim) -> int | None:
    found = enumerate(claim.status.results)
    return next((i for i, result in found if result.admin_access), None)


def _admin_requests(claim: DeviceClaim, namespace: Namespace | None) -> Errors:
    # The field is upstream's, for templates too, although theirs lies one level deeper.
    for index, request in enumerate(claim.requests):
        if request.exactly is not None and request.exactly.admin_access:
            yield from _admin_allowed(namespace, f"spec.devices.requests[{index}].adminAccess")
            return


def _admin_allowed(namespace: Namespace | None, path: str) -> Errors:
    if namespace is None:
        yield internal(path, "the namespace could not be looked up")
    elif namespace.metadata.labels.get(ADMIN_ACCESS_LABEL) != "true":
        yield forbidden(path, ADMIN_ACCESS_DETAIL)

"""Validation: which rules of the API an object breaks.

One entry for each kind of request the API server knows: creation, update and update of the status. They return field errors,
never raise them, and never stop at the first. Objects are expected with their defaults filled in.
"""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct
from drayman.api.validation import (
    claim_status,
    device_class,
    resource_claim,
    resource_slice,
    taints,
)
from drayman.api.validation.alignment import check_pod_annotation
from drayman.api.validation.claim_status import without_stale_device_status
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import ErrorKind, FieldError
from drayman.api.validation.pod import validate_pod, validate_pod_status
from drayman.api.validation.resource_claim import check_admin_access, check_admin_access_status
from drayman.api.validation.selectors import SelectorChecker

__all__ = [
    "ErrorKind",
    "FieldError",
    "SelectorChecker",
    "check_admin_access",
    "check_admin_access_status",
    "validate",
    "validate_status",
    "validate_update",
    "without_stale_device_status",
]


def validate(value: ApiStruct, selectors: SelectorChecker) -> list[FieldError]:
    """The errors of an object about to be created. Raises TypeError for a kind without rules here."""
    match value:
        case DeviceClass():
            return device_class.validate(value, selectors)
        case ResourceSlice():
            return resource_slice.validate(value)
        case ResourceClaim():
            return resource_claim.validate_claim(value, selectors)
        case ResourceClaimTemplate():
            return resource_claim.validate_template(value, selectors)
        case DeviceTaintRule():
            return taints.validate_rule(value)
        case Pod():
            return [*validate_pod(value), *_alignment(value)]
    raise TypeError(f"no rules for {type(value).__name__}")


def _alignment(pod: Pod) -> Errors:
    entries = [entry.name for entry in pod.spec.resource_claims]
    yield from check_pod_annotation(pod.metadata.annotations, "metadata.annotations", entries)


def validate_update(new: ApiStruct, old: ApiStruct, selectors: SelectorChecker) -> list[FieldError]:
    """The errors of replacing `old` by `new`. Raises TypeError for a kind without rules here."""
    match new, old:
        case DeviceClass(), DeviceClass():
            return device_class.validate_update(new, old, selectors)
        case ResourceSlice(), ResourceSlice():
            return resource_slice.validate_update(new, old)
        case ResourceClaim(), ResourceClaim():
            return resource_claim.validate_claim_update(new, old)
        case ResourceClaimTemplate(), ResourceClaimTemplate():
            return resource_claim.validate_template_update(new, old, selectors)
        case DeviceTaintRule(), DeviceTaintRule():
            return taints.validate_rule_update(new, old)
    raise TypeError(f"no rules for updating {type(old).__name__} to {type(new).__name__}")


def validate_status(new: ApiStruct, old: ApiStruct) -> list[FieldError]:
    """The errors of replacing the status of `old` by that of `new`. Raises TypeError for a kind without rules here."""
    match new, old:
        case ResourceClaim(), ResourceClaim():
            return claim_status.validate(new, old)
        case DeviceTaintRule(), DeviceTaintRule():
            return taints.validate_rule_status(new, old)
        case Pod(), Pod():
            return validate_pod_status(new)
    raise TypeError(f"no rules for the status of {type(new).__name__}")

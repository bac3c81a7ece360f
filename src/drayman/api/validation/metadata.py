"""Object metadata and conditions: the rules that hold for every kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from drayman.api import formats
from drayman.api.meta import Condition, ObjectMeta, OwnerReference, TemplateMeta
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_long,
)
from drayman.api.validation.names import dns_label, label_key, label_value

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
ANNOTATIONS_LENGTH: Final = 256 * 1024
CONDITION_REASON_LENGTH: Final = 1024
CONDITION_MESSAGE_LENGTH: Final = 32 * 1024
CONDITION_STATUSES: Final = ("False", "True", "Unknown")

_GENERATED_SUFFIX: Final = "xxxxx"
_GENERATED_BASE_LENGTH: Final = 63 - len(_GENERATED_SUFFIX)
_EXCLUSIVE_FINALIZERS: Final = ("orphan", "foregroundDeletion")
_STANDARD_FINALIZERS: Final = ("kubernetes", *_EXCLUSIVE_FINALIZERS)
_UPSTREAM_PATHS: Final = {"uid": "uID"}

NameProblems = Callable[[str], formats.Problems]


def check_metadata(
    metadata: ObjectMeta,
    *,
    namespaced: bool,
    name_problems: NameProblems = formats.dns_subdomain_problems,
    check_base: bool = True,
) -> Errors:
    """Metadata of an object about to be created.

    A missing namespace is not an error: the request's address holds it. A name that will be generated is checked as it would turn
    out; `check_base` adds a check of the part given, which most kinds have.
    """
    path = "metadata"
    name = metadata.name
    if base := metadata.generate_name:
        if check_base:
            whole = f"{base[:-2]}a" if len(base) > 1 and base.endswith("-") else base
            yield from invalid_each(f"{path}.generateName", base, name_problems(whole))
        name = name or base[:_GENERATED_BASE_LENGTH] + _GENERATED_SUFFIX
    if name:
        yield from invalid_each(f"{path}.name", name, name_problems(name))
    else:
        yield required(f"{path}.name", "name or generateName is required")
    if metadata.namespace:
        yield from _namespace(metadata.namespace, namespaced, f"{path}.namespace")
    if metadata.generation < 0 and namespaced:
        # For the other kinds the server sets the generation itself.
        yield invalid(f"{path}.generation", metadata.generation, NOT_NEGATIVE)
    yield from _common(metadata, path)


def _namespace(namespace: str, namespaced: bool, path: str) -> Errors:
    if namespaced:
        yield from dns_label(namespace, path)
    else:
        yield forbidden(path, "not allowed on this type")


def check_metadata_update(new: ObjectMeta, old: ObjectMeta) -> Errors:
    """What may not change in metadata. Values the server keeps by itself may be left out."""
    path = "metadata"
    if new.name != old.name:
        yield invalid(f"{path}.name", new.name, IMMUTABLE)
    if new.namespace and new.namespace != old.namespace:
        yield invalid(f"{path}.namespace", new.namespace, IMMUTABLE)
    if new.uid and new.uid != old.uid:
        yield invalid(f"{path}.uid", new.uid, IMMUTABLE)
    if new.deletion_timestamp is not None and old.deletion_timestamp is None:
        yield invalid(f"{path}.deletionTimestamp", new.deletion_timestamp, IMMUTABLE)
    grace = new.deletion_grace_period_seconds
    if grace is not None and grace != old.deletion_grace_period_seconds:
        yield invalid(f"{path}.deletionGracePeriodSeconds", grace, IMMUTABLE)
    added = sorted(set(new.finalizers) - set(old.finalizers))
    if added and old.deletion_timestamp is not None:
        listed = ", ".join(json.dumps(finalizer, ensure_ascii=False) for finalizer in added)
        detail = (
            "no new finalizers can be added if the object is being deleted, found new finalizers"
            f" []string{{{listed}}}"
        )
        yield forbidden(f"{path}.finalizers", detail)
    yield from _common(new, path)


def _common(metadata: ObjectMeta, path: str) -> Errors:
    if metadata.labels:
        yield from check_labels(metadata.labels, f"{path}.labels")
    if metadata.annotations:
        yield from check_annotations(metadata.annotations, f"{path}.annotations")
    if metadata.owner_references:
        yield from _owner_references(metadata.owner_references, f"{path}.ownerReferences")
    if metadata.finalizers:
        yield from _finalizers(metadata.finalizers, f"{path}.finalizers")


def check_labels(labels: Mapping[str, str], path: str) -> Errors:
    for key, value in labels.items():
        yield from label_key(key, path)
        yield from label_value(value, path)


def check_annotations(annotations: Mapping[str, str], path: str) -> Errors:
    """Keys as of labels, but of any case; a limit on all of them together."""
    for key in annotations:
        yield from invalid_each(path, key, formats.label_key_problems(key.lower()))
    size = sum(
        formats.byte_length(key) + formats.byte_length(value) for key, value in annotations.items()
    )
    if size > ANNOTATIONS_LENGTH:
        yield too_long(path, ANNOTATIONS_LENGTH)


def _owner_references(references: tuple[OwnerReference, ...], path: str) -> Errors:
    # As upstream, errors of all references are reported on the list.
    for reference in references:
        yield from _owner_reference(reference, path)
    first, *others = [
        f"{reference.kind}/{reference.name}" for reference in references if reference.controller
    ] or [""]
    for other in others:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for'
            f" {first} and {other}"
        )
        yield invalid(path, references, detail)


def _owner_reference(reference: OwnerReference, path: str) -> Errors:
    version = reference.api_version
    if not version or version.count("/") > 1 or version.endswith("/"):
        yield invalid(f"{path}.apiVersion", version, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not getattr(reference, name):
            yield invalid(f"{path}.{name}", "", "must not be empty")
    if (reference.api_version, reference.kind) == ("v1", "Event"):
        yield invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner")


def _finalizers(finalizers: tuple[str, ...], path: str) -> Errors:
    for index, finalizer in enumerate(finalizers):
        yield from label_key(finalizer, path)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{path}[{index}]", finalizer, detail)
    if set(_EXCLUSIVE_FINALIZERS) <= set(finalizers):
        detail = f"finalizer {' and '.join(_EXCLUSIVE_FINALIZERS)} cannot be both set"
        yield invalid(path, finalizers, detail)


def check_template_metadata(metadata: TemplateMeta, path: str) -> Errors:
    """Metadata of a template for other objects: labels and annotations, nothing else."""
    yield from check_annotations(metadata.annotations, f"{path}.annotations")
    yield from check_labels(metadata.labels, f"{path}.labels")
    empty = TemplateMeta()
    for name, wire in zip(
        TemplateMeta.__struct_fields__, TemplateMeta.__struct_encode_fields__, strict=True
    ):
        if name in ("labels", "annotations") or getattr(metadata, name) == getattr(empty, name):
            continue
        yield forbidden(f"{path}.{_UPSTREAM_PATHS.get(wire, wire)}", "cannot be set")


def check_conditions(conditions: tuple[Condition, ...], path: str) -> Errors:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if condition.type_ in seen:
            yield duplicate(f"{path}[{index}].type", condition.type_)
        seen.add(condition.type_)
        yield from _condition(condition, f"{path}[{index}]")


def _condition(condition: Condition, path: str) -> Errors:
    yield from label_key(condition.type_, f"{path}.type")
    if condition.status not in CONDITION_STATUSES:
        yield not_supported(f"{path}.status", condition.status, CONDITION_STATUSES)
    if condition.observed_generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid(f"{path}.observedGeneration", condition.observed_generation, detail)
    if condition.last_transition_time is None:
        yield required(f"{path}.lastTransitionTime")
    if condition.reason:
        problems = formats.condition_reason_problems(condition.reason)
        yield from invalid_each(f"{path}.reason", condition.reason, problems)
        if formats.byte_length(condition.reason) > CONDITION_REASON_LENGTH:
            yield too_long(f"{path}.reason", CONDITION_REASON_LENGTH)
    else:
        yield required(f"{path}.reason")
    if formats.byte_length(condition.message) > CONDITION_MESSAGE_LENGTH:
        yield too_long(f"{path}.message", CONDITION_MESSAGE_LENGTH)

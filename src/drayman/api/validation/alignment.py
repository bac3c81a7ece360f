"""What users state about the alignment of devices: the annotation `drayman.dev/align`, and configuration for the driver `drayman.dev`.

An annotation that an object has already is not checked again: other API servers accept any text, and such an object must not become
impossible to change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from drayman.api.alignment import (
    ALIGN,
    DRIVER,
    AlignmentError,
    StatedGroup,
    ladder_of_parameters,
    stated_groups,
)
from drayman.api.near_names import did_you_mean
from drayman.api.resource import OpaqueDeviceConfiguration
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import invalid


def check_claim_annotation(
    annotations: Mapping[str, str],
    path: str,
    knows: Callable[[str], bool],
    known: Collection[str],
    old: Mapping[str, str] | None = None,
) -> Errors:
    """The annotation of a claim. `knows` says whether a text refers to one of its requests, `known` has their names."""

    def problem(group: StatedGroup) -> str:
        for name in group.requests:
            if not knows(name):
                return (
                    f"names {name}, which is not a request of the claim{did_you_mean(name, known)}"
                )
        return ""

    yield from _check(annotations, path, problem, old)


def check_pod_annotation(
    annotations: Mapping[str, str],
    path: str,
    entries: Collection[str],
    old: Mapping[str, str] | None = None,
) -> Errors:
    """The annotation of a pod. Which requests its claims have is not known yet."""

    def problem(group: StatedGroup) -> str:
        for name in group.requests:
            entry = name.partition("/")[0]
            if entry not in entries:
                return f"names {entry}, which is not in spec.resourceClaims{did_you_mean(entry, entries)}"
        return ""

    yield from _check(annotations, path, problem, old)


def _check(
    annotations: Mapping[str, str],
    path: str,
    problem: Callable[[StatedGroup], str],
    old: Mapping[str, str] | None,
) -> Errors:
    text = annotations.get(ALIGN)
    if text is None or (old is not None and text == old.get(ALIGN)):
        return
    field = f"{path}[{ALIGN}]"
    try:
        groups = stated_groups(text)
    except AlignmentError as error:
        yield invalid(field, text, str(error))
        return
    for group in groups:
        if why := problem(group):
            yield invalid(field, text, why)


def check_parameters(opaque: OpaqueDeviceConfiguration | None, path: str) -> Errors:
    """Parameters of configuration that is addressed to this scheduler. Those of other drivers are theirs to check."""
    if opaque is None or opaque.driver != DRIVER or not isinstance(opaque.parameters, Mapping):
        return
    try:
        ladder_of_parameters(opaque.parameters)
    except AlignmentError as error:
        yield invalid(f"{path}.parameters", opaque.parameters, str(error))

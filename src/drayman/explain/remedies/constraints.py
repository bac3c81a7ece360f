"""Constraints that cannot be met: a looser one in their place, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.resource import DeviceConstraint
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case
from drayman.explain.remedies.patching import cut, put

_STANDARD: Final = "resource.kubernetes.io/"
_LOOSER: Final = {f"{_STANDARD}pcieRoot": f"{_STANDARD}numaNode"}
"""What devices that are further apart have in common."""


def relaxed_constraints(case: Case) -> Iterator[Remedy]:
    """Constraints that can be replaced by a looser one."""
    for written in case.written:
        for index, constraint in enumerate(written.spec.devices.constraints):
            looser = _LOOSER.get(constraint.match_attribute or "")
            if looser is None:
                continue
            sentence = (
                f"match {_short(looser)} instead of {_short(constraint.match_attribute or '')}"
                f" in {written.title}"
            )
            patch = (put(looser, "devices", "constraints", index, "matchAttribute"),)
            found = case.with_spec(written, sentence, patch)
            if found is not None:
                yield found


def dropped_constraints(case: Case) -> Iterator[Remedy]:
    """Constraints without which the pod fits; all of a claim together if no single one is enough."""
    for written in case.written:
        constraints = written.spec.devices.constraints
        helped = False
        for index, constraint in enumerate(constraints):
            sentence = f"drop {_naming(constraint)} of {written.title}"
            patch = (cut("devices", "constraints", index),)
            found = case.with_spec(written, sentence, patch)
            if found is not None:
                helped = True
                yield found
        if not helped and len(constraints) > 1:
            sentence = f"drop all {len(constraints)} constraints of {written.title}"
            found = case.with_spec(written, sentence, (cut("devices", "constraints"),))
            if found is not None:
                yield found


def _naming(constraint: DeviceConstraint) -> str:
    if constraint.match_attribute:
        text = f"the constraint on equal {_short(constraint.match_attribute)}"
    elif constraint.distinct_attribute:
        text = f"the constraint on different {_short(constraint.distinct_attribute)}"
    else:
        text = "the constraint that compares nothing"
    return f"{text} between {', '.join(constraint.requests)}" if constraint.requests else text


def _short(attribute: str) -> str:
    return attribute.removeprefix(_STANDARD)

"""Constraints that cannot be met: a looser one in their place, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.resource import DeviceConstraint
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case, ClaimText, or_else
from drayman.explain.remedies.patching import cut, put

_STANDARD: Final = "resource.kubernetes.io/"
_LOOSER: Final = {f"{_STANDARD}pcieRoot": f"{_STANDARD}numaNode"}
"""What devices that are further apart have in common."""


def relaxed_constraints(case: Case) -> Iterator[Remedy]:
    """Constraints that can be replaced by a looser one."""
    for written in case.claim_texts:
        for index, constraint in enumerate(written.spec.devices.constraints):
            looser = _LOOSER.get(constraint.match_attribute or "")
            if looser is None:
                continue
            sentence = (
                f"match {_short(looser)} instead of {_short(constraint.match_attribute or '')}"
                f" in {written.title}"
            )
            step = put(looser, "devices", "constraints", index, "matchAttribute")
            yield from case.with_spec(written, sentence, step)


def dropped_constraints(case: Case) -> Iterator[Remedy]:
    """Constraints without which the pod fits; all of a claim together if no single one is enough."""
    for written in case.claim_texts:
        yield from or_else(_without_one(case, written), _without_all(case, written))


def _without_one(case: Case, written: ClaimText) -> Iterator[Remedy]:
    for index, constraint in enumerate(written.spec.devices.constraints):
        sentence = f"drop {_naming(constraint)} of {written.title}"
        yield from case.with_spec(written, sentence, cut("devices", "constraints", index))


def _without_all(case: Case, written: ClaimText) -> Iterator[Remedy]:
    number = len(written.spec.devices.constraints)
    if number > 1:
        sentence = f"drop all {number} constraints of {written.title}"
        yield from case.with_spec(written, sentence, cut("devices", "constraints"))


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

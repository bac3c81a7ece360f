"""Rejections in words. Every line repeats what the search recorded; nothing is inferred."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from drayman.allocator import Kind, Reason, Rejection

KINDS: Final = {
    Kind.NEVER: "the node could not serve it even if nothing were in use",
    Kind.NOT_NOW: "it would fit if enough of what is in use were given back",
    Kind.NOT_HERE: "enough is free, but scattered or misaligned",
}

_DROPPED: Final = {
    Reason.CLASS_SELECTOR: "not of the device class",
    Reason.REQUEST_SELECTOR: "refused by a selector of the request",
    Reason.SELECTOR_FAILED: "on which a selector fails",
    Reason.NODE_SELECTION: "of other nodes",
    Reason.BINDING_CONDITIONS: "with binding conditions, which are switched off",
    Reason.IN_USE: "in use",
    Reason.TAINTED: "with a taint that is not tolerated",
    Reason.CAPACITY: "with too little capacity left",
    Reason.COUNTERS: "part of something that is used up",
    Reason.NO_ATTRIBUTE: "without an attribute that a constraint compares",
}
"""Tests that devices drop out at."""

_VERDICTS: Final = {
    Reason.NO_DEVICES: "the node has no devices",
    Reason.COUNT: "fewer than asked for",
    Reason.CONSTRAINT: "no combination meets the constraint",
    Reason.COMBINATION: "each request could be served alone, not all of them together",
    Reason.TOO_MANY: "more than a claim may have",
}
"""What is wrong with those that are left."""


def funnel(rejections: Iterable[Rejection]) -> Iterator[str]:
    """For each request how many devices drop out at which test, and what is wrong with the rest."""
    for request, group in groupby(rejections, key=lambda rejection: rejection.request):
        steps = list(group)
        first = steps[0]
        yield f"{request}: {first.wanted} wanted, {first.count + first.remaining} devices on the node"
        for step in steps:
            yield f"  {_step(step)}"


def _step(rejection: Rejection) -> str:
    if rejection.reason in _DROPPED:
        return f"{rejection.count:>3} {_DROPPED[rejection.reason]}, {rejection.remaining} left"
    text = _VERDICTS[rejection.reason]
    return f"of {rejection.remaining}: {rejection.detail or text}"

"""Rejections in words. Every sentence repeats what the search recorded; nothing is inferred."""

from __future__ import annotations

from typing import Final

from drayman.allocator import Kind, Reason, Rejection

KINDS: Final = {
    Kind.NEVER: "never: this node could not serve it even if nothing were in use",
    Kind.NOT_NOW: "not now: the node could serve it if enough of what is in use were given back",
    Kind.NOT_HERE: "not here: enough is free, but scattered or misaligned",
}

_REASONS: Final = {
    Reason.NO_DEVICES: "the node has no devices",
    Reason.CLASS_SELECTOR: "not of the device class",
    Reason.REQUEST_SELECTOR: "refused by a selector of the request",
    Reason.SELECTOR_FAILED: "a selector cannot be evaluated on it",
    Reason.NODE_SELECTION: "belong to other nodes",
    Reason.BINDING_CONDITIONS: "have binding conditions, which are switched off",
    Reason.IN_USE: "in use",
    Reason.TAINTED: "have a taint that is not tolerated",
    Reason.CAPACITY: "have too little capacity left",
    Reason.COUNTERS: "are part of something that is used up",
    Reason.NO_ATTRIBUTE: "lack an attribute that a constraint compares",
    Reason.COUNT: "would serve, but are fewer than asked for",
    Reason.CONSTRAINT: "would serve, but no combination meets the constraint",
    Reason.COMBINATION: "would serve this request, but not all requests together",
    Reason.TOO_MANY: "are more than a claim may have",
}


def describe(rejection: Rejection) -> str:
    """One rejection: how many devices, why, and how many are left for how many wanted."""
    text = f"{rejection.count} {_REASONS[rejection.reason]}"
    if rejection.detail:
        text += f" ({rejection.detail})"
    return f"{text}; {rejection.remaining} left, {rejection.wanted} wanted"

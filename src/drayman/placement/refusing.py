"""What the allocator says about a node, in the words of a pod's condition.

Pods that are alike share their verdicts, so a verdict names a claim by its place among the claims of the pod; `name_claims` puts the
names in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from drayman.allocator import Exhausted, Fault, Reason, Refusal, Rejection
from drayman.api.resource import ResourceClaim
from drayman.placement.fit import Verdict

_MARKER: Final = re.compile("\x00([0-9]+)\x00")
_DECISIVE: Final = (
    Reason.COUNT,
    Reason.CONSTRAINT,
    Reason.COMBINATION,
    Reason.TOO_MANY,
    Reason.NO_DEVICES,
)

_WORDS: Final = {
    Reason.CLASS_SELECTOR: "not of the class",
    Reason.REQUEST_SELECTOR: "not selected",
    Reason.SELECTOR_FAILED: "with a selector that fails",
    Reason.NODE_SELECTION: "of other nodes",
    Reason.BINDING_CONDITIONS: "with binding conditions",
    Reason.IN_USE: "in use",
    Reason.TAINTED: "tainted",
    Reason.CAPACITY: "without enough capacity",
    Reason.COUNTERS: "without counters left",
    Reason.NO_ATTRIBUTE: "without the attribute",
}


def devices_verdict(
    outcome: Refusal | Fault | Exhausted, claims: Sequence[ResourceClaim]
) -> Verdict:
    """The verdict of a node whose devices do not serve the claims."""
    if isinstance(outcome, Exhausted):
        return Verdict.refusal(
            f"cannot allocate all claims: the search was given up after {outcome.steps} steps"
        )
    markers = {
        f"{claim.metadata.namespace}/{claim.metadata.name}": f"\x00{index}\x00"
        for index, claim in enumerate(claims)
    }
    if isinstance(outcome, Fault):
        text = outcome.message
        # The longest first: the name of one claim may be how that of another begins.
        for name, marker in sorted(markers.items(), key=lambda item: -len(item[0])):
            text = text.replace(f"claim {name}", f"claim {marker}")
        return Verdict.refusal(text)
    # Other pods may hold what is missing: if less important ones went, there might be enough.
    return Verdict.refusal(
        f"cannot allocate all claims: {_explain(outcome, markers)}", resolvable=True
    )


def name_claims(text: str, claims: Sequence[ResourceClaim]) -> str:
    """The text with the names of this pod's claims."""

    def name(match: re.Match[str]) -> str:
        index = int(match[1])
        return claims[index].metadata.name if index < len(claims) else "of extended resources"

    return _MARKER.sub(name, text)


def _explain(refusal: Refusal, markers: dict[str, str]) -> str:
    parts = []
    by_request = groupby(refusal.rejections, key=lambda r: (r.claim, r.request))
    for (claim, request), group in by_request:
        rejections = list(group)
        if any(rejection.reason in _DECISIVE for rejection in rejections):
            parts.append(
                f"claim {markers.get(claim, claim)}, request {request}: {_funnel(rejections)}"
            )
    return "; ".join(parts) if parts else refusal.kind.value


def _funnel(rejections: Iterable[Rejection]) -> str:
    dropped: dict[str, int] = {}
    ending = ""
    wanted = 0
    for rejection in rejections:
        wanted = rejection.wanted
        if rejection.reason in _WORDS:
            words = _WORDS[rejection.reason]
            dropped[words] = dropped.get(words, 0) + rejection.count
        else:
            ending = _ending(rejection)
    told = ", ".join(f"{count} {words}" for words, count in dropped.items())
    return " and ".join(part for part in (told, ending) if part) or f"{wanted} wanted"


def _ending(rejection: Rejection) -> str:
    match rejection.reason:
        case Reason.NO_DEVICES:
            return "no devices"
        case Reason.COUNT:
            return f"{rejection.remaining} of {max(rejection.wanted, 1)} left"
        case Reason.TOO_MANY:
            return f"{rejection.wanted} are more than a claim can have"
        case Reason.CONSTRAINT if rejection.detail:
            return rejection.detail
        case Reason.CONSTRAINT:
            return f"none of {rejection.remaining} left meets the constraints together with the other requests"
        case _:
            return f"{rejection.remaining} left, but not for all requests together"

"""What the allocator says about a node, as the verdict on a pod.

The words are kube-scheduler's: people and dashboards search for them. The details that they omit are kept alongside as numbers, request by
request, for explanations. Similar pods share their verdicts, so a verdict names a claim by its position among the claims of the pod;
`name_claims` puts the names in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from drayman.allocator import (
    Defect,
    Exhausted,
    Fault,
    Finality,
    Refusal,
    Rejection,
    RejectionReason,
)
from drayman.allocator.problem.tables import claim_name
from drayman.api.claim_generation import POD_CLAIM_NAME
from drayman.api.resource import ResourceClaim
from drayman.placement.fit import Cause, Verdict

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
_MOST_VERDICTS: Final = 1 << 12
_MARKER: Final = re.compile("\x00([0-9]+)\x00")
_DECISIVE: Final = (
    RejectionReason.COUNT,
    RejectionReason.CONSTRAINT,
    RejectionReason.COMBINATION,
    RejectionReason.TOO_MANY,
    RejectionReason.NO_DEVICES,
)
_SELECTING: Final = (
    RejectionReason.CLASS_SELECTOR,
    RejectionReason.REQUEST_SELECTOR,
    RejectionReason.SELECTOR_FAILED,
    RejectionReason.NODE_SELECTION,
)


class Shortage(Struct, frozen=True):
    """What a node lacks for one request, or one of its alternatives."""

    claim: int
    """Its position among the claims to be allocated."""
    request: str
    wanted: int
    matching: int
    """Devices that pass class and selectors."""
    free: int
    """Those of them that could be allocated, each by itself."""
    lost: tuple[tuple[RejectionReason, int], ...]
    """How many of the matching devices each test excludes."""
    lacks: RejectionReason | None
    """What is wrong with the remaining ones; None if there are enough."""
    detail: str = ""

    def lost_to(self, reason: RejectionReason) -> int:
        return sum(number for lost, number in self.lost if lost is reason)


class Flaw(Struct, frozen=True):
    """Why the question could not be answered."""

    defect: Defect
    claim: int | None
    request: str
    why: str


class DevicesVerdict(Verdict, frozen=True, eq=False):
    """A refusal for want of devices. Like all verdicts, equal ones are the same object."""

    kind: Finality | None = None
    """How final it is; None if the question could not be answered."""
    shortages: tuple[Shortage, ...] = ()
    flaw: Flaw | None = None

    @property
    def is_temporary(self) -> bool:
        """Whether the devices would suffice if nothing were in use."""
        return self.kind in (Finality.NOT_NOW, Finality.NOT_HERE)

    @property
    def least_missing(self) -> int:
        """The minimum number of devices that others would have to give back: fewer make no difference."""
        return min((_missing(shortage) for shortage in decisive(self.shortages)), default=1)


@lru_cache(maxsize=_MOST_VERDICTS)
def _refused(
    kind: Finality | None, shortages: tuple[Shortage, ...], flaw: Flaw | None = None
) -> DevicesVerdict:
    # Other pods may hold what is missing: evicting less important ones may help. It does not help if the devices never existed.
    resolvable = flaw is None and kind is not Finality.NEVER
    reasons = (CANNOT_ALLOCATE,)
    return DevicesVerdict(False, Cause.DEVICES, reasons, resolvable, kind, shortages, flaw)


def devices_verdict(
    outcome: Refusal | Fault | Exhausted, claims: Sequence[ResourceClaim]
) -> Verdict:
    """The verdict of a node whose devices do not serve the claims."""
    if isinstance(outcome, Exhausted):
        text = f"{CANNOT_ALLOCATE}: the search was given up after {outcome.steps} steps"
        return Verdict.refusal(Cause.SEARCH_LIMIT, text)
    places = {claim_name(claim): index for index, claim in enumerate(claims)}
    if isinstance(outcome, Fault):
        why = outcome.why or _with_markers(outcome.message, places)
        flaw = Flaw(outcome.defect, places.get(outcome.claim), outcome.request, why)
        if outcome.refusal is None:
            return _refused(None, (), flaw)
        return _refused(outcome.refusal.kind, _shortages(outcome.refusal, places), flaw)
    return _refused(outcome.kind, _shortages(outcome, places))


def claim_marker(index: int) -> str:
    """A placeholder for the name of a claim in a text that pods share."""
    return f"\x00{index}\x00"


def name_claims(text: str, claims: Sequence[ResourceClaim]) -> str:
    """The text with the names of this pod's claims."""

    def name(match: re.Match[str]) -> str:
        index = int(match[1])
        return title_of(claims[index]) if index < len(claims) else "of extended resources"

    return _MARKER.sub(name, text)


def title_of(claim: ResourceClaim) -> str:
    """The name of a claim. A claim still to be made from a template has no name to look up: it is named after its entry."""
    metadata = claim.metadata
    return (
        metadata.name if metadata.uid else metadata.annotations.get(POD_CLAIM_NAME, metadata.name)
    )


def _with_markers(text: str, places: dict[str, int]) -> str:
    # The longest first: the name of one claim may be a prefix of another's.
    for name, index in sorted(places.items(), key=lambda item: -len(item[0])):
        text = text.replace(f"claim {name}", f"claim {claim_marker(index)}")
    return text


def _shortages(refusal: Refusal, places: dict[str, int]) -> tuple[Shortage, ...]:
    by_request: dict[tuple[int, str], list[Rejection]] = {}
    for rejection in refusal.rejections:
        key = (places[rejection.claim], rejection.request)
        by_request.setdefault(key, []).append(rejection)
    return tuple(_shortage(*key, found) for key, found in by_request.items())


def _shortage(claim: int, request: str, rejections: Sequence[Rejection]) -> Shortage:
    lost: dict[RejectionReason, int] = {}
    lacks, detail = None, ""
    for rejection in rejections:
        if rejection.reason in _DECISIVE:
            if lacks is not RejectionReason.NO_DEVICES:
                lacks, detail = rejection.reason, rejection.detail
        elif rejection.reason not in _SELECTING:
            lost[rejection.reason] = lost.get(rejection.reason, 0) + rejection.count
    last = rejections[-1]
    return Shortage(
        claim,
        request,
        last.wanted,
        last.remaining + sum(lost.values()),
        last.remaining,
        tuple(lost.items()),
        lacks,
        detail,
    )


def _missing(shortage: Shortage) -> int:
    """The devices that a request lacks. One returned device may free several, where it frees counters."""
    if shortage.lacks is not RejectionReason.COUNT or shortage.lost_to(RejectionReason.COUNTERS):
        return 1
    return max(shortage.wanted - shortage.free, 1)


def decisive(shortages: Iterable[Shortage]) -> list[Shortage]:
    """The requests that are the reason for the refusal."""
    return [shortage for shortage in shortages if shortage.lacks is not None]

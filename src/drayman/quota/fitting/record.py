"""Room as it is written down: the text, and what of it is believed.

The text is JSON. The annotations of an object have a limit, so a long one is compressed; where even that is too long, room is not written
down, and not kept.

Whoever may write annotations of Workloads might write one. So a place is only believed as far as the workload has quota for it: one for
each pod that it was admitted with, and no more devices than the claims of that pod ask for. What is believed beyond that is which ones.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from binascii import Error as BinasciiError
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.api.resource import AllocationResult, DeviceClaim, ResourceClaim, ResourceClaimTemplate
from drayman.quota.fitting.expecting import WorkloadPods, expected_pods
from drayman.quota.fitting.reservation import PlaceRecord, RoomRecord, RoomReservation, record_of

LONGEST: Final = 192 * 1024
"""Of 256 KiB for all annotations of an object."""
_PLAIN: Final = 32 * 1024
_COMPRESSED: Final = "zlib:"
_MOST_BYTES: Final = 8 * 1024 * 1024

FindTemplate = Callable[[str, str], ResourceClaimTemplate | None]
FindClaim = Callable[[str, str], ResourceClaim | None]
"""By namespace and name."""


def text_of(reservation: RoomReservation) -> str:
    """What to write down. Empty if that is too long."""
    data = codec.encode(record_of(reservation))
    if len(data) > _PLAIN:
        text = _COMPRESSED + b64encode(zlib.compress(data)).decode()
    else:
        text = data.decode()
    return text if len(text) <= LONGEST and len(data) <= _MOST_BYTES else ""


def read(text: str) -> RoomRecord:
    """What was written down. Raises DecodeError."""
    if len(text) > LONGEST:
        raise DecodeError("", f"more than {LONGEST} characters")
    return codec.decode(
        RoomRecord, _inflated(text) if text.startswith(_COMPRESSED) else text.encode()
    )


def _inflated(text: str) -> bytes:
    inflating = zlib.decompressobj()
    try:
        data = inflating.decompress(b64decode(text[len(_COMPRESSED) :], validate=True), _MOST_BYTES)
    except (zlib.error, BinasciiError, ValueError) as error:
        raise DecodeError("", f"cannot be decompressed: {error}") from None
    if not inflating.eof:
        raise DecodeError("", f"more than {_MOST_BYTES} bytes when decompressed, or cut off")
    return data


class Belief(Enum):
    """What to make of a record."""

    TRUE = auto()
    """It keeps no more than the workload was admitted with."""
    FALSE = auto()
    OPEN = auto()
    """It names something that is not known, or not yet."""


def belief_in(
    workload: WorkloadPods, record: RoomRecord, template: FindTemplate, claim: FindClaim
) -> Belief:
    """Whether a record can be what was found for a workload."""
    expected = {(each.pod_set, each.number): each.pod for each in expected_pods(workload)}
    is_open = False
    for place in record.places:
        pod = expected.get((place.pod_set, place.number))
        # One that is not expected any more is not kept either: pods may have ended since.
        belief = Belief.TRUE if pod is None else _believed(place, pod, template, claim)
        if belief is Belief.FALSE:
            return belief
        is_open = is_open or belief is Belief.OPEN
    return Belief.OPEN if is_open else Belief.TRUE


def _believed(place: PlaceRecord, pod: Pod, template: FindTemplate, claim: FindClaim) -> Belief:
    namespace = pod.metadata.namespace
    own: int | None = _extended(pod)
    named: dict[str, ResourceClaim] = {}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name:
            found = template(namespace, entry.resource_claim_template_name)
            if found is None:
                return Belief.OPEN if place.devices or place.claims else Belief.TRUE
            most = _most(found.spec.spec.devices)
            own = None if own is None or most is None else own + most
        elif entry.resource_claim_name:
            shared = claim(namespace, entry.resource_claim_name)
            if shared is not None:
                named[shared.metadata.uid] = shared
    if own is not None and _number(place.devices) > own:
        return Belief.FALSE
    for each in place.claims:
        if each.uid not in named:
            return Belief.OPEN if pod.spec.resource_claims else Belief.FALSE
        most = _most(named[each.uid].spec.devices)
        if most is not None and _number([each.allocation]) > most:
            return Belief.FALSE
    return Belief.TRUE


def _number(allocations: Iterable[AllocationResult]) -> int:
    return sum(len(each.devices.results) for each in allocations)


def _extended(pod: Pod) -> int:
    """How many devices may stand behind the requests of a pod: no more than it has of any resource with a domain."""
    total = 0
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for name, amount in {**container.resources.limits, **container.resources.requests}.items():
            if "/" in name:
                total += int(amount.amount)
    return total


def _most(claim: DeviceClaim) -> int | None:
    """How many devices a claim may get; None if that depends on what there is."""
    total = 0
    for request in claim.requests:
        counts = [each for _, each in request.alternatives()]
        if any(each.allocation_mode == "All" for each in counts):
            return None
        total += max((each.count or 1 for each in counts), default=0)
    return total

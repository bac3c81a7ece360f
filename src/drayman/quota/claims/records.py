"""What Workloads say about claims that they use with others, in the annotation `drayman.dev/claims`.

It is written together with the admission, whose usage includes what is paid for the claims. What is left of that usage without them is the
workload's own, and who pays for a claim follows from the turns. So whoever reads the Workloads, also after a restart, charges each of them
the same. Without the annotation, or if it makes no sense, all usage is the workload's own: nobody is charged less for that.

Who writes the annotation should be who admits: it decides what is charged. Our own server sees to that
(`apiserver/security/admission_records.py`); elsewhere whoever may change Workloads can write it, and Kueue's roles give that right to those
who administer queues. So the numbers in it are taken with care.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from msgspec import field

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct
from drayman.quota.amounts import Amounts, amount_of, quantity_of
from drayman.quota.claims.prices import ClaimPrice, Share
from drayman.quota.claims.users import ClaimUse

CLAIMS: Final = "drayman.dev/claims"
_PART: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
"""As fractions are written here. `Fraction` also reads exponents, and takes gigabytes for a long one."""


class UseRecord(ApiStruct):
    """A claim that the workload uses."""

    name: str
    pod_set: str
    turn: int
    price: dict[str, Quantity] = field(default_factory=dict)
    paid: dict[str, Quantity] = field(default_factory=dict)
    sharing: str = ""
    part: str = ""
    """Of the price, as a fraction; empty: equal parts."""


class ClaimsRecord(ApiStruct):
    """All claims that a workload uses."""

    claims: tuple[UseRecord, ...] = ()


def text_of(uses: Iterable[ClaimUse]) -> str:
    """What to write; empty if no claims are used."""
    records = tuple(
        UseRecord(
            name=use.claim[1],
            pod_set=use.pod_set,
            turn=use.turn,
            price=_quantities(use.price.amounts),
            paid=_quantities(use.paid),
            sharing="" if use.price.share is None else use.price.share.strategy,
            part=str((use.price.share and use.price.share.part) or ""),
        )
        for use in sorted(uses, key=lambda use: use.claim)
    )
    return codec.encode(ClaimsRecord(claims=records)).decode() if records else ""


def notes_of(uses: Iterable[ClaimUse], annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotation to write on a workload that has these so far; nothing where there is none to be written or emptied."""
    text = text_of(uses)
    return {CLAIMS: text} if text or CLAIMS in annotations else {}


def uses_of(namespace: str, annotations: Mapping[str, str]) -> tuple[ClaimUse, ...]:
    """What was written."""
    text = annotations.get(CLAIMS, "")
    if not text:
        return ()
    try:
        record = codec.decode(ClaimsRecord, text.encode())
        if len({each.name for each in record.claims}) < len(record.claims):
            return ()
        return tuple(
            ClaimUse(
                ClaimPrice((namespace, each.name), _amounts(each.price), _share(each)),
                each.pod_set,
                each.turn,
                _amounts(each.paid),
            )
            for each in record.claims
        )
    except (DecodeError, ValueError, ZeroDivisionError):
        return ()


def _share(record: UseRecord) -> Share | None:
    if not record.sharing:
        return None
    if not record.part:
        return Share(record.sharing)
    found = _PART.fullmatch(record.part)
    part = Fraction(int(found[1]), int(found[2])) if found else Fraction(0)
    if not 0 < part < 1:
        raise ValueError(f"{record.part} is no part of a price")
    return Share(record.sharing, part)


def _quantities(amounts: Amounts) -> dict[str, Quantity]:
    return {name: quantity_of(name, amount) for name, amount in sorted(amounts.items())}


def _amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    found = {name: max(0, amount_of(name, each)) for name, each in quantities.items()}
    return {name: amount for name, amount in found.items() if amount}

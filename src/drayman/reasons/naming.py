"""How things are called in explanations."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from drayman.api.quantity import Format, Quantity
from drayman.api.resource import ResourceClaim
from drayman.inventory.device import Amount
from drayman.placement.claims import EXTENDED_CLAIM
from drayman.placement.refusing import title_of

_CPU: Final = "cpu"
_LARGE: Final = 1024


def claim_title(claim: ResourceClaim) -> str:
    """The name of a claim. A claim for extended resources has no name before it exists."""
    return "extended resources" if is_for_extended(claim) else title_of(claim)


def is_for_extended(claim: ResourceClaim) -> bool:
    """Whether a claim is one for extended resources that does not exist yet."""
    return EXTENDED_CLAIM in claim.metadata.annotations and not claim.metadata.uid


def taint_title(key: str, value: str, effect: str) -> str:
    """A taint, as kubectl writes it."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def amount_title(amount: Amount) -> str:
    """An amount of a capacity or counter. Multiples of 1024 are written in binary units."""
    is_binary = isinstance(amount, int) and amount >= _LARGE and not amount % _LARGE
    return str(Quantity(amount, Format.BINARY_SI if is_binary else Format.DECIMAL_SI))


def resource_title(name: str, amount: int) -> str:
    """An amount of a node's resource. Processors are counted in thousandths."""
    return str(Quantity(Fraction(amount, 1000))) if name == _CPU else amount_title(amount)

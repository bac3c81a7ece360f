"""Amounts of resources as quota counts them: whole numbers, cpu in thousandths, everything else in units, saturating at int64.

Saturation is part of the meaning: a sum that is too large for Kubernetes is more than any quota has, and must not become negative or raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from drayman.api.quantity import Format, Quantity
from drayman.placement.fit.requests import CPU, in_units

Amounts = Mapping[str, int]
"""Of each resource, in the units it is counted in."""

MOST: Final = 2**63 - 1
LEAST: Final = -(2**63)


class FlavorResource(NamedTuple):
    """What quota is given for: a resource in a flavor."""

    flavor: str
    resource: str


def saturated(amount: int) -> int:
    """An amount, kept within int64."""
    return MOST if amount > MOST else (LEAST if amount < LEAST else amount)


def times(amounts: Amounts, count: int) -> dict[str, int]:
    """Amounts of so many pods."""
    return {name: saturated(amount * count) for name, amount in amounts.items()}


def plus(amounts: Amounts, more: Amounts) -> dict[str, int]:
    """The sum of two sets of amounts."""
    total = dict(amounts)
    for name, amount in more.items():
        total[name] = saturated(total.get(name, 0) + amount)
    return total


def amount_of(resource: str, quantity: Quantity) -> int:
    """A quantity in the units of its resource."""
    return saturated(in_units(resource, quantity.amount))


@lru_cache(maxsize=1 << 12)
def quantity_of(resource: str, amount: int, form: Format | None = None) -> Quantity:
    """An amount as a quantity. Memory and its like print in binary units unless told otherwise."""
    if resource == CPU:
        return Quantity(Fraction(amount, 1000))
    binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return Quantity(amount, form or (Format.BINARY_SI if binary else Format.DECIMAL_SI))

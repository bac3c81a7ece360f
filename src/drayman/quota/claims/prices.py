"""What a claim costs all of its users together, and what each of them pays of it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from msgspec import Struct

from drayman.quota.amounts import Amounts, plus

ObjectKey = tuple[str, str]
"""Namespace and name."""


class Share(Struct, frozen=True):
    """How the users of a device share it."""

    strategy: str
    part: Fraction | None = None
    """What each of them gets; None: equal parts."""


class ClaimPrice(Struct, frozen=True):
    """What a claim costs all of its users together."""

    claim: ObjectKey
    amounts: Amounts
    share: Share | None = None


def together(prices: Iterable[ClaimPrice]) -> Amounts:
    """What several claims cost."""
    total: Amounts = {}
    for price in prices:
        total = plus(total, price.amounts)
    return total


def portions(price: ClaimPrice, users: int) -> list[Amounts]:
    """What each of so many users pays, in their order. The sum is the price."""
    return [portion(price, users, position) for position in range(users)]


def portion(price: ClaimPrice, users: int, position: int) -> Amounts:
    """What one of so many users pays. Without shares the first pays all; otherwise each later one its share, and the first the rest."""
    if price.share is None:
        return {} if position else price.amounts
    part = price.share.part or Fraction(1, users)
    found = {}
    for name, amount in price.amounts.items():
        each = int(amount * part)
        # Shares may be more than a whole, all together: then the last ones pay nothing.
        paid = amount - each * (users - 1 if position == 0 else position - 1)
        found[name] = max(0, paid if position == 0 else min(each, paid))
    return {name: amount for name, amount in found.items() if amount}

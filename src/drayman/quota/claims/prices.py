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
    if price.share is None:
        return [price.amounts, *({} for _ in range(users - 1))]
    part = price.share.part or Fraction(1, users)
    left = dict(price.amounts)
    joined: list[Amounts] = []
    for _ in range(users - 1):
        paid = {name: min(left[name], int(amount * part)) for name, amount in price.amounts.items()}
        left = {name: left[name] - paid[name] for name in left}
        joined.append({name: amount for name, amount in paid.items() if amount})
    return [{name: amount for name, amount in left.items() if amount}, *joined]

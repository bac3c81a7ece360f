"""Who pays for claims that several workloads use.

A claim is charged once. The first workload that was admitted with it pays for it, and when that one ends the next one does. If the claim's
configuration says that its devices are shared (`sharing`), each later user takes over its share of the price, and the first pays the
rest: whatever happens, the charges of all users add up to the price of the claim.

A workload enters with what its claims cost (`Charges.claims`) when quota is reserved for it, and leaves when it gives that back. Both say
whose charges change by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct

from drayman.quota.amounts import Amounts, plus
from drayman.quota.charging.outcome import ClaimPrice, ObjectKey


class Adjustment(Struct, frozen=True):
    """What a workload is charged for claims that it shares changes."""

    workload: str
    before: Amounts
    after: Amounts


class ClaimUsers:
    """The workloads that hold quota for claims, by claim, in the order in which they were admitted."""

    def __init__(self) -> None:
        self._users: dict[ObjectKey, list[str]] = {}
        self._prices: dict[ObjectKey, ClaimPrice] = {}
        self._claims: dict[str, set[ObjectKey]] = {}

    def enter(self, workload: str, prices: Iterable[ClaimPrice]) -> tuple[Adjustment, ...]:
        """Quota is reserved for a workload that uses these claims. The first who enters with a claim says what it costs."""
        entering = [price for price in prices if workload not in self._users.get(price.claim, ())]
        concerned = {u for price in entering for u in self._users.get(price.claim, ())}
        before = {user: self.charged(user) for user in (*sorted(concerned), workload)}
        for price in entering:
            self._users.setdefault(price.claim, []).append(workload)
            self._prices.setdefault(price.claim, price)
            self._claims.setdefault(workload, set()).add(price.claim)
        return self._adjustments(before)

    def leave(self, workload: str) -> tuple[Adjustment, ...]:
        """A workload gives back its quota: others now pay for what they still use."""
        claims = self._claims.get(workload, set())
        concerned = {user for claim in claims for user in self._users[claim]}
        before = {user: self.charged(user) for user in sorted(concerned)}
        for claim in self._claims.pop(workload, set()):
            self._users[claim].remove(workload)
            if not self._users[claim]:
                del self._users[claim], self._prices[claim]
        return self._adjustments(before)

    def users(self, claim: ObjectKey) -> tuple[str, ...]:
        """Who uses a claim; the first one pays, or pays what the others do not."""
        return tuple(self._users.get(claim, ()))

    def charged(self, workload: str) -> Amounts:
        """What a workload pays for claims that it may share."""
        total: Amounts = {}
        for claim in self._claims.get(workload, ()):
            users = self._users[claim]
            total = plus(total, portions(self._prices[claim], len(users))[users.index(workload)])
        return total

    def asked_of(self, workload: str, price: ClaimPrice) -> Amounts:
        """What a workload pays for a claim once it uses it, or if it does so already."""
        users = self._users.get(price.claim, [])
        if not users:
            return price.amounts
        known = self._prices[price.claim]
        if workload in users:
            return portions(known, len(users))[users.index(workload)]
        return portions(known, len(users) + 1)[-1]

    def _adjustments(self, before: Mapping[str, Amounts]) -> tuple[Adjustment, ...]:
        after = {user: self.charged(user) for user in before}
        return tuple(
            Adjustment(user, before[user], after[user])
            for user in before
            if before[user] != after[user]
        )


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

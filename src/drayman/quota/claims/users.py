"""Who pays for claims that several workloads use.

A claim is charged once. The first workload that got quota with it pays for it, and when that one gives its quota back the next one does. If
the claim's configuration says that its devices are shared, each later user takes over its share of the price, and the first pays the
rest: whatever happens, the charges of all users add up to the price of the claim.

A workload enters when quota is reserved for it, in the turn that it gets then (`joining`), and leaves when it gives that back. Turns and
prices are written down by each user (`records`), so the book is the same in whatever order it is told of them. All users write the same
price; it falls when devices turn out to cost less (`lower`), and never rises, so of several the lowest is the newest.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from drayman.quota.amounts import Amounts
from drayman.quota.claims.prices import ClaimPrice, ObjectKey, portions


class ClaimUse(Struct, frozen=True):
    """That a workload holds quota with a claim."""

    price: ClaimPrice
    """Of the claim, for all of its users."""
    pod_set: str
    """The set that is charged: the first that names the claim."""
    turn: int = 0
    """Users pay in the order of their turns."""
    paid: Amounts = {}
    """What the workload's status has for it, among what the pod set uses."""

    @property
    def claim(self) -> ObjectKey:
        return self.price.claim

    @property
    def identity(self) -> tuple[ObjectKey, str, int]:
        """What stays as long as the workload holds its quota."""
        return self.price.claim, self.pod_set, self.turn


class ClaimUsers:
    """The workloads that hold quota with claims, by claim."""

    def __init__(self) -> None:
        self._uses: dict[ObjectKey, dict[str, ClaimUse]] = {}
        """By claim and workload, in the order of their turns."""
        self._claims: dict[str, set[ObjectKey]] = {}

    def joining(self, price: ClaimPrice, pod_set: str, paid: Amounts) -> ClaimUse:
        """How a workload would use a claim after all others. The first who does says what it costs."""
        uses = self._uses.get(price.claim)
        if not uses:
            return ClaimUse(price, pod_set, 1, paid)
        turn = max(each.turn for each in uses.values()) + 1
        return ClaimUse(self.price(price.claim), pod_set, turn, paid)

    def enter(self, workload: str, uses: Iterable[ClaimUse]) -> frozenset[str]:
        """A workload holds quota with these claims. Returns all who use one of them: their charges may be other ones now."""
        for use in uses:
            known = self._uses.get(use.claim, {})
            found = {**known, workload: _kept_low(known.get(workload), use)}
            order = sorted(found.items(), key=lambda item: (item[1].turn, item[0]))
            self._uses[use.claim] = dict(order)
            self._claims.setdefault(workload, set()).add(use.claim)
        return self._beside(workload)

    def leave(self, workload: str) -> frozenset[str]:
        """A workload gives back its quota. Returns the others that use its claims, and pay for them from now on."""
        concerned = self._beside(workload) - {workload}
        for claim in self._claims.pop(workload, set()):
            del self._uses[claim][workload]
            if not self._uses[claim]:
                del self._uses[claim]
        return concerned

    def lower(self, claim: ObjectKey, amounts: Amounts) -> frozenset[str]:
        """A claim turned out to cost this much. Where that is less than was thought, it is its price. Returns its users."""
        uses = self._uses.get(claim)
        if not uses:
            return frozenset()
        known = self.price(claim)
        price = ClaimPrice(claim, _least(known.amounts, amounts), known.share)
        if price == known:
            return frozenset()
        self._uses[claim] = {user: replace(use, price=price) for user, use in uses.items()}
        return frozenset(uses)

    def users(self, claim: ObjectKey) -> tuple[str, ...]:
        """Who uses a claim; the first one pays, or pays what the others do not."""
        return tuple(self._uses.get(claim, ()))

    def price(self, claim: ObjectKey) -> ClaimPrice:
        """What a claim that has users costs them together."""
        uses = tuple(self._uses[claim].values())
        first = uses[0].price
        amounts = first.amounts
        for each in uses[1:]:
            if each.price.amounts != amounts:
                amounts = _least(amounts, each.price.amounts)
        return ClaimPrice(claim, amounts, first.share)

    def charged(self, workload: str) -> dict[ObjectKey, Amounts]:
        """What a workload pays for each claim that it uses."""
        found = {}
        for claim in self._claims.get(workload, ()):
            users = self.users(claim)
            found[claim] = portions(self.price(claim), len(users))[users.index(workload)]
        return found

    def asked_of(self, price: ClaimPrice) -> dict[str, int]:
        """What one more workload pays for a claim, with a zero for what others pay: it may have to pay for that, too, one day."""
        users = len(self._uses.get(price.claim, ()))
        known = self.price(price.claim) if users else price
        names = dict.fromkeys((*price.amounts, *known.amounts), 0)
        return {**names, **portions(known, users + 1)[-1]}

    def _beside(self, workload: str) -> frozenset[str]:
        """All who use a claim that a workload uses; it is one of them."""
        claims = self._claims.get(workload, ())
        return frozenset(user for claim in claims for user in self._uses[claim])


def _kept_low(known: ClaimUse | None, use: ClaimUse) -> ClaimUse:
    """A use as it was read, with a price that has fallen since it was written."""
    if known is None or known.turn != use.turn:
        return use
    price = use.price
    amounts = _least(price.amounts, known.price.amounts)
    return replace(use, price=replace(price, amounts=amounts))


def _least(one: Amounts, other: Amounts) -> Amounts:
    lower = {name: min(amount, other.get(name, 0)) for name, amount in one.items()}
    return {name: amount for name, amount in lower.items() if amount}

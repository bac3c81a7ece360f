"""Who pays for claims that several workloads use.

A claim is charged once. The first workload that got quota with it pays for it, and when that one gives its quota back the next one does. If
the claim's configuration says that its devices are shared, each later user takes over its share of the price, and the first pays the
rest: whatever happens, the charges of all users add up to the price of the claim.

A workload enters when quota is reserved for it, in the turn that it gets then (`joining`), and leaves when it gives that back. Turns and
prices are written down by each user (`records`), so the book is the same in whatever order it is told of them. All users write the same
price; it falls when devices turn out to cost less (`lower`), and never rises, so of several the lowest is the newest.

Where parts are equal, each user that comes or goes changes the charges of all. Kubernetes lets a claim have at most 256 consumers.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from drayman.quota.amounts import Amounts
from drayman.quota.claims.prices import ClaimPrice, ObjectKey, portion


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


class _Claim:
    """The users of one claim, in the order of their turns."""

    __slots__ = ("_charges", "price", "uses")

    def __init__(self, first: ClaimUse) -> None:
        self.uses: dict[str, ClaimUse] = {}
        self.price = first.price
        self._charges: dict[str, Amounts] = {}

    @property
    def first(self) -> str:
        return next(iter(self.uses), "")

    @property
    def turn(self) -> int:
        """The next one."""
        return next(reversed(self.uses.values())).turn + 1

    def put(self, workload: str, use: ClaimUse) -> None:
        is_last = workload not in self.uses and (not self.uses or use.turn >= self.turn)
        self.uses[workload] = use
        if not is_last:
            order = sorted(self.uses.items(), key=lambda item: (item[1].turn, item[0]))
            self.uses = dict(order)
        amounts = self.price.amounts
        if use.price.amounts != amounts:
            amounts = _least(amounts, use.price.amounts)
        self._value(amounts)

    def drop(self, workload: str) -> None:
        del self.uses[workload]
        if self.uses:
            amounts = self.uses[self.first].price.amounts
            # As a rule all have written the same. If the first has the lowest, it is still the lowest.
            others = () if amounts == self.price.amounts else self.uses.values()
            for each in others:
                if each.price.amounts != amounts:
                    amounts = _least(amounts, each.price.amounts)
            self._value(amounts)

    def lower(self, amounts: Amounts) -> None:
        self._value(amounts)
        self.uses = {user: replace(use, price=self.price) for user, use in self.uses.items()}

    def _value(self, amounts: Amounts) -> None:
        share = self.uses[self.first].price.share
        self.price = ClaimPrice(self.price.claim, amounts, share)
        self._charges = {}

    def charge_of(self, workload: str) -> Amounts:
        """What one of its users pays."""
        if self.price.share is None:
            return self.price.amounts if workload == self.first else {}
        if not self._charges:
            number = len(self.uses)
            self._charges = {
                user: portion(self.price, number, position)
                for position, user in enumerate(self.uses)
            }
        return self._charges[workload]

    def concerned(self, *others: str) -> set[str]:
        """Whose charge depends on how many users there are, and who pays; and these, if they are users."""
        if self.price.share is not None:
            return set(self.uses)
        return {user for user in (self.first, *others) if user in self.uses}


class ClaimUsers:
    """The workloads that hold quota with claims, by claim."""

    def __init__(self) -> None:
        self._claims: dict[ObjectKey, _Claim] = {}
        self._used: dict[str, set[ObjectKey]] = {}

    def joining(self, price: ClaimPrice, pod_set: str, paid: Amounts) -> ClaimUse:
        """How a workload would use a claim after all others. The first who does says what it costs."""
        known = self._claims.get(price.claim)
        if known is None:
            return ClaimUse(price, pod_set, 1, paid)
        return ClaimUse(known.price, pod_set, known.turn, paid)

    def enter(self, workload: str, uses: Iterable[ClaimUse]) -> set[str]:
        """A workload holds quota with these claims. Returns whose charges may be other ones now; it is one of them."""
        concerned = {workload}
        for use in uses:
            known = self._claims.get(use.claim)
            if known is None:
                known = self._claims[use.claim] = _Claim(use)
            paid = known.first
            known.put(workload, _kept_low(known.uses.get(workload), use))
            self._used.setdefault(workload, set()).add(use.claim)
            concerned |= known.concerned(paid)
        return concerned

    def leave(self, workload: str) -> set[str]:
        """A workload gives back its quota. Returns the others whose charges may be other ones now."""
        concerned: set[str] = set()
        for claim in self._used.pop(workload, set()):
            known = self._claims[claim]
            known.drop(workload)
            if known.uses:
                concerned |= known.concerned()
            else:
                del self._claims[claim]
        return concerned

    def lower(self, claim: ObjectKey, amounts: Amounts) -> set[str]:
        """A claim turned out to cost this much. Where that is less than was thought, it is its price. Returns its users."""
        known = self._claims.get(claim)
        if known is None:
            return set()
        least = _least(known.price.amounts, amounts)
        if least == known.price.amounts:
            return set()
        known.lower(least)
        return set(known.uses)

    def users(self, claim: ObjectKey) -> tuple[str, ...]:
        """Who uses a claim; the first one pays, or pays what the others do not."""
        known = self._claims.get(claim)
        return () if known is None else tuple(known.uses)

    def payer(self, claim: ObjectKey) -> str:
        """The first of a claim's users."""
        return self._claims[claim].first

    def is_shared(self, claim: ObjectKey) -> bool:
        """Whether a claim that has a user has another one."""
        return len(self._claims[claim].uses) > 1

    def price(self, claim: ObjectKey) -> ClaimPrice:
        """What a claim that has users costs them together."""
        return self._claims[claim].price

    def charged(self, workload: str) -> dict[ObjectKey, Amounts]:
        """What a workload pays for each claim that it uses."""
        used = self._used.get(workload, ())
        return {claim: self._claims[claim].charge_of(workload) for claim in used}

    def asked_of(self, price: ClaimPrice) -> dict[str, int]:
        """What one more workload pays for a claim, with a zero for what others pay: it may have to pay for that, too, one day."""
        known = self._claims.get(price.claim)
        value, users = (price, 0) if known is None else (known.price, len(known.uses))
        names = dict.fromkeys((*price.amounts, *value.amounts), 0)
        return {**names, **portion(value, users + 1, users)}


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

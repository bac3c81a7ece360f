"""What workloads are charged for claims that several of them use: the book of users (`quota/claims`) and the ledger, kept in step.

At every moment the charges of a claim's users add up to its price, and are in the ledger. When the one that pays gives its quota back, the
next one pays, in its own queue and flavor. It is not asked: its pods run, and the devices are in use. If its queue then uses more than it
has, nothing new is admitted there until that is over, and others may take back what they lent.

What a workload's object says of its charges follows (`as_charged`); `take_changed` names those that are behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from drayman.api.kueue_workload import Admission
from drayman.quota.admissions import holding_of, with_paid
from drayman.quota.amounts import Amounts, FlavorResource
from drayman.quota.books import Books
from drayman.quota.claims.prices import ObjectKey
from drayman.quota.claims.users import ClaimUse, ClaimUsers
from drayman.quota.decisions import Reserved
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry, Facts, Holding


class ClaimCharges:
    """Takes and releases what workloads hold, with the claims that they use."""

    def __init__(self, books: Books, entries: Mapping[str, Entry]) -> None:
        self.users = ClaimUsers()
        self._books = books
        self._entries = entries
        self._naming: dict[ObjectKey, dict[str, None]] = {}
        """The workloads that name a claim, whether they hold quota or not."""
        self._changed: dict[str, None] = {}

    def note(self, before: Facts | None, after: Facts | None) -> None:
        """Follow which claims a workload names."""
        if before is not None:
            for claim in _claims(before):
                named = self._naming[claim]
                named.pop(before.key, None)
                if not named:
                    del self._naming[claim]
        if after is not None:
            for claim in _claims(after):
                self._naming.setdefault(claim, {})[after.key] = None

    def take(self, entry: Entry, holding: Holding) -> None:
        """A workload has quota from now on."""
        if not holding.claims:
            self._books.take(entry, holding)
            return
        concerned = self.users.enter(entry.key, holding.claims)
        self._books.take(entry, self._charged(entry.key, holding))
        self._changed[entry.key] = None
        self._after(concerned - {entry.key})
        for use in holding.claims:
            if use.price.share is not None or not self.users.is_shared(use.claim):
                # Others that name it have to pay less for it than before.
                for key in self._naming.get(use.claim, ()):
                    self._books.wake(self._entries[key].waits_in)

    def follow(self, entry: Entry, holding: Holding) -> None:
        """The object of a workload says in other words what it holds, or has come to say what it is charged."""
        if not holding.claims:
            entry.holding = holding
            return
        concerned = self.users.enter(entry.key, holding.claims)
        self._books.recharge(entry, self._charged(entry.key, holding))
        self._after(concerned - {entry.key})

    def release(self, entry: Entry) -> None:
        """A workload has no quota any more."""
        shares = entry.holding is not None and bool(entry.holding.claims)
        self._books.release(entry)
        if shares:
            self._changed.pop(entry.key, None)
            self._after(self.users.leave(entry.key))

    def lower(self, claim: ObjectKey, amounts: Amounts) -> None:
        """The devices of a claim cost this much. Where that is less than was thought, its users pay less from now on."""
        self._after(self.users.lower(claim, amounts))

    def settled(
        self, reserved: Reserved, reserved_at: float, facts: Facts
    ) -> tuple[Reserved, Holding]:
        """A decision with the turns that the workload gets, and with what it pays beside those that were served before it."""
        if not reserved.claims:
            return reserved, holding_of(reserved.admission, reserved_at, facts.demands)
        uses = tuple(self.users.joining(e.price, e.pod_set, e.paid) for e in reserved.claims)
        parts = {use.claim: self.users.asked_of(use.price) for use in uses}
        admission, uses = with_paid(reserved.admission, uses, parts)
        holding = holding_of(admission, reserved_at, facts.demands, claims=uses)
        return Reserved(reserved.key, admission, uses), holding

    def as_charged(self, entry: Entry) -> tuple[Admission, tuple[ClaimUse, ...]] | None:
        """What the object of a workload should say about its charges; None if it holds no quota."""
        holding = entry.holding
        if holding is None:
            return None
        uses = tuple(replace(u, price=self.users.price(u.claim)) for u in holding.claims)
        return with_paid(holding.admission, uses, self.users.charged(entry.key))

    def take_changed(self) -> list[str]:
        """The workloads whose charges may be other ones than their objects say, since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def _after(self, concerned: Iterable[str]) -> None:
        for key in sorted(concerned):
            entry = self._entries[key]
            if entry.holding is not None:
                self._books.recharge(entry, self._charged(key, entry.holding))
                self._changed[key] = None

    def _charged(self, key: str, holding: Holding) -> Holding:
        """What a workload holds, as its claims are charged now."""
        quota = dict(holding.own)
        to_others: dict[FlavorResource, int] = {}
        parts = self.users.charged(key)
        flavors = {each.name: each.flavors for each in holding.admission.pod_set_assignments}
        for use in holding.claims:
            moves_on = self.users.is_shared(use.claim)
            for resource, amount in parts[use.claim].items():
                flavor = flavors.get(use.pod_set, {}).get(resource)
                if flavor is None:
                    continue  # Its queue does not count the resource.
                what = FlavorResource(flavor, resource)
                quota[what] = quota.get(what, 0) + amount
                if moves_on:
                    to_others[what] = to_others.get(what, 0) + amount
        return replace(holding, usage=replace(holding.usage, quota=quota), to_others=to_others)


def _claims(facts: Facts) -> set[ObjectKey]:
    demands = () if isinstance(facts.demands, Unpriced) else facts.demands
    return {price.claim for demand in demands for price in demand.claims}

"""What pod sets that get the same flavors ask for, in the whole cluster and in each flavor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import Amounts, plus, times
from drayman.quota.claims.prices import ClaimPrice, ObjectKey
from drayman.quota.claims.users import ClaimUsers
from drayman.quota.demands import Charged, PodSetDemand

PaidClaims = tuple[tuple[ClaimPrice, Amounts], ...]
"""Claims, and what is paid for each."""


class AskedAmounts(Struct, frozen=True):
    """What pod sets ask for, each for itself."""

    requests: tuple[dict[str, int], ...]
    """Of all pods of a set, with what is paid for claims."""
    claims: tuple[PaidClaims, ...]

    @property
    def total(self) -> dict[str, int]:
        """Not to be changed."""
        if len(self.requests) == 1:
            return self.requests[0]
        total: dict[str, int] = {}
        for each in self.requests:
            total = plus(total, each)
        return total


class Unit(Struct, frozen=True):
    """Pod sets that get the same flavors."""

    demands: tuple[PodSetDemand, ...]
    sizes: tuple[int, ...]
    """How many pods of each."""
    asked: AskedAmounts
    """By the prices of the whole cluster."""

    @property
    def varies(self) -> bool:
        """Whether it may cost otherwise in a flavor."""
        return any(demand.priced is not None for demand in self.demands)

    @property
    def claimed(self) -> frozenset[str]:
        """What is charged for claims. Whoever uses one may have to pay for it one day, so there must be a flavor for it."""
        return frozenset(
            name for paid in self.asked.claims for _, amounts in paid for name in amounts
        )


def units_of(
    demands: Sequence[PodSetDemand], sizes: Sequence[int], users: ClaimUsers, *, counts_pods: bool
) -> list[Unit]:
    """Pod sets, those of a group together."""
    groups: dict[str, list[int]] = {}
    for index, demand in enumerate(demands):
        together = demand.topology.pod_set_group_name if demand.topology else None
        groups.setdefault(together or f"\0{index}", []).append(index)
    units = []
    for members in groups.values():
        mine = tuple(demands[index] for index in members)
        counts = tuple(sizes[index] for index in members)
        units.append(Unit(mine, counts, _asked(mine, counts, {}, users, counts_pods)))
    return units


def asked_of(
    demands: Sequence[PodSetDemand], users: ClaimUsers, *, counts_pods: bool
) -> AskedAmounts:
    """What pod sets ask for with all their pods, by the prices of the whole cluster, beside those that use the same claims."""
    return _asked(demands, [demand.count for demand in demands], {}, users, counts_pods)


def asked_in_flavor(
    unit: Unit, prices: Mapping[str, Charged], users: ClaimUsers, *, counts_pods: bool
) -> AskedAmounts:
    """What a unit asks for by the prices of a flavor, by pod set. Those that are not there are as in the whole cluster."""
    return _asked(unit.demands, unit.sizes, prices, users, counts_pods)


def _asked(
    demands: Sequence[PodSetDemand],
    sizes: Sequence[int],
    prices: Mapping[str, Charged],
    users: ClaimUsers,
    counts_pods: bool,
) -> AskedAmounts:
    known = {price.claim: price for each in prices.values() for price in each.claims}
    requests, claims = [], []
    for demand, size in zip(demands, sizes, strict=True):
        paid = _paid(demand.claims, known, users)
        asked = times(_per_pod(demand, prices.get(demand.name)), size)
        for _, amounts in paid:
            asked = plus(asked, amounts)
        if counts_pods:
            asked[PODS] = size
        requests.append(asked)
        claims.append(paid)
    return AskedAmounts(tuple(requests), tuple(claims))


def _per_pod(demand: PodSetDemand, price: Charged | None) -> Amounts:
    if price is None:
        return demand.per_pod
    devices = demand.devices
    plain = {name: amount - devices.get(name, 0) for name, amount in demand.per_pod.items()}
    return plus(plain, price.charges)


def _paid(
    prices: Iterable[ClaimPrice], in_flavor: Mapping[ObjectKey, ClaimPrice], users: ClaimUsers
) -> PaidClaims:
    found = []
    for price in prices:
        here = in_flavor.get(price.claim, price)
        # A name that costs nothing here is asked for as well: another flavor may be chosen for it.
        asked = {**dict.fromkeys(price.amounts, 0), **users.asked_of(here)}
        found.append((here, asked))
    return tuple(found)


def combined(found: Mapping[str, AskedAmounts], number: int) -> tuple[dict[str, int], PaidClaims]:
    """What one set of a unit asks for where each resource has its own flavor: by resource, what is asked in the flavor chosen for it."""
    requests = {
        name: asked.requests[number][name]
        for name, asked in found.items()
        if name in asked.requests[number]
    }
    claims: dict[ObjectKey, tuple[ClaimPrice, Amounts]] = {}
    for name, asked in found.items():
        for price, paid in asked.claims[number]:
            known, sums = claims.get(price.claim, (replace(price, amounts={}), {}))
            if name in paid:
                amounts = dict(known.amounts)
                if price.amounts.get(name):
                    amounts[name] = price.amounts[name]
                known, sums = replace(known, amounts=amounts), {**sums, name: paid[name]}
            claims[price.claim] = (known, sums)
    return requests, tuple(claims.values())

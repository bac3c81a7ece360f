"""The search for flavors: for each pod set, and each group of resources, the first flavor that serves well enough, or the best there is.

Pod sets that are placed together (a group) are served as one. Each takes into account what those before it would use. The search stops
with the first that cannot be served at all, because a workload gets everything or nothing.

Where the search may stop before the last flavor, the position is kept: if the workload comes to nothing with that flavor, it goes on with
the next one when it is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from drayman.api.errors import SelectorError
from drayman.api.kueue import ResourceFlavorSpec, ResourceGroup
from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import FlavorResource, quantity_of
from drayman.quota.claims.users import ClaimUsers
from drayman.quota.cluster_queues import NEVER, ClusterQueueState
from drayman.quota.demands import PodSetDemand, Unpriced
from drayman.quota.entries import Entry, Refusal
from drayman.quota.flavors.asking import (
    AskedAmounts,
    PaidClaims,
    Unit,
    asked_in_flavor,
    combined,
    units_of,
)
from drayman.quota.flavors.assignment import Assignment, Choice, Mode, PodSetChoice
from drayman.quota.flavors.matching import mismatch
from drayman.quota.flavors.prices import FlavorPrices
from drayman.quota.flavors.ranks import UNSERVED, Rank, Serving, goes_on, is_better
from drayman.quota.reasons import (
    EXCEEDS_MAX_QUOTA,
    MISCONFIGURED,
    NO_MATCHING_FLAVOR,
    SEVERITY,
    WAITING_FOR_QUOTA,
)
from drayman.quota.tree.ledger import Usage

Pinned: TypeAlias = Mapping[tuple[str, str], str]
"""By pod set and resource, the only flavor that is considered."""


class Oracle(Protocol):
    """Says what preemption could do for one flavor and resource."""

    def serving(
        self, queue: ClusterQueueState, entry: Entry, what: FlavorResource, amount: int
    ) -> Serving: ...


class Topologies(Protocol):
    """Says which flavors suit pods that ask for places in a topology."""

    def mismatch(
        self, queue: ClusterQueueState, demand: PodSetDemand, flavor: str
    ) -> str | None: ...


class Rules(Struct, frozen=True):
    """What the search depends on besides the queue and the workload."""

    flavors: Mapping[str, ResourceFlavorSpec]
    oracle: Oracle
    topologies: Topologies
    ignores_undeclared: bool
    shares_fairly: bool
    claims: ClaimUsers
    prices: FlavorPrices


class _Found(Struct, frozen=True):
    """What the flavors of one resource group offer."""

    choices: dict[str, Choice]
    tried: int | None
    """The flavor at which the search stopped; None: it went on to the last."""
    refusal: Refusal | None


class Assigner:
    """The search for one workload."""

    def __init__(
        self,
        rules: Rules,
        queue: ClusterQueueState,
        entry: Entry,
        pinned: Pinned | None = None,
    ) -> None:
        """`pinned`: whatever flavors were tried before, only these."""
        self._rules = rules
        self._pinned = pinned
        self._queue = queue
        self._place = queue.place
        self._entry = entry
        self._usage: dict[FlavorResource, int] = {}
        self._positions: dict[tuple[str, str], int] = {}
        self._refusals: list[Refusal] = []

    def assign(self, counts: Sequence[int] | None = None) -> Assignment:
        """Flavors for all pod sets, with as many pods as asked for or with fewer."""
        demands = self._entry.facts.demands
        if isinstance(demands, Unpriced):
            raise ValueError(f"{self._entry} has no price")
        self._usage, self._positions, self._refusals = {}, {}, []
        sizes = [each.count for each in demands] if counts is None else list(counts)
        served: dict[str, PodSetChoice] = {}
        mode = Mode.FIT
        for unit in units_of(demands, sizes, self._rules.claims, counts_pods=self._counts_pods):
            found = self._serve(unit)
            if found is None:
                mode = Mode.NO_FIT
                break
            for number, demand in enumerate(unit.demands):
                requests, claims = self._requests(unit, number, found)
                kept = {name: choice for name, choice in found.items() if name in requests}
                count = unit.sizes[number]
                served[demand.name] = PodSetChoice(demand, count, requests, kept, claims)
            mode = min(mode, *(each.mode for each in found.values())) if found else mode
        return Assignment(
            tuple(served[each.name] for each in demands if each.name in served),
            mode,
            Usage(dict(self._usage)),
            dict(self._positions),
            None if mode is Mode.FIT else self._refusal(),
        )

    @property
    def _counts_pods(self) -> bool:
        return PODS in self._queue.groups

    def _serve(self, unit: Unit) -> dict[str, Choice] | None:
        """Flavors for all resources of a unit, or None if there is one that it cannot get."""
        wanted = unit.asked.total
        chosen: dict[str, Choice] = {}
        positions: dict[tuple[str, str], int] = {}
        for resource in sorted(wanted):
            if resource in chosen:
                continue
            group = self._queue.groups.get(resource)
            if group is None:
                free = wanted[resource] == 0 and resource not in unit.claimed
                if free or self._rules.ignores_undeclared:
                    continue
                text = f"resource {resource} unavailable in ClusterQueue"
                self._refusals.append(Refusal(NO_MATCHING_FLAVOR, text))
                return None
            asked = [name for name in group.covered_resources if name in wanted]
            found = self._search(unit, group, resource, asked)
            if found.refusal is not None:
                self._refusals.append(found.refusal)
            if not found.choices:
                return None
            chosen.update(found.choices)
            if found.tried is not None:
                for name in found.choices:
                    positions[unit.demands[0].name, name] = found.tried
        self._positions.update(positions)
        for resource, choice in chosen.items():
            what = FlavorResource(choice.flavor, resource)
            amount = wanted[resource]
            if unit.varies:
                amount = self._known_in(unit, choice.flavor).total.get(resource, 0)
            self._usage[what] = self._usage.get(what, 0) + amount
        return chosen

    def _requests(
        self, unit: Unit, number: int, chosen: Mapping[str, Choice]
    ) -> tuple[dict[str, int], PaidClaims]:
        """What one set of a unit asks for in the flavors that were chosen."""
        if not unit.varies:
            return unit.asked.requests[number], unit.asked.claims[number]
        found = {name: self._known_in(unit, choice.flavor) for name, choice in chosen.items()}
        return combined(found, number)

    def _in_flavor(self, unit: Unit, flavor: str) -> AskedAmounts | Refusal:
        """What a unit asks for in a flavor, or why that has no devices for it."""
        if not unit.varies:
            return unit.asked
        labels = self._rules.flavors[flavor].node_labels
        prices = self._rules.prices.of(self._entry, unit.demands, labels)
        if isinstance(prices, Unpriced):
            return Refusal(NO_MATCHING_FLAVOR, f"flavor {flavor}: {prices.message}")
        return asked_in_flavor(unit, prices, self._rules.claims, counts_pods=self._counts_pods)

    def _known_in(self, unit: Unit, flavor: str) -> AskedAmounts:
        """What a unit asks for in a flavor that was chosen for it."""
        asked = self._in_flavor(unit, flavor)
        if isinstance(asked, Refusal):
            raise LookupError(f"{self._entry} was given {asked.message}")
        return asked

    def _search(
        self, unit: Unit, group: ResourceGroup, resource: str, asked: Sequence[str]
    ) -> _Found:
        """Go through the flavors of a group, from where the last search stopped."""
        fungibility = self._queue.spec.flavor_fungibility
        best, choices = UNSERVED, dict[str, Choice]()
        refusals: list[Refusal] = []
        tried = -1
        for index in range(self._start(unit, resource), len(group.flavors)):
            tried = index
            flavor = group.flavors[index].name
            if not self._is_considered(unit, resource, flavor):
                continue
            serving, offered, refusal = self._offer(unit, flavor, asked)
            if refusal is not None:
                refusals.append(refusal)
            if not goes_on(serving, fungibility):
                best, choices = serving, offered
                break
            if is_better(serving, best, fungibility):
                best, choices = serving, offered
        stopped = tried if 0 <= tried < len(group.flavors) - 1 else None
        fits = all(each.rank is Rank.FIT for each in choices.values()) and bool(choices)
        return _Found(choices, stopped, None if fits else _least_severe(refusals))

    def _start(self, unit: Unit, resource: str) -> int:
        if self._pinned is not None:
            return 0
        return self._entry.positions.get((unit.demands[0].name, resource), -1) + 1

    def _is_considered(self, unit: Unit, resource: str, flavor: str) -> bool:
        pinned = self._pinned
        return pinned is None or any(pinned.get((d.name, resource)) == flavor for d in unit.demands)

    def _offer(
        self, unit: Unit, flavor: str, asked: Sequence[str]
    ) -> tuple[Serving, dict[str, Choice], Refusal | None]:
        """How one flavor would serve: as badly as it serves the resource that it serves worst."""
        problem = self._mismatch(unit, flavor)
        if problem is not None:
            return UNSERVED, {}, problem
        here = self._in_flavor(unit, flavor)
        if isinstance(here, Refusal):
            return UNSERVED, {}, here
        wanted = here.total
        fungibility = self._queue.spec.flavor_fungibility
        worst = Serving(Rank.FIT)
        choices: dict[str, Choice] = {}
        refusal: Refusal | None = None
        for resource in asked:
            what = FlavorResource(flavor, resource)
            total = wanted.get(resource, 0) + self._usage.get(what, 0)
            if worst.rank is Rank.NO_FIT:
                problem = self._excess(what, total)
            else:
                serving, problem = self._serving(what, total)
                if is_better(worst, serving, fungibility):
                    worst = serving
                choices[resource] = Choice(flavor, serving.rank, serving.borrowing)
            if problem is not None:
                refusal = _more_severe(refusal, problem)
        return worst, {} if worst.rank is Rank.NO_FIT else choices, refusal

    def _excess(self, what: FlavorResource, amount: int) -> Refusal | None:
        """Why there could never be enough."""
        most = self._place.potential.get(what, 0)
        if amount <= most:
            return None
        where = f"{what.resource} in flavor {what.flavor}"
        wanted, capacity = (quantity_of(what.resource, each) for each in (amount, most))
        text = f"insufficient quota for {where}, request ({wanted}) > maximum capacity ({capacity})"
        return Refusal(EXCEEDS_MAX_QUOTA, text)

    def _mismatch(self, unit: Unit, flavor: str) -> Refusal | None:
        spec = self._rules.flavors.get(flavor)
        if spec is None:
            return Refusal(NO_MATCHING_FLAVOR, f"flavor {flavor} not found")
        for demand in unit.demands:
            text = self._rules.topologies.mismatch(self._queue, demand, flavor)
            if text is None:
                try:
                    text = mismatch(demand, flavor, spec)
                except SelectorError as error:
                    return Refusal(MISCONFIGURED, f"pod set {demand.name}: node affinity: {error}")
            if text is not None:
                return Refusal(NO_MATCHING_FLAVOR, text)
        return None

    def _serving(self, what: FlavorResource, amount: int) -> tuple[Serving, Refusal | None]:
        """How one flavor and resource would serve, with what earlier pod sets of the workload would use."""
        place = self._place
        excess = self._excess(what, amount)
        if excess is not None:
            return UNSERVED, excess
        borrowing, smaller = place.lowest_that_fits(what, amount)
        # Negative where quota was taken away: that has to be given back, too.
        available = place.available(what)
        if amount <= max(0, available):
            return Serving(Rank.FIT, borrowing), None
        lacking = quantity_of(what.resource, amount - available)
        text = f"insufficient unused quota for {what.resource} in flavor {what.flavor}, {lacking} more needed"
        refusal = Refusal(WAITING_FOR_QUOTA, text)
        may_preempt = amount <= place.quota(what).nominal or smaller or self._takes_by_force
        if not may_preempt:
            return UNSERVED, refusal
        return self._rules.oracle.serving(self._queue, self._entry, what, amount), refusal

    @property
    def _takes_by_force(self) -> bool:
        if self._queue.borrows_by_force:
            return True
        never = self._queue.spec.preemption.reclaim_within_cohort == NEVER
        return self._rules.shares_fairly and not never

    def _refusal(self) -> Refusal:
        worst = max(self._refusals, key=_severity, default=None)
        if worst is None:
            return Refusal(WAITING_FOR_QUOTA, "insufficient unused quota")
        texts = "; ".join(dict.fromkeys(each.message for each in self._refusals))
        return Refusal(worst.reason, texts)


def _severity(refusal: Refusal) -> int:
    return SEVERITY.get(refusal.reason, len(SEVERITY))


def _least_severe(refusals: Sequence[Refusal]) -> Refusal | None:
    """The reason of alternatives: whatever would be easiest to come by."""
    if not refusals:
        return None
    reason = min(refusals, key=_severity).reason
    return Refusal(reason, ", ".join(dict.fromkeys(each.message for each in refusals)))


def _more_severe(one: Refusal | None, other: Refusal) -> Refusal:
    if one is None:
        return other
    reason = max(one, other, key=_severity).reason
    return Refusal(reason, f"{one.message}, {other.message}")

"""The search for flavors: for each pod set, and each group of resources, the first flavor that serves well enough, or the best there is.

Pod sets that are placed together (a group) are served as one. Each takes into account what those before it would use. The search stops
with the first that cannot be served at all, because a workload gets everything or nothing.

Where the search may stop before the last flavor, the position is kept: if the workload comes to nothing with that flavor, it goes on with
the next one when it is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from drayman.api.errors import SelectorError
from drayman.api.kueue import ResourceFlavorSpec, ResourceGroup
from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import FlavorResource, plus, quantity_of, times
from drayman.quota.cluster_queues import NEVER, ClusterQueueState
from drayman.quota.demands import PodSetDemand, Unpriced
from drayman.quota.entries import Entry, Refusal
from drayman.quota.flavors.assignment import Assignment, Choice, Mode, PodSetChoice
from drayman.quota.flavors.matching import mismatch
from drayman.quota.flavors.ranks import UNSERVED, Rank, Serving, goes_on, is_better
from drayman.quota.reasons import (
    EXCEEDS_MAX_QUOTA,
    MISCONFIGURED,
    NO_MATCHING_FLAVOR,
    SEVERITY,
    WAITING_FOR_QUOTA,
)
from drayman.quota.tree.ledger import Usage


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


class _Unit(Struct, frozen=True):
    """Pod sets that get the same flavors."""

    demands: tuple[PodSetDemand, ...]
    requests: tuple[dict[str, int], ...]
    """Of each pod set."""

    @property
    def total(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for each in self.requests:
            total = plus(total, each)
        return total


class _Found(Struct, frozen=True):
    """What the flavors of one resource group offer."""

    choices: dict[str, Choice]
    tried: int | None
    """The flavor at which the search stopped; None: it went on to the last."""
    refusal: Refusal | None


class Assigner:
    """The search for one workload."""

    def __init__(self, rules: Rules, queue: ClusterQueueState, entry: Entry) -> None:
        self._rules = rules
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
        for unit in self._units(demands, sizes):
            found = self._serve(unit)
            if found is None:
                mode = Mode.NO_FIT
                break
            for demand, requests in zip(unit.demands, unit.requests, strict=True):
                kept = {name: choice for name, choice in found.items() if name in requests}
                count = sizes[demands.index(demand)]
                served[demand.name] = PodSetChoice(demand, count, requests, kept)
            mode = min(mode, *(each.mode for each in found.values())) if found else mode
        return Assignment(
            tuple(served[each.name] for each in demands if each.name in served),
            mode,
            Usage(dict(self._usage)),
            dict(self._positions),
            None if mode is Mode.FIT else self._refusal(),
        )

    def _units(self, demands: Sequence[PodSetDemand], sizes: Sequence[int]) -> list[_Unit]:
        counts_pods = PODS in self._queue.groups
        groups: dict[str, list[int]] = {}
        for index, demand in enumerate(demands):
            together = demand.topology.pod_set_group_name if demand.topology else None
            groups.setdefault(together or f"\0{index}", []).append(index)
        units = []
        for members in groups.values():
            requests = []
            for index in members:
                asked = plus(times(demands[index].per_pod, sizes[index]), demands[index].once)
                if counts_pods:
                    asked[PODS] = sizes[index]
                requests.append(asked)
            units.append(_Unit(tuple(demands[index] for index in members), tuple(requests)))
        return units

    def _serve(self, unit: _Unit) -> dict[str, Choice] | None:
        """Flavors for all resources of a unit, or None if there is one that it cannot get."""
        wanted = unit.total
        chosen: dict[str, Choice] = {}
        positions: dict[tuple[str, str], int] = {}
        for resource in sorted(wanted):
            if resource in chosen:
                continue
            group = self._queue.groups.get(resource)
            if group is None:
                if wanted[resource] == 0 or self._rules.ignores_undeclared:
                    continue
                text = f"resource {resource} unavailable in ClusterQueue"
                self._refusals.append(Refusal(NO_MATCHING_FLAVOR, text))
                return None
            asked = {name: wanted[name] for name in group.covered_resources if name in wanted}
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
            self._usage[what] = self._usage.get(what, 0) + wanted[resource]
        return chosen

    def _search(
        self, unit: _Unit, group: ResourceGroup, resource: str, asked: Mapping[str, int]
    ) -> _Found:
        """Go through the flavors of a group, from where the last search stopped."""
        fungibility = self._queue.spec.flavor_fungibility
        best, choices = UNSERVED, dict[str, Choice]()
        refusals: list[Refusal] = []
        tried = -1
        start = self._entry.positions.get((unit.demands[0].name, resource), -1) + 1
        for index in range(start, len(group.flavors)):
            tried = index
            flavor = group.flavors[index].name
            serving, offered, refusal = self._offer(unit, flavor, asked)
            if refusal is not None:
                refusals.append(refusal)
            borrows = any(each.borrowing > 0 for each in offered.values())
            if not goes_on(serving, borrows=borrows, fungibility=fungibility):
                best, choices = serving, offered
                break
            if is_better(serving, best, fungibility):
                best, choices = serving, offered
        stopped = tried if 0 <= tried < len(group.flavors) - 1 else None
        fits = all(each.rank is Rank.FIT for each in choices.values()) and bool(choices)
        return _Found(choices, stopped, None if fits else _least_severe(refusals))

    def _offer(
        self, unit: _Unit, flavor: str, asked: Mapping[str, int]
    ) -> tuple[Serving, dict[str, Choice], Refusal | None]:
        """How one flavor would serve: as badly as it serves the resource that it serves worst."""
        problem = self._mismatch(unit, flavor)
        if problem is not None:
            return UNSERVED, {}, problem
        fungibility = self._queue.spec.flavor_fungibility
        worst = Serving(Rank.FIT)
        choices: dict[str, Choice] = {}
        refusal: Refusal | None = None
        for resource, amount in asked.items():
            what = FlavorResource(flavor, resource)
            total = amount + self._usage.get(what, 0)
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

    def _mismatch(self, unit: _Unit, flavor: str) -> Refusal | None:
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
        available = max(0, place.available(what))
        if amount <= available:
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

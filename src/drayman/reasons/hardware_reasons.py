"""Why no node takes a pod even with nothing in use: a person's decision, the wrong place, or hardware that cannot do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from drayman.allocator import Question
from drayman.allocator.problem.focus import selectors_of
from drayman.inventory.device import DeviceRecord
from drayman.inventory.pool import ResolvedPool
from drayman.inventory.view import NodeView
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, Cause, Verdict
from drayman.placement.refusing import DevicesVerdict
from drayman.placement.state import ClusterState
from drayman.reasons.causes import DECIDED, HARDWARE, PLACES, POOLS
from drayman.reasons.device_reasons import (
    HOPELESS,
    ON_NO_NODE,
    DeviceLack,
    RequestKey,
    closest,
    lack_ever,
    lacking_requests,
)
from drayman.reasons.finding import ELIGIBLE, Finding, Group, furthest, grouped
from drayman.reasons.node_fit import about_node
from drayman.reasons.prospects import Prospects, Supposition
from drayman.reasons.reason import Outlook, Reason
from drayman.reasons.unknown_names import unknown_name


def found_ever(
    state: ClusterState, demand: Demand, prospects: Prospects, now: Mapping[str, Verdict]
) -> Finding:
    """Why a pod that no node takes with nothing in use has to wait."""
    if any(claim.metadata.uid in demand.timed_out for claim in demand.held):
        return Finding(Reason.BINDING_FAILED)
    emptied = dict(prospects.emptied(demand).refusals())
    untainted = prospects.untainted(demand)
    refusals = untainted.refusals()
    limited = [g for g in grouped(emptied, state.nodes) if g.verdict.cause is Cause.SEARCH_LIMIT]
    if limited:
        return Finding(Reason.SEARCH_LIMIT, tuple(limited))
    elsewhere = _elsewhere(state, demand, refusals, untainted)
    if elsewhere is not None:
        at_home = now.get(demand.only_node or "")
        why = "" if at_home is None else ", ".join(about_node(at_home))
        return replace(elsewhere, detail=why)
    able = [name for name in state.nodes if name not in refusals]
    if able:
        best = furthest(grouped(emptied, able))
        # What a plan takes of the node may depend on which devices are available.
        reason = DECIDED.get(best[0].verdict.cause, Reason.DEVICES_TAINTED)
        return Finding(reason, tuple(best), closest(best))
    return _Hardware(state, demand, untainted, refusals).finding()


def _elsewhere(
    state: ClusterState,
    demand: Demand,
    refusals: Mapping[str, Verdict],
    untainted: Supposition,
) -> Finding | None:
    """Something else that the pod needs is in the wrong place."""
    groups = [g for g in grouped(refusals, state.nodes) if g.verdict.cause in PLACES]
    if demand.asks_for_devices:
        # A node that also lacks the devices is not one of those that could serve.
        groups = [
            Group(group.verdict, nodes)
            for group in groups
            if (nodes := tuple(n for n in group.nodes if _serves(untainted, group.verdict, n)))
        ]
    best = furthest(groups)
    return Finding(PLACES[best[0].verdict.cause], tuple(best)) if best else None


def _serves(untainted: Supposition, verdict: Verdict, name: str) -> bool:
    return verdict.cause is Cause.CLAIM_ELSEWHERE or untainted.devices_verdict(name) is FITS


@dataclass(frozen=True, slots=True)
class _Case:
    """What is wrong with a node, and how far it came."""

    reason: Reason
    rank: tuple[int, int]
    lack: DeviceLack | None = None
    detail: str = ""

    @property
    def missing(self) -> int:
        """How many more devices would be enough."""
        shortage = None if self.lack is None else self.lack.shortage
        return 0 if shortage is None else shortage.wanted - shortage.matching


class _Hardware:
    """Looks for what the hardware lacks."""

    def __init__(
        self,
        state: ClusterState,
        demand: Demand,
        untainted: Supposition,
        refusals: Mapping[str, Verdict],
    ) -> None:
        self._state = state
        self._demand = demand
        self._untainted = untainted
        self._refusals = refusals
        self._judged = self._alike()
        self._everywhere = self._lacking_everywhere()

    def finding(self) -> Finding:
        """What is wrong with the nodes that came furthest."""
        cases: dict[Reason, dict[_Case, list[str]]] = {}
        for (verdict, devices, _), names_alike in self._judged.items():
            case = self._case(names_alike[0], verdict, devices)
            cases.setdefault(case.reason, {}).setdefault(case, []).extend(names_alike)
        reason = max(cases, key=lambda reason: _weight(reason, cases[reason]))
        best = min(cases[reason], key=lambda case: (case.missing, -len(cases[reason][case])))
        names = {name for found in cases[reason].values() for name in found}
        groups = tuple(grouped(self._refusals, (n for n in self._state.nodes if n in names)))
        shortage = None if best.lack is None else best.lack.shortage
        if reason in (Reason.NO_SUCH_DEVICE, Reason.SELECTOR_INVALID):
            unknown = unknown_name(self._state, self._demand, shortage)
            if unknown:
                return Finding(Reason.ATTRIBUTE_UNKNOWN, groups, shortage, unknown)
        if reason in ON_NO_NODE and shortage is not None and not best.detail:
            return self._as_elsewhere(Finding(reason, groups, shortage))
        return Finding(reason, groups, shortage, best.detail)

    def _as_elsewhere(self, found: Finding) -> Finding:
        """A reason that speaks of all nodes, or what is true of them if some would serve the request."""
        if self._everywhere is None:
            return replace(found, detail=ELIGIBLE)
        if self._everywhere:
            return found
        everything = tuple(grouped(self._refusals, self._state.nodes))
        return Finding(Reason.REQUESTS_CONFLICT, everything, found.shortage)

    def _lacking_everywhere(self) -> frozenset[RequestKey] | None:
        """The requests for which no node has enough; None if the devices of some node, where the pod may not go, would do."""
        everywhere: frozenset[RequestKey] | None = None
        for _, devices, _ in self._judged:
            if not isinstance(devices, DevicesVerdict):
                return None
            if devices.shortages:  # otherwise the claims make no sense, which is no matter of nodes
                here = lacking_requests(devices)
                everywhere = here if everywhere is None else everywhere & here
        return frozenset() if everywhere is None else everywhere

    def _alike(self) -> dict[tuple[Verdict, Verdict, str], list[str]]:
        """The nodes by what decides their case: thousands say the same. A node with a troubled pool is a group by itself."""
        found: dict[tuple[Verdict, Verdict, str], list[str]] = {}
        for name, verdict in self._refusals.items():
            devices, trouble = verdict, ""
            if self._demand.asks_for_devices:
                if verdict.cause is not Cause.DEVICES:
                    devices = self._untainted.devices_verdict(name)
                if self._state.view(self._state.nodes[name]).problems:
                    trouble = name
            key = (verdict, devices, trouble)
            known = found.get(key)
            if known is None:
                found[key] = [name]
            else:
                known.append(name)
        return found

    def _case(self, name: str, verdict: Verdict, devices: Verdict) -> _Case:
        if not self._demand.asks_for_devices:
            return _Case(HARDWARE[verdict.cause], (2, verdict.cause))
        fits = verdict.cause is Cause.DEVICES
        if not isinstance(devices, DevicesVerdict):
            # The node is wrong and its devices are not; or both, which makes no difference then.
            return _Case(HARDWARE.get(verdict.cause, Reason.NODE_TOO_SMALL), (2, verdict.cause))
        lack = lack_ever(devices, self._state.inventory.features, self._everywhere or frozenset())
        pool = self._troubled(name) if fits else None
        if pool is not None:
            return _Case(pool[0], (5, 0), detail=pool[1])
        if lack.reason is Reason.POOL_INVALID:
            # The request wants all devices there are, and that cannot be known.
            pools = self._state.view(self._state.nodes[name]).problems
            reason = POOLS[pools[0].state] if pools else lack.reason
            return _Case(reason, (5, 0), lack)
        if lack.reason in HOPELESS:
            return _Case(lack.reason, (0, lack.hope), lack)
        if lack.reason.kind is Outlook.HELD:
            return _Case(lack.reason, (4, lack.hope), lack)
        return _Case(lack.reason, (3 if fits else 1, lack.hope), lack)

    def _troubled(self, name: str) -> tuple[Reason, str] | None:
        node = self._state.nodes[name]
        view = self._state.view(node)
        if not view.problems:
            return None
        pool = _troubled_pool(view, self._demand.on(node.facts).question)
        if pool is None or pool.state not in POOLS:
            return None
        return POOLS[pool.state], f"{pool.id} is {pool.state.value}: {pool.reason}"


def _weight(reason: Reason, cases: Mapping[_Case, list[str]]) -> tuple[tuple[int, int], int, str]:
    """How far the nodes with a reason came, then how many they are."""
    furthest_rank = max(case.rank for case in cases)
    return furthest_rank, sum(len(names) for names in cases.values()), reason.value


def _troubled_pool(view: NodeView, question: Question) -> ResolvedPool | None:
    """A pool of the node that is incomplete or invalid, and may have devices for a request.

    It has some if one of its devices passes the selectors, and it may have some if no device is visible.
    """
    for problem in view.problems:
        if problem.foreign:
            continue
        if not problem.published:
            return problem
        for selectors in selectors_of(view, question):
            if selectors is not None and _any_passes(view, selectors, problem.published):
                return problem
    return None


def _any_passes(view: NodeView, selectors: Sequence[str], devices: Sequence[DeviceRecord]) -> bool:
    return any(all(view.hardware.accepts(s, device) for s in selectors) for device in devices)

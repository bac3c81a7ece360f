"""Why the devices of one node do not serve a claim, regardless of other nodes."""

from __future__ import annotations

from drayman.allocator import RejectionReason as Test
from drayman.placement.demand import Demand
from drayman.placement.fit import Verdict
from drayman.placement.refusing import DevicesVerdict, decisive, name_claims
from drayman.placement.state import ClusterState
from drayman.reasons.device_reasons import found_now, lack_ever
from drayman.reasons.finding import Finding, Group
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.sentences import sentence


def device_limit(
    state: ClusterState,
    demand: Demand,
    node: str,
    verdict: Verdict,
    planned: Planned | None = None,
) -> Headline:
    """The reason that follows from the verdict on a node's devices."""
    found = _finding(state, demand, Group(verdict, (node,)))
    text = name_claims(sentence(state, demand, found, planned), demand.open)
    return Headline.of(found.reason, text)


def _finding(state: ClusterState, demand: Demand, group: Group) -> Finding:
    verdict = group.verdict
    if not isinstance(verdict, DevicesVerdict):
        return Finding(Reason.SEARCH_LIMIT, (group,))
    if verdict.is_temporary:
        return found_now([group], demand, pooled=False)
    for shortage in decisive(verdict.shortages):
        if shortage.lost_to(Test.TAINTED) and shortage.matching >= shortage.wanted:
            return Finding(Reason.DEVICES_TAINTED, (group,), shortage)
    lack = lack_ever(verdict, state.inventory.features)
    return Finding(lack.reason, (group,), lack.shortage)

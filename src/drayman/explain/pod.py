"""Everything about one pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import nullcontext

import msgspec

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_finished
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.explain.answer import Explanation
from drayman.explain.choice import choice_for, choice_of_running
from drayman.explain.driver_steps import driver_steps
from drayman.explain.estimates import Prospect, Prospects
from drayman.explain.funnel import funnels, node_fit_steps
from drayman.explain.gang import GangFinding, Gangs, headline_of
from drayman.explain.hidden import UNTRIED, as_far_as_seen
from drayman.explain.holders import Holders, holders
from drayman.explain.nearest import nearest_miss, nearest_site
from drayman.explain.promised import Reserved, reserved_in, with_room_kept
from drayman.explain.queues.explaining import (
    QueuedHeadlines,
    explain_queued_pod,
    is_held_by_queue,
)
from drayman.explain.remedies.choosing import remedies_for
from drayman.explain.remedies.gangs import remedies_for_gang
from drayman.explain.remedies.replacing import replaced_pod
from drayman.explain.shares import with_share
from drayman.explain.spelling import KnownNames, misspelt
from drayman.explain.survey import Survey
from drayman.explain.values import mistaken_values
from drayman.inventory.identity import DeviceId
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import Fitting, NoNode
from drayman.placement.demand import Demand
from drayman.placement.fit import Verdict
from drayman.placement.lost_claims import lost_claims_of
from drayman.placement.nodes import NodeState
from drayman.placement.placing import Found, NotFound
from drayman.placement.world import World
from drayman.reasons.headline import Headlines
from drayman.reasons.lost import LOST
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Headline, Outlook, Reason
from drayman.reasons.refused_configs import refused_configs
from drayman.reasons.shared_network import unmovable_interfaces
from drayman.reasons.volumes import volumes_under_way
from drayman.reasons.waiting import before_nodes, demand_of, held_back, unscheduled
from drayman.reasons.wording import and_list


def explain_pod(
    world: World, pod: Pod, *, with_remedies: bool = True, planned: Planned | None = None
) -> Explanation:
    """Why the pod waits and what would help; where it would go, if it fits; or why it is where it is.

    `planned` is what the world has only because of a plan.
    """
    # A plan does not count what is reserved for workloads.
    counted = reserved_in(world) if planned is None else nullcontext(Reserved(world, None))
    with counted as reserved, reserved.as_seen_by(pod):
        found = _placed_or_not(world, pod, planned, reserved, with_remedies=with_remedies)
    found = msgspec.structs.replace(found, headline=unscheduled(world, pod, found.headline))
    if pod.status.phase == "Running" or is_finished(pod):
        return found
    refused = refused_configs(world, pod)
    return msgspec.structs.replace(found, refused_configs=refused) if refused else found


def _placed_or_not(
    world: World, pod: Pod, planned: Planned | None, reserved: Reserved, *, with_remedies: bool
) -> Explanation:
    if is_held_by_queue(world, pod):
        return explain_queued_pod(world, pod)
    if world.state.gangs.member(pod.metadata.uid) is not None:
        gangs = Gangs(world, planned)
        found = gangs.of(pod)
        if found is not None:
            return explain_member(
                world, pod, gangs, found, reserved, planned, with_remedies=with_remedies
            )
    early = held_back(world, pod)
    if early is not None:
        return _not_to_be_placed(world, pod, early, with_remedies=with_remedies)
    round_ = Decider(world.state).round(world.now)
    outcome = round_.consider(pod)
    early = before_nodes(world, outcome, pod)
    if early is not None:
        return _not_to_be_placed(world, pod, early, with_remedies=with_remedies)
    prospect = Prospects(world, reserved.nominations).of(pod)
    if isinstance(outcome, NoNode):
        base = _pending(world, pod, outcome, planned, reserved, with_remedies=with_remedies)
        first = reserved.with_workloads(base.headline, pod)
        first = with_share(world, with_room_kept(world, first, (pod,)), pod)
        return msgspec.structs.replace(base, headline=first, estimate=prospect.start(first))
    assert isinstance(outcome, Fitting)  # nothing else is being decided
    under_way = volumes_under_way(outcome.found) or prospect.held
    if under_way is not None:
        return _not_to_be_placed(world, pod, under_way, with_remedies=with_remedies)
    return _fits(world, round_, outcome)


def explain_member(
    world: World,
    pod: Pod,
    gangs: Gangs,
    found: GangFinding,
    reserved: Reserved,
    planned: Planned | None = None,
    *,
    with_remedies: bool = True,
) -> Explanation:
    """The same for a pod of a gang, about which nothing is decided without the others."""
    early = held_back(world, pod)
    prospect = Prospect() if early else Prospects(world, reserved.nominations).of(pod)
    early = early or prospect.held
    first = early or _of_member(world, pod, found)
    if early is not None or (first.reason.kind is Outlook.HELD and not _is_refused(pod, found)):
        base = _not_to_be_placed(world, pod, first, with_remedies=with_remedies)
    elif first.reason is Reason.FITS:
        seat = found.seats[pod.metadata.uid]
        base = explained(world, "Pod", pod.metadata, first)
        base = _going_there(base, world, seat.demand, seat.found)
    else:
        waiting = world.state.gangs.waiting(found.key).values()
        first = reserved.with_workloads(first, pod)
        first = with_room_kept(world, first, (member.pod for member in waiting))
        first = with_share(world, first, pod)
        base = _member_without_room(world, pod, first, planned, reserved)
        if with_remedies:
            help_ = remedies_for_gang(world, pod, gangs, found)
            base = msgspec.structs.replace(base, remedies=help_.remedies, untried=help_.untried)
    return msgspec.structs.replace(base, gang=gangs.answer(found), estimate=prospect.start(first))


def _is_refused(pod: Pod, found: GangFinding) -> bool:
    """Whether places were looked for, and there was none for the pod."""
    refusal = found.refusal
    is_seated = pod.metadata.uid in found.seats
    return refusal is not None and refusal.nearest is not None and not is_seated


def _of_member(world: World, pod: Pod, found: GangFinding) -> Headline:
    """What there is to say about a member without a node."""
    first = headline_of(found, pod)
    if first.reason is not Reason.FITS:
        return first
    seat = found.seats[pod.metadata.uid]
    early = before_nodes(world, Fitting(seat.demand, seat.found), pod)
    return early or volumes_under_way(seat.found) or as_far_as_seen(world.unseen, pod, first)


def _member_without_room(
    world: World, pod: Pod, first: Headline, planned: Planned | None, reserved: Reserved
) -> Explanation:
    """What nodes say to the pod, if they refuse it even without the others."""
    outcome = Decider(world.state).round(world.now).consider(pod)
    if not isinstance(outcome, NoNode):
        return explained(world, "Pod", pod.metadata, first)
    alone = _pending(world, pod, outcome, planned, reserved, with_remedies=False)
    return msgspec.structs.replace(alone, headline=first)


class PodHeadlines:
    """The headlines of many pods. Pods that ask for the same share one reason, which is found once."""

    def __init__(self, world: World, reserved: Reserved) -> None:
        self._world = world
        self._reserved = reserved
        self._round = Decider(world.state).round(world.now)
        self._headlines = Headlines(world.state)
        self._found: dict[Hashable, Found | NotFound] = {}
        self._gangs: Gangs | None = None
        self._prospects = Prospects(world, reserved.nominations)
        self._queued = QueuedHeadlines(world)

    def of(self, pod: Pod) -> Headline:
        with self._reserved.as_seen_by(pod):
            found = self._of(pod)
            held = self._prospects.of(pod).held if found.reason is Reason.FITS else None
        return unscheduled(self._world, pod, held or found)

    def _of(self, pod: Pod) -> Headline:
        if is_held_by_queue(self._world, pod):
            return self._queued.of_pod(pod)
        if self._world.state.gangs.member(pod.metadata.uid) is not None:
            early = held_back(self._world, pod)
            if early is not None:
                return early
            self._gangs = self._gangs or Gangs(self._world)
            gang = self._gangs.of(pod)
            if gang is not None:
                return self._reserved.with_workloads(_of_member(self._world, pod, gang), pod)
        demand = self.demand(pod)
        if isinstance(demand, Headline):
            return demand
        alike = (demand.key, self._reserved.view_of(pod))
        found = self._found.get(alike)
        if found is None:
            found = self._found[alike] = self._round.find(demand)
        if isinstance(found, NotFound):
            first = self._headlines.of(demand, found)
            return self._reserved.with_workloads(first, pod, demand.key)
        under_way = volumes_under_way(found)
        if under_way is not None:
            return under_way
        return as_far_as_seen(self._world.unseen, pod, _fits_line(found))

    def demand(self, pod: Pod) -> Demand | Headline:
        """What a pod asks of nodes, or why none is to be looked for."""
        return demand_of(self._world, self._round, pod)

    def devices_verdict(self, demand: Demand, node: NodeState) -> Verdict:
        """The verdict of a node's devices on that."""
        return self._round.placer(demand).devices_verdict(demand, node)


def explained(world: World, kind: str, metadata: ObjectMeta, headline: Headline) -> Explanation:
    """What every explanation of one object has."""
    return Explanation(
        kind=kind,
        name=metadata.name,
        namespace=metadata.namespace,
        headline=headline,
        nodes=len(world.state.nodes),
        unseen=world.unseen,
        evidence={**world.versions, kind.lower(): metadata.resource_version},
    )


def _not_to_be_placed(
    world: World, pod: Pod, first: Headline, *, with_remedies: bool
) -> Explanation:
    base = msgspec.structs.replace(
        explained(world, "Pod", pod.metadata, first), node=pod.spec.node_name
    )
    if pod.spec.node_name and not is_finished(pod):
        base = msgspec.structs.replace(base, devices=devices_of(world, pod))
        if first.reason is Reason.NOT_STARTED:
            base = msgspec.structs.replace(base, refused_devices=devices_refused(world, pod))
        if first.reason is not Reason.TERMINATING:
            choice = choice_of_running(world, pod)
            base = msgspec.structs.replace(
                base, alternatives=choice.alternatives, alignment=choice.alignment
            )
    if with_remedies and first.reason in (*LOST, Reason.CLAIM_UNALLOCATED):
        return msgspec.structs.replace(base, remedies=tuple(replaced_pod(world, pod, first.reason)))
    if pod.spec.node_name or first.reason.kind is None:
        return base
    if not with_remedies:
        return base
    help_ = remedies_for(world, pod, None, None)
    return msgspec.structs.replace(base, remedies=help_.remedies, untried=help_.untried)


def devices_refused(world: World, pod: Pod) -> tuple[str, ...]:
    """Which of its devices the node of a pod will not give to its containers."""
    given = _allocations(world.state.claims_used_by(pod))
    return unmovable_interfaces(world, pod.spec.node_name, given)


def devices_of(world: World, pod: Pod) -> tuple[str, ...]:
    """The devices that the claims of a pod have, and those that it keeps although their claim is lost."""
    results = [r for claim in world.state.claims_used_by(pod) for r in claim.status.results]
    results += [r for lost in lost_claims_of(pod) for r in lost.results]
    return tuple(dict.fromkeys(str(DeviceId.of(r)) for r in results))


def _fits(world: World, round_: Round, outcome: Fitting) -> Explanation:
    demand, found = outcome.demand, outcome.found
    survey = Survey(world.state, demand)
    first = as_far_as_seen(world.unseen, demand.pod, _fits_line(found))
    if first.reason is not Reason.FITS:
        return msgspec.structs.replace(
            explained(world, "Pod", demand.pod.metadata, first),
            node_fit=node_fit_steps(survey),
            funnels=funnels(survey, refused=False),
            untried=UNTRIED,
        )
    choice = choice_for(round_, demand, found)
    return msgspec.structs.replace(
        _going_there(explained(world, "Pod", demand.pod.metadata, first), world, demand, found),
        node_fit=node_fit_steps(survey),
        funnels=funnels(survey, refused=False),
        alternatives=choice.alternatives,
        alignment=choice.alignment,
    )


def _going_there(base: Explanation, world: World, demand: Demand, found: Found) -> Explanation:
    """With the node that a pod would go to, its devices there, and what keeps it from starting with them."""
    node = found.node.facts.name
    given = [] if found.plan is None else [item.allocation for item in found.plan.claims]
    return msgspec.structs.replace(
        base,
        node=node,
        devices=_planned(found),
        refused_devices=unmovable_interfaces(world, node, (*given, *_allocations(demand.held))),
    )


def _allocations(claims: Iterable[ResourceClaim]) -> Iterator[AllocationResult]:
    return (each.status.allocation for each in claims if each.status.allocation is not None)


def _fits_line(found: Found) -> Headline:
    devices = _planned(found)
    having = f" with {and_list(devices)}" if devices else ""
    return Headline.of(Reason.FITS, f"The pod can go to node {found.node.facts.name}{having}.")


def _planned(found: Found) -> tuple[str, ...]:
    if found.plan is None:
        return ()
    results = [r for item in found.plan.claims for r in item.allocation.devices.results]
    return tuple(dict.fromkeys(str(DeviceId.of(r)) for r in results))


def _pending(
    world: World,
    pod: Pod,
    outcome: NoNode,
    planned: Planned | None,
    reserved: Reserved,
    *,
    with_remedies: bool,
) -> Explanation:
    demand, not_found = outcome.demand, outcome.not_found
    first = Headlines(world.state, planned=planned).of(demand, not_found)
    survey = Survey(world.state, demand)
    # What an earlier attempt left behind is in the way everywhere: no node lacks anything.
    site = None if first.reason is Reason.CLAIM_LEFT_BEHIND else nearest_site(survey)
    searched = first.reason is not Reason.SEARCH_LIMIT
    known = Holders(world, reserved.by_holder)
    mistakes = mistaken_values(survey)
    base = msgspec.structs.replace(
        explained(world, "Pod", pod.metadata, first),
        node_fit=node_fit_steps(survey),
        funnels=funnels(survey, refused=searched and site is not None),
        nearest=site and nearest_miss(survey, site, known, searched=searched),
        spelling=misspelt(survey, KnownNames(world.objects.slices)),
        values=tuple(mistake.value for mistake in mistakes),
        driver_steps=driver_steps(world, demand.open, first.reason),
    )
    if first.reason.kind in (Outlook.NOT_NOW, Outlook.NOT_HERE):
        who, more = holders(survey, site, known)
        base = msgspec.structs.replace(base, holders=who, holders_left_out=more)
    if not with_remedies:
        return base
    help_ = remedies_for(world, pod, demand, not_found, base.spelling, mistakes)
    return msgspec.structs.replace(base, remedies=help_.remedies, untried=help_.untried)

"""The steps that a pod goes through in a plan. The first that has an answer decides.

Future rules, such as making room at the expense of others, are further steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias

from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.placement.costs import DeviceCosts
from drayman.placement.decision.deciding import Round
from drayman.placement.decision.outcomes import Fitting, NoNode
from drayman.placement.decision.placements import Placement
from drayman.placement.demand import Demand
from drayman.placement.fit import Verdict
from drayman.placement.placing import Found, NotFound
from drayman.placement.prices import amount_of
from drayman.placement.state import ClusterState
from drayman.placement.trial import Emptied
from drayman.placement.world import World
from drayman.reasons.headline import Headlines
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.waiting import before_nodes, held_back, named_in_vain
from drayman.simulate.plan_gangs import PlannedGangs
from drayman.simulate.plan_report import PlannedDevice, PlannedPod
from drayman.simulate.plan_turn import Turn


@dataclass(slots=True, eq=False)
class PlanContext:
    """The cluster that pods are tried on."""

    world: World
    round: Round
    waiting: set[tuple[str, str]] = field(default_factory=set)
    """Pods that were refused, by namespace and name."""
    gangs: PlannedGangs = field(init=False)
    _headlines: Headlines = field(init=False)
    _costs: DeviceCosts = field(init=False)
    _of_daemons: dict[tuple[str, Verdict], tuple[str, Headline]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        planned = planned_pods(self.world.state, self.world.objects.claims)
        self._headlines = Headlines(self.world.state, planned=planned)
        self.gangs = PlannedGangs(self.world, self.round, planned)
        nodes, view = self.world.state.nodes, self.world.state.view
        self._costs = DeviceCosts(lambda name: nodes[name].offer.price, lambda n: view(nodes[n]))

    def cost(self, placement: Placement) -> float | None:
        """By the hour, of what a pod gets on its node; None if the node has no price."""
        cost = self._costs.of_allocations(placement.node, placement.devices)
        return None if cost is None else amount_of(round(cost))

    def why(self, turn: Turn, demand: Demand, not_found: NotFound) -> Headline:
        """The headline of a refusal."""
        node = turn.expanded.node
        if not node:
            return self._headlines.of(demand, not_found)
        # Daemons differ only in their nodes. Where those say the same, so do the headlines.
        key = (turn.expanded.workload.metadata.uid, not_found.verdicts[node])
        known = self._of_daemons.get(key)
        if known is None:
            known = self._of_daemons[key] = (node, self._headlines.of(demand, not_found))
        first, found = known
        sentence = found.sentence.replace(first, node)
        return Headline(reason=found.reason, kind=found.kind, sentence=sentence)


def planned_pods(state: ClusterState, claims: Sequence[ResourceClaim]) -> Planned:
    """What the state has in use beyond what these claims (those of the cluster) hold has gone to pods of the plan."""

    @cache  # made when first needed: most plans fit
    def before() -> Emptied:
        return state.emptied(claims)

    return Planned(lambda name: before().view(state.nodes[name]), "pods that come before it")


Step: TypeAlias = Callable[[PlanContext, Turn], PlannedPod | None]
"""Decides about a pod, or leaves it to the next step."""


def wait_for_predecessor(context: PlanContext, turn: Turn) -> PlannedPod | None:
    """A pod of an ordered set is not made before its predecessor runs."""
    after = turn.expanded.after
    if not after or (turn.pod.metadata.namespace, after) not in context.waiting:
        return None
    text = f"The pod is not created until pod {after} runs."
    return turn.result(waits=Headline.of(Reason.NO_PODS, text))


def keep_the_named_node(context: PlanContext, turn: Turn) -> PlannedPod | None:
    """A pod that names its node is not placed by the scheduler, which gives it no devices either."""
    node = turn.pod.spec.node_name
    if not node:
        return None
    why = named_in_vain(context.world, turn.pod)
    context.world.state.set_placed_pod(turn.pod)
    return turn.result(node) if why is None else turn.result(waits=why)


def wait_for_others(context: PlanContext, turn: Turn) -> PlannedPod | None:
    """There may be nothing to decide about a pod yet."""
    why = held_back(context.world, turn.pod)
    return None if why is None else turn.result(waits=why)


def start_with_the_gang(context: PlanContext, turn: Turn) -> PlannedPod | None:
    """A pod of a gang has its turn together with the others."""
    why = context.gangs.decide(turn)
    if why is not None:
        return turn.result(waits=why)
    if turn.placement is None or turn.demand is None or turn.found is None:
        return None
    return turn.result(turn.placement.node, tuple(_devices(turn.demand, turn.found)))


def find_a_place(context: PlanContext, turn: Turn) -> PlannedPod | None:
    """What the scheduler would do, which sees pods before it decides about them: queues count them."""
    context.world.state.queues.see(turn.pod)
    outcome = context.round.consider(turn.pod, turn.expanded.node)
    why = before_nodes(context.world, outcome, turn.pod)
    if why is not None:
        return turn.result(waits=why)
    if isinstance(outcome, NoNode):
        turn.demand, turn.not_found = outcome.demand, outcome.not_found
        return None
    assert isinstance(outcome, Fitting)  # all that was decided before was in the same round
    demand, found = outcome.demand, outcome.found
    turn.placement = context.round.place(demand, found)
    devices = tuple(_devices(demand, found))
    cost = context.cost(turn.placement) if devices else None
    return turn.result(turn.placement.node, devices, cost_per_hour=cost)


def say_why_not(context: PlanContext, turn: Turn) -> PlannedPod | None:
    """No step found a place."""
    if turn.demand is None or turn.not_found is None:
        return None
    return turn.result(waits=context.why(turn, turn.demand, turn.not_found))


STEPS: Final[tuple[Step, ...]] = (
    keep_the_named_node,
    wait_for_predecessor,
    wait_for_others,
    start_with_the_gang,
    find_a_place,
    say_why_not,
)


def _devices(demand: Demand, found: Found) -> Iterator[PlannedDevice]:
    """What the pod would have: what its claims already have, and what they would get."""
    for claim in demand.held:
        if claim.status.allocation is not None:
            yield from _results(claim, claim.status.allocation)
    for item in () if found.plan is None else found.plan.claims:
        yield from _results(item.claim, item.allocation)


def _results(claim: ResourceClaim, allocation: AllocationResult) -> Iterator[PlannedDevice]:
    for result in allocation.devices.results:
        yield PlannedDevice(
            claim=claim.metadata.name,
            request=result.request,
            driver=result.driver,
            pool=result.pool,
            device=result.device,
        )

"""Why here: the candidate nodes for a pod, in the order in which they would be chosen, and what decides between them.

For a running pod, what it holds is disregarded first, so that its own node competes with the others as if the pod were new. The cluster has
changed since, so its node need not be the first any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec import Struct

from drayman.allocator import ReachedLevel
from drayman.api.core import Pod
from drayman.explain.alignment import held_alignments, planned_alignments
from drayman.explain.answer import Alternative, StatedAlignment
from drayman.explain.qualities import quality_numbers
from drayman.placement.alignment import note_on
from drayman.placement.claims import ClaimsNotReadyError, claims_of, without_devices
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.demand import Demand
from drayman.placement.outlook import DEVICE
from drayman.placement.placing import Found, NodeStanding
from drayman.placement.prices import amount_of
from drayman.placement.state import ClusterState
from drayman.placement.world import World
from drayman.reasons.node_fit import NodeFit
from drayman.reasons.wording import and_list

MOST_ALTERNATIVES: Final = 5


class Choice(Struct, frozen=True):
    """The best nodes for a pod, and what is stated about the places of its devices."""

    alternatives: tuple[Alternative, ...] = ()
    alignment: tuple[StatedAlignment, ...] = ()


def choice_for(round_: Round, demand: Demand, found: Found) -> Choice:
    """For a pod that has no node yet, including the one that was found for it."""
    standings = round_.placer(demand).standings(demand)
    stated = planned_alignments(found.wanted.claims, levels_of(found), standings)
    return Choice(_listed(standings, found.node.facts.name), stated)


def choice_of_running(world: World, pod: Pod) -> Choice:
    """For a pod that has a node, including its own. Nothing if its claims are not what they were."""
    state, chosen = world.state, pod.spec.node_name
    held = state.claims_used_by(pod)
    with as_if_new(world, pod) as demand:
        if demand is None:
            return Choice()
        round_ = Decider(state).round(world.now)
        standings = round_.placer(demand).standings(demand)
        listed = _listed(standings, chosen)
        if not any(item.chosen for item in listed):
            listed = (*listed, _refused(state, demand, chosen))
        names = [claim.metadata.name for claim in demand.open]
        mine = [claim for name in names for claim in held if claim.metadata.name == name]
        others = [claim for claim in held if claim not in mine]
        found = round_.find(demand) if any(map(note_on, mine)) else None
        levels = levels_of(found) if isinstance(found, Found) else ()
        stated = held_alignments(mine, levels, standings)
    return Choice(listed, (*stated, *held_alignments(others)))


def levels_of(found: Found) -> tuple[ReachedLevel, ...]:
    """The level that each stated alignment reaches on a node that was found."""
    return () if found.plan is None else found.plan.levels


@contextmanager
def as_if_new(world: World, pod: Pod) -> Iterator[Demand | None]:
    """What a pod that has a node would ask for if it were new, on the state without it; None if its claims are not what they were."""
    state = world.state
    try:
        claims = claims_of(pod, state.find_claim)
    except ClaimsNotReadyError:
        yield None
        return
    own = [claim for claim in claims if state.gangs.uses_alone(pod, claim)]
    extended = state.extended_claim_of(pod.metadata.uid)
    if extended is not None:
        own.append(extended)
    with state.trial():
        state.remove_pod(pod.metadata.uid)
        for claim in own:
            state.remove_claim(claim)
        unplaced = msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, node_name="")
        )
        freed = [without_devices(claim) if claim in own else claim for claim in claims]
        yield Decider(state).round(world.now).demand_with(unplaced, freed)


def _listed(standings: Sequence[NodeStanding], chosen: str) -> tuple[Alternative, ...]:
    best = standings[:MOST_ALTERNATIVES]
    its_own = [s for s in standings[MOST_ALTERNATIVES:] if s.node.facts.name == chosen]
    return tuple(_alternative(standing, chosen) for standing in (*best, *its_own))


def _alternative(standing: NodeStanding, chosen: str) -> Alternative:
    name, offer = standing.node.facts.name, standing.node.offer
    return Alternative(
        node=name,
        chosen=name == chosen,
        preference=standing.wishes,
        price_per_hour=None if offer.price is None else amount_of(offer.price),
        spot=offer.is_spot,
        quality=quality_numbers(
            standing.quality, standing.lost, standing.loss.free * 1000 // DEVICE
        ),
        balance=standing.balance,
    )


def _refused(state: ClusterState, demand: Demand, chosen: str) -> Alternative:
    """The pod's node, if it would not be chosen again."""
    node = state.nodes.get(chosen)
    if node is None:
        return Alternative(node=chosen, chosen=True, refusal="the node is gone")
    unfit = NodeFit(state, demand).of(node)
    why = "its devices would not serve the claims" if unfit is None else and_list(unfit.reasons)
    return Alternative(node=chosen, chosen=True, refusal=why)

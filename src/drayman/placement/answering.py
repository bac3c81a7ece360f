"""What a single node answers for a pod: Kubernetes' rules in Kubernetes' order, then devices, then claims that have devices already.

This is the only list of the rules: the search for the best node, questions about a single node and explanations all evaluate it.

Thousands of nodes are alike, so the result of a device search is kept by node shape (`allocator.signature`) and reused for all nodes that
look the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec import Struct

from drayman.allocator import Exhausted, Outcome, Plan, Policy, Question, signature
from drayman.bounded import Bounded
from drayman.inventory.view import NodeView
from drayman.placement.demand import Demand, DevicesWanted
from drayman.placement.fit import (
    FITS,
    NO_NEIGHBOURS,
    NO_VOLUMES,
    Cause,
    NeighbourCheck,
    Verdict,
    VolumeCheck,
    usage_verdict,
    volume_check,
)
from drayman.placement.nodes import NodeState
from drayman.placement.outlook import Taken, taken_of
from drayman.placement.refusing import devices_verdict
from drayman.placement.searching import Searches
from drayman.placement.spending import NOT_FOR_SPOT
from drayman.placement.surroundings import Surroundings

Key = tuple[object, ...]
_MOST_ANSWERS: Final = 4096


class Checks(Struct, frozen=True, eq=False):
    """A pod's demand with what is computed once before nodes are asked. Valid until the next placement."""

    demand: Demand
    volumes: VolumeCheck = NO_VOLUMES
    neighbours: NeighbourCheck = NO_NEIGHBOURS

    @property
    def is_tied(self) -> bool:
        """Whether nodes differ for this pod in a way that no mark records, so that nothing may be kept."""
        if self.demand.only_node is not None:
            return True
        return self.volumes is not NO_VOLUMES and not self.volumes.is_indifferent


def prepared(state: Surroundings, demand: Demand) -> Checks:
    """What to ask the nodes of a cluster."""
    needs = demand.needs
    volumes = volume_check(needs, state.volumes) if needs.shape.volumes else NO_VOLUMES
    if volumes.refusal is not FITS or not state.neighbourhood.concerns(needs):
        return Checks(demand, volumes)
    return Checks(demand, volumes, state.neighbourhood.prepare(needs))


def node_verdict(state: Surroundings, checks: Checks, node: NodeState) -> Verdict:
    """The verdict of the first rule about nodes, volumes and other pods that refuses."""
    demand, facts = checks.demand, node.facts
    verdict = state.static_verdicts.verdict(demand.needs, facts)
    if verdict is not FITS:
        return verdict
    if node.offer.is_spot and not demand.spending.takes_spot:
        return NOT_FOR_SPOT
    verdict = usage_verdict(demand.needs, facts, node.usage, demand.delegated_on(facts))
    if verdict is not FITS:
        return verdict
    if checks.volumes is not NO_VOLUMES:
        verdict = checks.volumes.verdict(facts)
        if verdict is not FITS:
            return verdict
    return FITS if checks.neighbours is NO_NEIGHBOURS else checks.neighbours.verdict(facts)


class Answer(Struct, frozen=True):
    """What a node says, or a search of all nodes with one signature."""

    verdict: Verdict
    quality: Key = ()
    preference: int = 0
    exhausted: bool = False
    taken: Taken = ()
    """The devices of the node that the pod would get."""


_NO_DEVICES_WANTED: Final = Answer(FITS)
_NO_ROOM_FOR_MAPPED: Final = Answer(
    Verdict.refusal(
        Cause.DEVICE_RESOURCES,
        "not enough resources of the node for what the devices take of them",
        resolvable=True,
    )
)


class NodeAnswers:
    """Asks nodes on behalf of pods with the same demand, and keeps the results of searches."""

    def __init__(self, state: Surroundings, policy: Policy) -> None:
        self._state = state
        self._kept: Bounded[Hashable, Answer] = Bounded(_MOST_ANSWERS)
        self._epoch = -1
        self._last_plan: tuple[str, Plan] | None = None  # for the current pod, with its node
        self._searches = Searches(policy)

    def next_pod(self) -> None:
        """Forget the devices that were found: they are for the previous pod."""
        self._last_plan = None

    def keep_up(self) -> None:
        """Drop what was kept before hardware or rules changed."""
        if self._epoch != self._state.marks.epoch:
            self._epoch = self._state.marks.epoch
            self._kept.clear()

    def of(self, checks: Checks, node: NodeState, *, fresh: bool = False) -> Answer:
        """What a node says. With `fresh`, kept answers are not used."""
        verdict = node_verdict(self._state, checks, node)
        if verdict is not FITS:
            return Answer(verdict)
        demand = checks.demand
        answer = self.of_devices(demand, node, fresh=fresh)
        if answer.verdict is FITS and demand.held:
            verdict = demand.held_verdict(node.node)
            if verdict is not FITS:
                return Answer(verdict)
        return answer

    def of_devices(self, demand: Demand, node: NodeState, *, fresh: bool = False) -> Answer:
        """What the devices of a node say, whether or not the node itself accepts the pod."""
        wanted = demand.on(node.facts)
        if wanted.impossible is not None:
            return Answer(wanted.impossible)
        if not wanted.claims:
            return _NO_DEVICES_WANTED
        if fresh or self._state.mapped_devices or demand.only_node is not None:
            # A pod that is tied to a node asks once. Its placer serves pods of all shapes, so nothing may be kept.
            return self._searched(demand, node, wanted)
        view = self._state.view(node)
        shape = (wanted.delegated, signature(view, wanted.question))
        known = self._kept.get(shape)
        if known is None:
            known = self._kept[shape] = self._searched(demand, node, wanted)
            self._state.allowance.keep()
        return known

    def plan(self, demand: Demand, node: NodeState, wanted: DevicesWanted) -> Plan | None:
        """The devices for this pod on a node that is known to have them; None if that turns out to be wrong."""
        last = self._last_plan
        if last is not None and last[0] == node.facts.name:
            return last[1]
        view = self._state.view(node)
        outcome: Outcome | None = None if last is None else last[1].on(view, wanted.question)
        if outcome is None:
            outcome = self._search(view, wanted.question)
        if not isinstance(outcome, Plan) or not self._mapped_resources_fit(demand, node, outcome):
            # The kept answer does not hold, so no kept answer can be relied on.
            self._kept.clear()
            return None
        return outcome

    def _searched(self, demand: Demand, node: NodeState, wanted: DevicesWanted) -> Answer:
        view = self._state.view(node)
        outcome = self._search(view, wanted.question)
        if not isinstance(outcome, Plan):
            verdict = devices_verdict(outcome, wanted.claims)
            return Answer(verdict, exhausted=isinstance(outcome, Exhausted))
        if not self._mapped_resources_fit(demand, node, outcome):
            return _NO_ROOM_FOR_MAPPED
        self._last_plan = (node.facts.name, outcome)
        taken = taken_of(view.parts[0].hardware, outcome)
        return Answer(FITS, (outcome.quality,), outcome.preference_score, taken=taken)

    def _search(self, view: NodeView, question: Question) -> Outcome:
        state = self._state
        return self._searches.search(view, question, state.allowance, state.marks.epoch)

    def _mapped_resources_fit(self, demand: Demand, node: NodeState, plan: Plan) -> bool:
        """Whether the pod still fits once its devices have taken their share of the node's own resources."""
        if not self._state.mapped_devices:
            return True
        total = self._state.mapped_devices.requests_of(item.allocation for item in plan.claims)
        if not total:
            return True
        needs, facts = demand.needs.plus(total), node.facts
        return usage_verdict(needs, facts, node.usage, demand.delegated_on(facts)) is FITS

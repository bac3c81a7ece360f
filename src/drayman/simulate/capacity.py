"""How often a claim fits: now, with nothing in use, and what is used up first.

Copies of the claim are placed on each node one after the other, as the scheduler would, until the node refuses. Nodes that look the same to
the claim get the same answer (`allocator.signature`), so only one of them is filled. Devices that several nodes can reach belong to none of
them: nodes that would use such devices are filled one by one, each on top of the ones before.

The copies are not in use: what they take is distinguished from what others hold, and where a node takes no more even with nothing in use,
the reason is its hardware.

Only devices count. Processors, memory and the pods themselves are for `plan`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from drayman.allocator import Outcome, Plan, Policy, Question, search, signature
from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.api.struct import ApiStruct
from drayman.inventory.ledger import holdings_of
from drayman.inventory.view import NodeView
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, PodNeeds, Verdict
from drayman.placement.fit.readiness import closed_by
from drayman.placement.nodes import NodeState
from drayman.placement.placing import NotFound
from drayman.placement.refusing import devices_verdict
from drayman.placement.state import ClusterState
from drayman.placement.trial import Emptied
from drayman.placement.world import World
from drayman.reasons.causes import AS_HARDWARE
from drayman.reasons.headline import headline
from drayman.reasons.on_node import device_limit
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import counted

MOST_ON_A_NODE: Final = 1024
"""Copies that are tried on one node. Some claims take nothing, such as those with admin access, and would fit without end."""
_NO_NODES: Final = Headline.of(Reason.NO_NODES, "The cluster has no nodes.")


class NodeGroup(ApiStruct):
    """Nodes that take the same number of copies for the same reason."""

    nodes: tuple[str, ...]
    now: int
    """On each."""
    empty: int
    limit: Headline | None = None
    """Why no more fit on them now, worded for the first; None where there seems to be no end."""


class Capacity(ApiStruct):
    """How many copies of a claim fit."""

    claim: str
    now: int
    empty: int
    unbounded: bool = False
    """Whether at least one node takes copies without end; it is counted with as many as were tried."""
    groups: tuple[NodeGroup, ...] = ()
    """Those that take the most come first."""
    closed: Mapping[str, int] = {}
    """How many nodes take no pods at all, by reason."""
    runs_out: Headline | None = None
    """What runs out first on most of the nodes that take any; where none takes any, what most nodes lack."""
    unseen: tuple[str, ...] = ()
    evidence: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    """What drivers will refuse of what the manifest says, with file, line, object and field. Its claims get devices all the same."""


def capacity(world: World, claim: ResourceClaim) -> Capacity:
    """How often the claim fits. The state of the world is used, and left as it was."""
    state = world.state
    pod = Pod(metadata=ObjectMeta(name=claim.metadata.name, namespace=claim.metadata.namespace))
    demand = Decider(state).round(world.now).demand_with(pod, (claim,))
    open_nodes, closed = _open_nodes(state, demand.needs)
    if demand.impossible is not None:
        why = headline(state, demand, NotFound(dict.fromkeys(state.nodes, demand.impossible)))
        now = empty = dict.fromkeys(open_nodes, _Count(0, why))
    else:
        now = _Filling(world, demand, claim, state).counts(open_nodes)
        empty = _Filling(world, demand, claim, state.emptied(), explains=False).counts(open_nodes)
    groups = _groups(now, empty)
    return Capacity(
        claim=claim.metadata.name,
        now=sum(count.number for count in now.values()),
        empty=sum(count.number for count in empty.values()),
        unbounded=any(count.number >= MOST_ON_A_NODE for count in empty.values()),
        groups=groups,
        closed=closed,
        runs_out=_first_to_run_out(groups) if state.nodes else _NO_NODES,
        unseen=world.unseen,
        evidence=dict(world.versions),
    )


@dataclass(frozen=True, slots=True)
class _Count:
    """How many copies a node takes, and why no more."""

    number: int
    limit: Headline | None = None


@dataclass(slots=True)
class _Filling:
    """Fills nodes with copies of a claim."""

    world: World
    demand: Demand
    claim: ResourceClaim
    cluster: ClusterState | Emptied
    explains: bool = True
    _copies: int = 0
    _before: dict[str, NodeView] = field(default_factory=dict)
    """The nodes as they are without copies, by name."""
    _placed: int = 0
    """How many copies have devices at present."""

    def counts(self, nodes: Sequence[NodeState]) -> dict[NodeState, _Count]:
        alike: dict[Hashable, list[NodeState]] = {}
        question = Question((self.claim,))
        for node in nodes:
            view = self._before[node.facts.name] = self.cluster.view(node)
            alike.setdefault(signature(view, question), []).append(node)
        found: dict[NodeState, _Count] = {}
        together: list[NodeState] = []
        for group in alike.values():
            count, is_local = self._filled(group[:1], question)[group[0]]
            if is_local:
                found.update(dict.fromkeys(group, count))
            else:
                together.extend(group)
        filled = self._filled(together, question)
        found.update((node, count) for node, (count, _) in filled.items())
        return {node: found[node] for node in nodes}

    def _filled(
        self, nodes: Sequence[NodeState], question: Question
    ) -> dict[NodeState, tuple[_Count, bool]]:
        """What each of the nodes takes on top of the ones before it. All copies are removed afterwards."""
        self._placed = 0
        with self.cluster.trial():
            return {node: self._fill(node, question) for node in nodes}

    def _fill(self, node: NodeState, question: Question) -> tuple[_Count, bool]:
        """How many copies the node takes, and whether everything they take belongs to it alone."""
        is_local = True
        for number in range(MOST_ON_A_NODE):
            copy = self._copy()
            outcome = search(
                self.cluster.view(node), question.asked_for((copy,)), policy=Policy.BEST
            )
            if not isinstance(outcome, Plan):
                return _Count(number, self._limit(node, outcome, number)), is_local
            taken = [h for item in outcome.claims for h in holdings_of(item.allocation)]
            if not taken:
                break
            is_local &= not any(self.world.state.is_floating(h.device.pool_id) for h in taken)
            self.cluster.assume_plan(outcome)
            self._placed += 1
        return _Count(MOST_ON_A_NODE), is_local

    def _limit(self, node: NodeState, outcome: Outcome, copies: int) -> Headline | None:
        if not self.explains or isinstance(outcome, Plan):
            return None
        verdict = devices_verdict(outcome, (self.claim,))
        planned = Planned(self._before.__getitem__, "copies") if self._placed else None
        name = node.facts.name
        found = device_limit(self.world.state, self.demand, name, verdict, planned)
        if not copies:
            return found
        return Headline.of(
            found.reason, f"After {counted(copies, 'copy', 'copies')}: {found.sentence}"
        )

    def _copy(self) -> ResourceClaim:
        self._copies += 1
        uid = f"copy {self._copies} of {self.claim.metadata.name}"
        return replace(self.claim, metadata=replace(self.claim.metadata, uid=uid))


def _open_nodes(state: ClusterState, needs: PodNeeds) -> tuple[list[NodeState], dict[str, int]]:
    """The nodes that take pods, and how many do not, by reason."""
    found: list[NodeState] = []
    closed: dict[str, int] = {}
    for node in state.nodes.values():
        verdict: Verdict = state.static_verdicts.verdict(needs, node.facts)
        if verdict is FITS:
            found.append(node)
        else:
            why = closed_by(node.node)
            reason = " and ".join(w.words for w in why) if why else ", ".join(verdict.reasons)
            closed[reason] = closed.get(reason, 0) + 1
    return found, closed


def _groups(
    now: Mapping[NodeState, _Count], empty: Mapping[NodeState, _Count]
) -> tuple[NodeGroup, ...]:
    alike: dict[tuple[int, int, Reason | None], list[str]] = {}
    limits: dict[tuple[int, int, Reason | None], Headline | None] = {}
    for node, count in now.items():
        limit = count.limit
        if limit is not None and count.number and count.number == empty[node].number:
            limit = _of_hardware(limit)
        key = (count.number, empty[node].number, None if limit is None else limit.reason)
        alike.setdefault(key, []).append(node.facts.name)
        limits.setdefault(key, limit)
    made = (
        NodeGroup(nodes=tuple(names), now=key[0], empty=key[1], limit=limits[key])
        for key, names in alike.items()
    )
    return tuple(sorted(made, key=lambda g: (-g.now, -g.empty, g.nodes)))


def _of_hardware(limit: Headline) -> Headline:
    """What is said about a node that takes no more copies even with nothing in use: what is short could not be given back."""
    return Headline.of(AS_HARDWARE.get(limit.reason, limit.reason), limit.sentence)


def _first_to_run_out(groups: Sequence[NodeGroup]) -> Headline | None:
    useful = [group for group in groups if group.empty] or groups
    nodes: dict[str, int] = {}
    for group in useful:
        if group.limit is not None:
            word = group.limit.reason.value
            nodes[word] = nodes.get(word, 0) + len(group.nodes)
    if not nodes:
        return None
    commonest = max(nodes, key=lambda word: (nodes[word], word))
    return next(g.limit for g in useful if g.limit and g.limit.reason.value == commonest)

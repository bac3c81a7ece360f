"""Nodes for pods of one shape, best first.

Thousands of pods ask for the same thing, so what each node said (`answering`) is kept until something about that node changes. For each
further pod of a known shape, it only remains to look at the nodes that changed since the last one, take the best from a heap, and search
for devices on that one node.

A node that refused keeps refusing while resources are only taken. It is asked again when something on it, or in devices that it shares with
other nodes, is given back, and after any change of slices, classes or taints.

The order of nodes: what the user prefers, including taints that only discourage pods; the price where the pod leans to cheap or dear nodes
(`spending`); how well the devices are aligned; what later pods lose (`mix`); what else makes devices better for others; the balance of the
cluster; the order of arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Plan, Policy, Quality
from drayman.placement.answering import (
    Answer,
    Checks,
    Key,
    NodeAnswers,
    node_verdict,
    prepared,
)
from drayman.placement.demand import HELD_ELSEWHERE, Demand, DevicesWanted
from drayman.placement.fit import (
    FITS,
    NO_NEIGHBOURS,
    Cause,
    Verdict,
    VolumeChoice,
    balance,
    has_preferences,
    preferences,
    taint_scores,
)
from drayman.placement.marks import Position
from drayman.placement.mix import NO_MIX
from drayman.placement.nodes import NodeState
from drayman.placement.outlook import NO_LOSS, Loss
from drayman.placement.spending import price_rank
from drayman.placement.surroundings import Surroundings

_UNKNOWN: Final[Key] = ()  # sorts before every key: the node must be looked at first
_DEVICE_WEIGHT: Final = 2
NodeOrder: TypeAlias = Callable[[Demand, NodeState, Answer], Key]
"""What a node that takes a pod is ordered by; lower is better. It may depend on the pod and the node alone."""
_WHOLE: Final = 100


class Found(Struct, frozen=True):
    """A node for a pod, and the devices and volumes it gets there."""

    node: NodeState
    wanted: DevicesWanted
    plan: Plan | None
    volumes: VolumeChoice | None = None
    """For those of its volume claims that have no volume yet."""


class NotFound(Struct, frozen=True):
    """No node serves the pod."""

    verdicts: dict[str, Verdict]
    """By node."""
    retry: bool = False
    """Whether a search gave up without an answer: to be tried again, even if nothing changes."""


class NodeStanding(Struct, frozen=True):
    """A suitable node, and what it is ranked by."""

    node: NodeState
    wishes: int
    """How well it meets the stated preferences, higher is better; 0 if there are none."""
    quality: Key
    """Of the devices that the pod would get, lower is better; empty if it wants none."""
    balance: int
    """How much room would be left, and how evenly. Higher is better."""
    loss: Loss
    """What later pods would lose on the node."""
    lost: int
    """The same for the mean of them, in thousandths of a device."""
    key: Key
    """All of this but the wishes, and the price where that matters, in order. Lower is better."""


class Placer:
    """Finds nodes for pods with the same demand."""

    def __init__(self, state: Surroundings, policy: Policy, order: NodeOrder | None = None) -> None:
        """`order` replaces everything that nodes are ordered by after stated preferences."""
        self._state = state
        self._considers_others = policy is Policy.BEST and order is None
        self._order = order
        self._mix = NO_MIX
        self._answers = NodeAnswers(state, policy)
        self._heap: list[tuple[Key, int, str, int]] = []
        self._versions: dict[str, int] = {}  # of the valid heap entry, by node
        self._refusals: dict[str, Verdict] = {}
        self._exhausted: set[str] = set()
        self._version = 0
        self._epoch = -1
        self._read: Position | None = None  # how far the marks have been read
        self._freed = 0
        self._taken: dict[
            str, int
        ] = {}  # what was taken of shared devices when a node was last looked at
        self._not_found: NotFound | None = None

    def find(self, demand: Demand) -> Found | NotFound:
        """The best node for one pod of the shape."""
        self._answers.next_pod()
        checks = self._prepared(demand)
        if isinstance(checks, Verdict):
            return self._refused_everywhere(checks)
        if self._compares_all(checks) or checks.is_tied:
            return self._best_of_all(checks)
        self._catch_up()
        return self._best_by_heap(checks)

    def is_hopeless(self, demand: Demand) -> bool:
        """Whether the pod is blocked by something that does not depend on any node."""
        return isinstance(self._prepared(demand), Verdict)

    def found_on(self, demand: Demand, node: NodeState) -> Found | None:
        """What the pod would currently get on a node. Keeps nothing that depends on the node alone."""
        checks = prepared(self._state, demand)
        if self._answers.of(checks, node, fresh=True).verdict is not FITS:
            return None
        return self._take(checks, node)

    def standings(self, demand: Demand) -> list[NodeStanding]:
        """All suitable nodes, in the order in which `find` would take them."""
        checks = self._prepared(demand)
        if isinstance(checks, Verdict):
            return []
        _, fitting = self._verdicts(checks)
        wishes = [0] * len(fitting)
        if self._weighs_wishes(checks):
            wishes = self._wishes(checks, fitting)
        found = [
            self._standing(demand, node, answer, wish)
            for (node, answer), wish in zip(fitting, wishes, strict=True)
        ]
        return sorted(found, key=lambda s: (-s.wishes, s.key, s.node.index))

    def _standing(self, demand: Demand, node: NodeState, answer: Answer, wish: int) -> NodeStanding:
        loss = self._loss(demand, node, answer)
        return NodeStanding(
            node,
            wish,
            answer.quality,
            balance(demand.needs, node.facts, node.usage),
            loss,
            self._state.mix.mean(loss),
            self._rank(demand, node, answer),
        )

    def refusals(self, demand: Demand) -> Mapping[str, Verdict]:
        """The verdict of each node that does not serve the pod. For explanations; valid until the next question."""
        checks = self._prepared(demand)
        if isinstance(checks, Verdict):
            return self._refused_everywhere(checks).verdicts
        if checks.is_tied or checks.neighbours is not NO_NEIGHBOURS:
            return self._verdicts(checks)[0]
        self._catch_up()
        while self._heap and self._heap[0][0] is _UNKNOWN:
            _, _, name, version = self._heap[0]
            if self._versions.get(name) == version:
                self._look_at(checks, self._state.nodes[name])
            else:
                heapq.heappop(self._heap)
        return self._refusals

    def verdict_on(self, demand: Demand, node: NodeState) -> Verdict:
        """What one node says."""
        self._answers.keep_up()
        return self._answers.of(prepared(self._state, demand), node).verdict

    def node_verdict_on(self, demand: Demand, node: NodeState) -> Verdict:
        """What one node says, devices apart."""
        return node_verdict(self._state, prepared(self._state, demand), node)

    def devices_verdict(self, demand: Demand, node: NodeState) -> Verdict:
        """What the devices of a node say, whether or not the node itself accepts the pod."""
        return self._answers.of_devices(demand, node).verdict

    def _prepared(self, demand: Demand) -> Checks | Verdict:
        """What to ask nodes; or the verdict for all of them, where it does not depend on the node."""
        if demand.impossible is not None:
            return demand.impossible
        checks = prepared(self._state, demand)
        return checks if checks.volumes.refusal is FITS else checks.volumes.refusal

    def _refused_everywhere(self, verdict: Verdict) -> NotFound:
        return NotFound(dict.fromkeys(self._state.nodes, verdict))

    def _weighs_wishes(self, checks: Checks) -> bool:
        """Whether preferences rank the nodes."""
        return self._prefers(checks) or self._state.soft_taints > 0

    def _prefers(self, checks: Checks) -> bool:
        """Whether the pod, or pods around it, prefer some nodes, taints apart."""
        neighbours = checks.neighbours
        return neighbours is not NO_NEIGHBOURS or has_preferences(checks.demand.needs, neighbours)

    def _compares_all(self, checks: Checks) -> bool:
        """Whether a node's rank depends on other nodes, so that all of them are evaluated for each pod.

        Taints that discourage pods rank nodes one by one (`_discouragement`), unless they are weighed against alternatives of devices.
        """
        if self._prefers(checks):
            return True
        return self._state.soft_taints > 0 and checks.demand.has_alternatives

    def _discouragement(self, demand: Demand, node: NodeState) -> int:
        """How many taints of a node discourage the pod."""
        if not node.facts.shape.soft_taints or not self._state.soft_taints:
            return 0
        return taint_scores(demand.needs, (node.facts,))[0]

    # One pod after the other, from the heap.

    def _best_by_heap(self, checks: Checks) -> Found | NotFound:
        if self._not_found is not None and not self._heap:
            return self._not_found
        while self._heap:
            key, _, name, version = self._heap[0]
            if self._versions.get(name) != version:
                heapq.heappop(self._heap)
                continue
            node = self._state.nodes.get(name)
            if node is None:
                heapq.heappop(self._heap)
                continue
            if key is not _UNKNOWN and self._taken[name] == self._state.floating_taken:
                found = self._take(checks, node)
                if found is not None:
                    return found
            # Its entry in the heap is outdated then. It is not removed before, as looking may be interrupted.
            self._look_at(checks, node)
        self._not_found = NotFound(dict(self._refusals), bool(self._exhausted))
        return self._not_found

    def _look_at(self, checks: Checks, node: NodeState) -> None:
        """Find out whether and how well a node serves the pod, and record it."""
        name = node.facts.name
        answer = self._answers.of(checks, node)
        self._state.allowance.keep()
        self._taken[name] = self._state.floating_taken
        self._version += 1
        self._versions[name] = self._version
        self._exhausted.discard(name)
        if answer.verdict is FITS:
            self._refusals.pop(name, None)
            discouragement = self._discouragement(checks.demand, node)
            key = (discouragement, self._rank(checks.demand, node, answer))
            heapq.heappush(self._heap, (key, node.index, name, self._version))
        else:
            self._refusals[name] = answer.verdict
            if answer.exhausted:
                self._exhausted.add(name)

    def _take(self, checks: Checks, node: NodeState) -> Found | None:
        """The devices for this pod on a node that is known to have them."""
        demand = checks.demand
        wanted = demand.on(node.facts)
        volumes = None
        if checks.volumes.open:
            chosen = checks.volumes.choose(node.facts)
            if isinstance(chosen, Verdict):
                return None
            volumes = chosen
        if not wanted.claims:
            return Found(node, wanted, None, volumes)
        plan = self._answers.plan(demand, node, wanted)
        return None if plan is None else Found(node, wanted, plan, volumes)

    # All nodes for each pod, where pods affect each other or have preferences.

    def _best_of_all(self, checks: Checks) -> Found | NotFound:
        verdicts, fitting = self._verdicts(checks)
        for node in self._ranked(checks, fitting):
            found = self._take(checks, node)
            if found is not None:
                return found
        exhausted = any(v.cause is Cause.SEARCH_LIMIT for v in verdicts.values())
        return NotFound(verdicts, exhausted)

    def _verdicts(
        self, checks: Checks
    ) -> tuple[dict[str, Verdict], list[tuple[NodeState, Answer]]]:
        """The verdicts of the nodes that refuse, and the nodes that do not."""
        verdicts: dict[str, Verdict] = {}
        fitting: list[tuple[NodeState, Answer]] = []
        self._answers.keep_up()
        if checks.demand.only_node is not None:
            verdicts = dict.fromkeys(self._state.nodes, HELD_ELSEWHERE)
        for name, node in self._candidates(checks.demand):
            verdicts.pop(name, None)
            answer = self._answers.of(checks, node)
            if answer.verdict is FITS:
                fitting.append((node, answer))
            else:
                verdicts[name] = answer.verdict
        return verdicts, fitting

    def _ranked(
        self, checks: Checks, fitting: list[tuple[NodeState, Answer]]
    ) -> Iterable[NodeState]:
        wishes = self._wishes(checks, fitting)

        def key(item: tuple[int, tuple[NodeState, Answer]]) -> Key:
            position, (node, answer) = item
            return -wishes[position], self._rank(checks.demand, node, answer), node.index

        return [node for _, (node, _) in sorted(enumerate(fitting), key=key)]

    def _wishes(self, checks: Checks, fitting: list[tuple[NodeState, Answer]]) -> list[int]:
        """How well each node meets the stated preferences, devices included."""
        candidates = [node.facts for node, _ in fitting]
        liked = preferences(checks.demand.needs, candidates, checks.neighbours)
        most = max((answer.preference for _, answer in fitting), default=0)
        if not most:
            return liked
        return [
            wish + _DEVICE_WEIGHT * (answer.preference * _WHOLE // most)
            for wish, (_, answer) in zip(liked, fitting, strict=True)
        ]

    def _candidates(self, demand: Demand) -> Iterable[tuple[str, NodeState]]:
        if demand.only_node is None:
            return self._state.nodes.items()
        node = self._state.nodes.get(demand.only_node)
        return () if node is None else ((demand.only_node, node),)

    # Keeping up.

    def _catch_up(self) -> None:
        """Put every node that may have changed at the head of the heap."""
        state = self._state
        self._answers.keep_up()
        is_outdated = self._epoch != state.marks.epoch or self._mix is not state.mix
        if is_outdated or self._read is None:
            self._start_over()
            return
        if self._freed != state.floating_freed:
            self._freed = state.floating_freed
            for name, node in state.nodes.items():
                self._push_unknown(name, node)
        for name in dict.fromkeys(state.marks.since(self._read)):
            if name in state.nodes:
                self._push_unknown(name, state.nodes[name])
            else:
                self._versions.pop(name, None)
                self._refusals.pop(name, None)
                self._exhausted.discard(name)
                self._not_found = None
        self._read = state.marks.position

    def _start_over(self) -> None:
        state = self._state
        self._epoch, self._mix = state.marks.epoch, state.mix
        self._freed, self._read = state.floating_freed, state.marks.position
        self._refusals.clear()
        self._exhausted.clear()
        self._heap.clear()
        self._versions.clear()
        self._not_found = None
        for name, node in state.nodes.items():
            self._push_unknown(name, node)

    def _push_unknown(self, name: str, node: NodeState) -> None:
        self._version += 1
        self._versions[name] = self._version
        self._not_found = None
        heapq.heappush(self._heap, (_UNKNOWN, node.index, name, self._version))

    # The order of nodes.

    def _rank(self, demand: Demand, node: NodeState, answer: Answer) -> Key:
        """What a node that takes the pod is ordered by after stated preferences. Lower is better."""
        if self._order is not None:
            return self._order(demand, node, answer)
        price = price_rank(demand.spending, node.offer, answer.quality)
        loss = self._loss(demand, node, answer)
        room = -balance(demand.needs, node.facts, node.usage)
        found = [part for part in answer.quality if isinstance(part, Quality)]
        for_the_pod = [part.for_the_pod for part in found]
        for_others = [part.for_others for part in found]
        return *price, for_the_pod, loss.worth, for_others, loss.free, room

    def _loss(self, demand: Demand, node: NodeState, answer: Answer) -> Loss:
        """What the pods that come later lose if this one gets what it would get there."""
        state = self._state
        if not self._considers_others or (not state.mix.kinds and state.has_floating_devices):
            return NO_LOSS  # without a mix, free devices are counted, which says nothing of a node if others share them
        view = state.view(node)
        return state.mix.loss(view, node, demand.needs, answer.taken, state.marks.epoch)

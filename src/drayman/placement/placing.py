"""Nodes for pods of one shape, the best first.

Thousands of pods ask for the same thing, and thousands of nodes are alike. So answers are kept twice: a verdict for each node, until
something about that node changes, and a verdict for each node shape (`allocator.signature`), which serves all nodes that look the
same. What is left to do for one more pod of a known shape is to look at the nodes that changed since the last one, take the best from
a heap, and search devices on that one node.

A node that refused keeps refusing while others only take. It is asked again when something on it, or in devices that it shares with
other nodes, is given back, and after any change of slices, classes or taints.

The order of nodes: what the user prefers, then the quality of the devices, then the balance of the cluster, then the order of arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from drayman.allocator import Exhausted, Outcome, Plan, Policy, search, signature
from drayman.placement.demand import HELD_ELSEWHERE, Demand, DevicesWanted
from drayman.placement.fit import (
    FITS,
    NO_NEIGHBOURS,
    NO_VOLUMES,
    Cause,
    NeighbourCheck,
    Verdict,
    VolumeCheck,
    VolumeChoice,
    balance,
    has_preferences,
    preferences,
    usage_verdict,
    volume_check,
)
from drayman.placement.marks import Position
from drayman.placement.nodes import NodeState
from drayman.placement.refusing import devices_verdict
from drayman.placement.surroundings import Surroundings

Key = tuple[object, ...]
_UNKNOWN: Final[Key] = ()  # sorts before every key: a node to be looked at first
_MOST_ANSWERS: Final = 4096
_DEVICE_WEIGHT: Final = 2
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
    """Whether a search gave up before it knew: to be tried again, even if nothing changes."""


class Standing(Struct, frozen=True):
    """A node that will do, and what it is compared by."""

    node: NodeState
    wishes: int
    """How well it suits what users wrote down, higher is better; 0 where nobody did."""
    quality: Key
    """Of the devices that the pod would get, lower is better; empty if it wants none."""
    balance: int
    """How much room would be left, and how evenly. Higher is better."""


class _Answer(Struct, frozen=True):
    """What a search said of all nodes with one signature."""

    verdict: Verdict
    quality: Key = ()
    preference: int = 0
    exhausted: bool = False


_NO_DEVICES_WANTED: Final = _Answer(FITS)
_NO_ROOM_FOR_MAPPED: Final = Verdict.refusal(
    Cause.DEVICE_RESOURCES,
    "not enough resources of the node for what the devices take of them",
    resolvable=True,
)


class Placer:
    """Finds nodes for pods that ask for the same."""

    def __init__(self, state: Surroundings, policy: Policy) -> None:
        self._state = state
        self._policy = policy
        self._heap: list[tuple[Key, int, str, int]] = []
        self._versions: dict[str, int] = {}  # of the entry in the heap that counts, by node
        self._refusals: dict[str, Verdict] = {}
        self._answers: dict[Hashable, _Answer] = {}
        self._exhausted: set[str] = set()
        self._version = 0
        self._epoch = -1
        self._answers_epoch = -1
        self._read: Position | None = None  # how far, of the marks
        self._freed = 0
        self._taken: dict[
            str, int
        ] = {}  # what of shared devices was taken when a node was last looked at
        self._searched_last: tuple[str, Plan] | None = None  # for the pod at hand
        self._not_found: NotFound | None = None
        self._volumes: VolumeCheck = NO_VOLUMES  # of the pod at hand

    def find(self, demand: Demand) -> Found | NotFound:
        """The best node for one pod of the shape."""
        self._searched_last = None
        refusal = self._refused_everywhere(demand)
        if refusal is not None:
            return refusal
        check = self._check(demand)
        if self._weighs_wishes(demand, check) or self._is_tied(demand):
            return self._best_of_all(demand, check)
        self._catch_up()
        return self._best_by_heap(demand)

    def fits_on(self, demand: Demand, node: NodeState) -> bool:
        """Whether the pod fits on a node as things are now. Keeps nothing that depends on the node alone."""
        return self.found_on(demand, node) is not None

    def found_on(self, demand: Demand, node: NodeState) -> Found | None:
        """What the pod gets on a node as things are now. Keeps nothing that depends on the node alone."""
        self._volumes = self._volumes_of(demand)
        if self._node_verdict(demand, node, self._check(demand)) is not FITS:
            return None
        wanted = demand.on(node.facts)
        if wanted.impossible is not None or demand.held_verdict(node.node) is not FITS:
            return None
        if not wanted.claims:
            return Found(node, wanted, None)
        if self._searched(demand, node, wanted).verdict is not FITS:
            return None
        assert self._searched_last is not None
        return Found(node, wanted, self._searched_last[1])

    def standings(self, demand: Demand) -> list[Standing]:
        """All nodes that will do, in the order in which `find` would take them."""
        if self._refused_everywhere(demand) is not None:
            return []
        check = self._check(demand)
        self._drop_old_answers()
        answers = [(n, self._answer(demand, n, check)) for _, n in self._candidates(demand)]
        fitting = [(node, answer) for node, answer in answers if answer.verdict is FITS]
        wishes = [0] * len(fitting)
        if self._weighs_wishes(demand, check):
            wishes = self._wishes(demand, check, fitting)
        found = [
            Standing(node, wish, answer.quality, balance(demand.needs, node.facts, node.usage))
            for (node, answer), wish in zip(fitting, wishes, strict=True)
        ]
        return sorted(found, key=lambda s: (-s.wishes, s.quality, -s.balance, s.node.index))

    def _check(self, demand: Demand) -> NeighbourCheck:
        if self._state.neighbourhood.concerns(demand.needs):
            return self._state.neighbourhood.prepare(demand.needs)
        return NO_NEIGHBOURS

    def _weighs_wishes(self, demand: Demand, check: NeighbourCheck) -> bool:
        """Whether somebody wrote down which nodes are better, so that all of them have to be looked at."""
        if check is not NO_NEIGHBOURS or has_preferences(demand.needs, check):
            return True
        return self._state.soft_taints > 0

    def refusals(self, demand: Demand) -> Mapping[str, Verdict]:
        """What each node says that does not serve the pod. For whoever explains: good until the next question."""
        refusal = self._refused_everywhere(demand)
        if refusal is not None:
            return refusal.verdicts
        if self._is_tied(demand) or self._state.neighbourhood.concerns(demand.needs):
            return self._verdicts(demand, self._check(demand))[0]
        self._catch_up()
        while self._heap and self._heap[0][0] is _UNKNOWN:
            _, _, name, version = heapq.heappop(self._heap)
            if self._versions.get(name) == version:
                self._look_at(demand, self._state.nodes[name])
        return self._refusals

    def verdict_on(self, demand: Demand, node: NodeState) -> Verdict:
        """What one node says."""
        self._volumes = self._volumes_of(demand)
        self._drop_old_answers()
        return self._answer(demand, node, self._check(demand)).verdict

    def devices_verdict(self, demand: Demand, node: NodeState) -> Verdict:
        """What the devices of a node have to say, whether or not the node is one for the pod."""
        return self._devices_answer(demand, node).verdict

    # One pod after the other, from the heap.

    def _best_by_heap(self, demand: Demand) -> Found | NotFound:
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
                found = self._take(demand, node)
                if found is not None:
                    return found
            heapq.heappop(self._heap)
            self._look_at(demand, node)
        self._not_found = NotFound(dict(self._refusals), bool(self._exhausted))
        return self._not_found

    def _look_at(self, demand: Demand, node: NodeState) -> None:
        """Find out whether and how well a node serves the pod, and note it."""
        name = node.facts.name
        answer = self._answer(demand, node)
        self._taken[name] = self._state.floating_taken
        self._version += 1
        self._versions[name] = self._version
        self._exhausted.discard(name)
        if answer.verdict is FITS:
            self._refusals.pop(name, None)
            key = (answer.quality, -balance(demand.needs, node.facts, node.usage))
            heapq.heappush(self._heap, (key, node.index, name, self._version))
        else:
            self._refusals[name] = answer.verdict
            if answer.exhausted:
                self._exhausted.add(name)

    def _take(self, demand: Demand, node: NodeState) -> Found | None:
        """The devices for this very pod on a node that is known to have them."""
        wanted = demand.on(node.facts)
        volumes = None
        if self._volumes.open:
            chosen = self._volumes.choose(node.facts)
            if isinstance(chosen, Verdict):
                return None
            volumes = chosen
        if not wanted.claims:
            return Found(node, wanted, None, volumes)
        plan = self._plan_for(demand, node, wanted)
        return None if plan is None else Found(node, wanted, plan, volumes)

    def _plan_for(self, demand: Demand, node: NodeState, wanted: DevicesWanted) -> Plan | None:
        last = self._searched_last
        if last is not None and last[0] == node.facts.name:
            return last[1]
        view = self._state.view(node)
        outcome: Outcome | None = None if last is None else last[1].on(view, wanted.question)
        if outcome is None:
            outcome = search(view, wanted.question, policy=self._policy)
        if not isinstance(outcome, Plan) or not self._mapped_resources_fit(demand, node, outcome):
            # The kept answer does not hold, so nothing that was kept can be relied on.
            self._answers.clear()
            return None
        return outcome

    # All nodes for each pod, where pods concern each other or have preferences.

    def _best_of_all(self, demand: Demand, check: NeighbourCheck) -> Found | NotFound:
        verdicts, fitting = self._verdicts(demand, check)
        for node, _ in self._ranked(demand, check, fitting):
            found = self._take(demand, node)
            if found is not None:
                return found
        exhausted = any(v.cause is Cause.SEARCH_LIMIT for v in verdicts.values())
        return NotFound(verdicts, exhausted)

    def _verdicts(
        self, demand: Demand, check: NeighbourCheck
    ) -> tuple[dict[str, Verdict], list[tuple[NodeState, _Answer]]]:
        """What the nodes say that refuse, and those that do not."""
        verdicts: dict[str, Verdict] = {}
        fitting: list[tuple[NodeState, _Answer]] = []
        self._drop_old_answers()
        if demand.only_node is not None:
            verdicts = dict.fromkeys(self._state.nodes, HELD_ELSEWHERE)
        for name, node in self._candidates(demand):
            verdicts.pop(name, None)
            answer = self._answer(demand, node, check)
            if answer.verdict is FITS:
                fitting.append((node, answer))
            else:
                verdicts[name] = answer.verdict
        return verdicts, fitting

    def _ranked(
        self, demand: Demand, check: NeighbourCheck, fitting: list[tuple[NodeState, _Answer]]
    ) -> Iterable[tuple[NodeState, _Answer]]:
        wishes = self._wishes(demand, check, fitting)

        def key(item: tuple[int, tuple[NodeState, _Answer]]) -> Key:
            position, (node, answer) = item
            room = balance(demand.needs, node.facts, node.usage)
            return -wishes[position], answer.quality, -room, node.index

        return [item for _, item in sorted(enumerate(fitting), key=key)]

    def _wishes(
        self, demand: Demand, check: NeighbourCheck, fitting: list[tuple[NodeState, _Answer]]
    ) -> list[int]:
        """How well each node suits what users wrote down, devices included."""
        liked = preferences(demand.needs, [node.facts for node, _ in fitting], check)
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

    # One node.

    def _answer(
        self, demand: Demand, node: NodeState, check: NeighbourCheck = NO_NEIGHBOURS
    ) -> _Answer:
        verdict = self._node_verdict(demand, node, check)
        if verdict is not FITS:
            return _Answer(verdict)
        answer = self._devices_answer(demand, node)
        if answer.verdict is FITS and demand.held:
            verdict = demand.held_verdict(node.node)
            if verdict is not FITS:
                return _Answer(verdict)
        return answer

    def _devices_answer(self, demand: Demand, node: NodeState) -> _Answer:
        wanted = demand.on(node.facts)
        if wanted.impossible is not None:
            return _Answer(wanted.impossible)
        if not wanted.claims:
            return _NO_DEVICES_WANTED
        if self._state.mapped_devices or demand.only_node is not None:
            # A pod that is tied to a node asks once. Its placer serves pods of all shapes, so nothing may be kept.
            return self._searched(demand, node, wanted)
        view = self._state.view(node)
        shape = (wanted.delegated, signature(view, wanted.question))
        known = self._answers.get(shape)
        if known is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            known = self._answers[shape] = self._searched(demand, node, wanted)
        return known

    def _node_verdict(self, demand: Demand, node: NodeState, check: NeighbourCheck) -> Verdict:
        """Everything but devices, in Kubernetes' order."""
        facts = node.facts
        verdict = self._state.static_verdicts.verdict(demand.needs, facts)
        if verdict is not FITS:
            return verdict
        verdict = usage_verdict(demand.needs, facts, node.usage, demand.delegated_on(facts))
        if verdict is not FITS:
            return verdict
        if self._volumes is not NO_VOLUMES:
            verdict = self._volumes.verdict(facts)
            if verdict is not FITS:
                return verdict
        return FITS if check is NO_NEIGHBOURS else check.verdict(facts)

    def _searched(self, demand: Demand, node: NodeState, wanted: DevicesWanted) -> _Answer:
        view = self._state.view(node)
        outcome = search(view, wanted.question, policy=self._policy)
        if not isinstance(outcome, Plan):
            verdict = devices_verdict(outcome, wanted.claims)
            return _Answer(verdict, exhausted=isinstance(outcome, Exhausted))
        if not self._mapped_resources_fit(demand, node, outcome):
            return _Answer(_NO_ROOM_FOR_MAPPED)
        self._searched_last = (node.facts.name, outcome)
        return _Answer(FITS, (outcome.quality,), outcome.preference_score)

    def _mapped_resources_fit(self, demand: Demand, node: NodeState, plan: Plan) -> bool:
        """Whether the pod still fits with what its devices take of the node's own resources."""
        if not self._state.mapped_devices:
            return True
        total = self._state.mapped_devices.requests_of(item.allocation for item in plan.claims)
        if not total:
            return True
        needs, facts = demand.needs.plus(total), node.facts
        return usage_verdict(needs, facts, node.usage, demand.delegated_on(facts)) is FITS

    # Keeping up.

    def _refused_everywhere(self, demand: Demand) -> NotFound | None:
        if demand.impossible is not None:
            return NotFound(dict.fromkeys(self._state.nodes, demand.impossible))
        self._volumes = self._volumes_of(demand)
        if self._volumes.refusal is not FITS:
            return NotFound(dict.fromkeys(self._state.nodes, self._volumes.refusal))
        return None

    def _volumes_of(self, demand: Demand) -> VolumeCheck:
        if not demand.needs.shape.volumes:
            return NO_VOLUMES
        return volume_check(demand.needs, self._state.volumes)

    def _is_tied(self, demand: Demand) -> bool:
        """Whether nodes differ for this pod by something that no mark tells of, so that nothing may be kept."""
        return demand.only_node is not None or not (
            self._volumes is NO_VOLUMES or self._volumes.is_indifferent
        )

    def _drop_old_answers(self) -> None:
        if self._answers_epoch != self._state.marks.epoch:
            self._answers_epoch = self._state.marks.epoch
            self._answers.clear()

    def _catch_up(self) -> None:
        """Put every node that may have changed at the head of the heap."""
        state = self._state
        if self._epoch != state.marks.epoch or self._read is None:
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
        self._epoch = self._answers_epoch = state.marks.epoch
        self._freed, self._read = state.floating_freed, state.marks.position
        self._answers.clear()
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

"""What holds in every town with queues: judged from the objects alone, without asking the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import given, settings

from drayman.simulate.queue_scenarios import GivenGroup, GivenPod, Result, Scenario, replayed
from quota.shares.portions import Sister, portions
from quota.shares.towns import LEVELS, any_towns
from rounds import rounds


@dataclass(frozen=True)
class Judge:
    """Reads a scenario and what came of it, and names what is never right."""

    scenario: Scenario
    result: Result

    def faults(self) -> Iterator[str]:
        room = {each.name: each.gpus for each in self.scenario.nodes}
        for each in self.scenario.pod_groups:
            for pod in each.pods:
                if pod.name in self.after:
                    room[self.after[pod.name]] -= pod.gpus
            yield from self._faults_of(each)
            yield from self._scattered(each)
        yield from (f"{name} holds more than it has" for name, left in room.items() if left < 0)
        yield from self._excesses()

    @cached_property
    def before(self) -> Mapping[str, str]:
        pods = (pod for each in self.scenario.pod_groups for pod in each.pods)
        return {pod.name: pod.node_name for pod in pods if pod.node_name}

    @property
    def after(self) -> Mapping[str, str]:
        return self.result.placement

    # Groups.

    def _faults_of(self, group: GivenGroup) -> Iterator[str]:
        evicted = self.result.evicted.get(group.name, 0)
        kept = [pod for pod in group.pods if pod.name in self.before]
        lost = sum(self.before[pod.name] != self.after.get(pod.name) for pod in kept)
        if lost > evicted:
            yield f"{group.name}: {lost} pods are not where they were, {evicted} were evicted"
        if evicted and is_firm(group) and is_whole(group, self.before):
            yield f"{group.name} is not preemptible"
        if self._has_started(group.pods) and not is_whole(group, self.after):
            yield f"{group.name} is below its minimum"

    def _has_started(self, pods: tuple[GivenPod, ...]) -> bool:
        return any(self.after.get(pod.name, "") != pod.node_name for pod in pods if self.runs(pod))

    def runs(self, pod: GivenPod) -> bool:
        return pod.name in self.after

    def _scattered(self, group: GivenGroup) -> Iterator[str]:
        """Required levels that pods have been started across."""
        for name, wish in wishes_of(group):
            level = wish.get("requiredTopologyLevel")
            members = tuple(pod for pod in group.pods if name in ("", *above(group, pod.sub_group)))
            if level is None or not self._has_started(members):
                continue
            upto = LEVELS[: LEVELS.index(level) + 1]
            domains = {
                tuple(self._labels[self.after[pod.name]].get(label) for label in upto)
                for pod in members
                if self.runs(pod)
            }
            if len(domains) > 1 or any(None in domain for domain in domains):
                yield f"{group.name}/{name} is not in one {level}: {domains}"

    @cached_property
    def _labels(self) -> Mapping[str, Mapping[str, str]]:
        return {each.name: each.labels for each in self.scenario.nodes}

    # Queues.

    def _excesses(self) -> Iterator[str]:
        for each in self.scenario.queues:
            had, has = (
                used(self.scenario, at, each.name) for at in (set(self.before), set(self.after))
            )
            if each.gpu.limit >= 0 and has[0] > max(each.gpu.limit, had[0]):
                yield f"{each.name} is taken over its limit"
            if each.gpu.quota >= 0 and has[1] > max(each.gpu.quota, had[1]):
                yield f"{each.name} is taken over its quota by work that is not preemptible"


def used(scenario: Scenario, running: set[str], queue: str) -> tuple[int, int]:
    """What a queue uses with those below it, and what of it by work that is not preemptible."""
    every, firm = 0, 0
    for group in scenario.pod_groups:
        if queue in line_of(scenario, group.queue):
            amount = sum(pod.gpus for pod in group.pods if pod.name in running)
            every, firm = every + amount, firm + amount * is_firm(group)
    return every, firm


def line_of(scenario: Scenario, name: str | None) -> Iterator[str]:
    parents = {each.name: each.parent_queue for each in scenario.queues}
    while name is not None:
        yield name
        name = parents[name]


def is_firm(group: GivenGroup) -> bool:
    if group.preemptibility:
        return group.preemptibility == "non-preemptible"
    return group.priority >= 100


def is_whole(group: GivenGroup, running: Mapping[str, str]) -> bool:
    """Whether the members that run make up the minimum."""
    counts = Counter(pod.sub_group for pod in group.pods if pod.name in running)
    if not group.sub_groups:
        return counts.total() >= (group.min_member or 1)

    def has_enough(name: str, minimum: int | None) -> bool:
        below = [each for each in group.sub_groups if each.get("parent", "") == name]
        complete = sum(
            has_enough(each["name"], each.get("minSubGroup"))
            if any(e.get("parent") == each["name"] for e in group.sub_groups)
            else counts[each["name"]] >= each["minMember"]
            for each in below
        )
        return complete >= (len(below) if minimum is None else minimum)

    return has_enough("", group.min_sub_group)


def wishes_of(group: GivenGroup) -> Iterator[tuple[str, dict[str, Any]]]:
    if group.topology_constraint:
        yield "", group.topology_constraint
    for each in group.sub_groups:
        if "topologyConstraint" in each:
            yield each["name"], each["topologyConstraint"]


def above(group: GivenGroup, part: str) -> Iterator[str]:
    parents = {each["name"]: each.get("parent", "") for each in group.sub_groups}
    while part:
        yield part
        part = parents[part]


@settings(max_examples=rounds(60))
@given(any_towns())
def test_every_town_comes_to_rest_and_breaks_no_rule(scenario: Scenario) -> None:
    assert list(Judge(scenario, replayed(scenario)).faults()) == []


def shares_of(scenario: Scenario) -> dict[str, int]:
    """The fair share of each queue, by hand: each divides what it has among those below it."""
    found: dict[str, int] = {}

    def below(parent: str | None, total: int) -> None:
        pods = {pod.name for each in scenario.pod_groups for pod in each.pods}
        sisters = [
            Sister(
                each.name,
                int(each.gpu.quota),
                int(each.gpu.limit),
                int(each.gpu.over_quota_weight),
                each.priority,
                each.created_seconds_ago,
                used(scenario, pods, each.name)[0],
            )
            for each in scenario.queues
            if each.parent_queue == parent
        ]
        for name, share in portions(sisters, total).items():
            found[name] = share
            below(name, share)

    below(None, sum(each.gpus for each in scenario.nodes))
    return found


@settings(max_examples=rounds(60))
@given(any_towns())
def test_fair_shares_are_those_of_a_division_by_hand(scenario: Scenario) -> None:
    assert replayed(scenario).fair_share == shares_of(scenario)

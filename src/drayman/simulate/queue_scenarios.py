"""Scenarios in which a cluster with queues was recorded, and what comes of them here.

A scenario has nodes with so many GPUs, queues, and pod groups of which some run. It is turned into objects of the API, and decided about by
`settle` on a state made of them. Nothing of what was recorded as the outcome is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec
from msgspec import Struct

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.custom_groups import KaiPodGroup, KaiTopology
from drayman.api.times import parse_duration, timestamp_at
from drayman.placement.gangs.dialects import kai
from drayman.placement.gangs.gang import Gang
from drayman.placement.queueing.queues import PRIORITY, Amount, Queue, QueueTree
from drayman.placement.queueing.stakes import is_preemptible
from drayman.placement.world import Objects, state_of
from drayman.quota.shares.accounts import Accounts
from drayman.quota.shares.cycle import Actions, Memory
from drayman.quota.shares.groups import Group, Worker
from drayman.quota.shares.places import ClusterFloor
from drayman.quota.shares.settling import AtRest, settle

RESOURCE: Final = "nvidia.com/gpu"
NAMESPACE: Final = "default"
NOW: Final = 1_700_000_000.0
"""Ages in a scenario are counted back from here."""


class ScenarioError(Exception):
    """A scenario that cannot be read, or that makes no sense."""


class _Given(Struct, frozen=True, rename="camel", kw_only=True):
    """Part of a scenario."""


class GivenNode(_Given, frozen=True):
    name: str
    gpus: int
    labels: dict[str, str] = {}


class GivenTopology(_Given, frozen=True):
    name: str
    levels: tuple[str, ...]


class GivenAmounts(_Given, frozen=True):
    quota: float = -1
    limit: float = -1
    over_quota_weight: float = 1


class GivenQueue(_Given, frozen=True):
    name: str
    parent_queue: str | None = None
    priority: int = PRIORITY
    gpu: GivenAmounts = GivenAmounts()
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    created_seconds_ago: float = 0


class GivenPod(_Given, frozen=True):
    name: str
    gpus: int = 0
    sub_group: str = ""
    node_name: str = ""


class GivenGroup(_Given, frozen=True):
    name: str
    queue: str
    priority: int = 0
    min_member: int | None = None
    min_sub_group: int | None = None
    sub_groups: tuple[dict[str, Any], ...] = ()
    topology_constraint: dict[str, Any] | None = None
    preemptibility: str = ""
    preemption_delay: str | None = None
    staleness_grace_period: str | None = None
    created_seconds_ago: float = 0
    started_seconds_ago: float | None = None
    stale_seconds_ago: float | None = None
    pods: tuple[GivenPod, ...] = ()


class Scenario(_Given, frozen=True):
    name: str
    nodes: tuple[GivenNode, ...] = ()
    topologies: tuple[GivenTopology, ...] = ()
    queues: tuple[GivenQueue, ...] = ()
    pod_groups: tuple[GivenGroup, ...] = ()


class First(Struct, frozen=True):
    """What the first cycle did, in pods of each group."""

    bound: Mapping[str, int]
    nominated: Mapping[str, int]
    evicted: Mapping[str, Mapping[str, int]]


class Result(Struct, frozen=True, rename="camel"):
    """What came of a scenario."""

    name: str
    placement: Mapping[str, str]
    """The node of each pod that runs at rest."""
    evicted: Mapping[str, int]
    """How often pods of each group were evicted until then."""
    fair_share: Mapping[str, float]
    first: First


def decoded(line: bytes) -> Scenario:
    """A scenario in JSON. Raises ScenarioError."""
    try:
        scenario = msgspec.json.decode(line, type=Scenario)
    except msgspec.DecodeError as error:
        raise ScenarioError(str(error)) from error
    names = Counter(pod.name for group in scenario.pod_groups for pod in group.pods)
    twice = [name for name, number in names.items() if number > 1]
    if twice:
        raise ScenarioError(f"there are several pods {twice[0]}")
    nodes = {node.name for node in scenario.nodes}
    for group in scenario.pod_groups:
        for pod in group.pods:
            if pod.node_name and pod.node_name not in nodes:
                raise ScenarioError(f"pod {pod.name}: there is no node {pod.node_name}")
    for queue in scenario.queues:
        for duration in (queue.preempt_min_runtime, queue.reclaim_min_runtime):
            try:
                _seconds(duration)
            except ValueError as error:
                raise ScenarioError(f"queue {queue.name}: {error}") from error
    return scenario


def replayed(scenario: Scenario) -> Result:
    """What comes of a scenario. Raises PlaceError where pods are said to be that have no room there."""
    return _result(scenario, settled(scenario))


def settled(scenario: Scenario) -> AtRest:
    """Decide about a scenario until it is at rest. Raises PlaceError."""
    tree = QueueTree(map(_queue, scenario.queues))
    objects, pods = _objects(scenario)

    def opening(running: Mapping[str, str]) -> Accounts:
        state = state_of(objects)
        groups = []
        for each in scenario.pod_groups:
            gang = state.gangs.gang(kai.key_of(NAMESPACE, each.name))
            groups.append(_group(each, gang if isinstance(gang, Gang) else None))
        return Accounts(tree, groups, ClusterFloor(state, pods, RESOURCE, NOW), running)

    running = {p.name: p.node_name for g in scenario.pod_groups for p in g.pods if p.node_name}
    return settle(opening, running, _memory(scenario), NOW)


def _result(scenario: Scenario, at_rest: AtRest) -> Result:
    first = at_rest.cycles[0]
    return Result(
        scenario.name,
        at_rest.placement,
        {name: sum(counts.values()) for name, counts in at_rest.evictions.items()},
        {name: float(share) for name, share in first.shares.items()},
        _first(scenario, first),
    )


def _first(scenario: Scenario, actions: Actions) -> First:
    group_of = {pod.name: group.name for group in scenario.pod_groups for pod in group.pods}
    evicted: dict[str, Counter[str]] = {}
    for each in actions.evicted:
        evicted.setdefault(group_of[each.worker], Counter())[each.action.value] += 1
    bound = Counter(group_of[name] for name in actions.bound)
    return First(bound, Counter(group_of[name] for name in actions.nominated), evicted)


def _queue(given: GivenQueue) -> Queue:
    return Queue(
        name=given.name,
        parent=given.parent_queue or "",
        priority=given.priority,
        created=NOW - given.created_seconds_ago,
        quota=_amount(given.gpu.quota),
        limit=_amount(given.gpu.limit),
        weight=Fraction(str(given.gpu.over_quota_weight)),
        preempt_min_runtime=_seconds(given.preempt_min_runtime),
        reclaim_min_runtime=_seconds(given.reclaim_min_runtime),
    )


def _amount(given: float) -> Amount | None:
    return None if given < 0 else Fraction(str(given))


def _seconds(given: str | None) -> float | None:
    return None if given is None else parse_duration(given)


def _group(given: GivenGroup, gang: Gang | None) -> Group:
    stated = given.preemptibility == "preemptible" if given.preemptibility else None
    return Group(
        name=given.name,
        queue=given.queue,
        priority=given.priority,
        created=NOW - given.created_seconds_ago,
        is_preemptible=is_preemptible(stated, given.priority),
        gang=gang,
        workers=tuple(Worker(p.name, given.name, p.gpus, p.sub_group) for p in given.pods),
    )


def _memory(scenario: Scenario) -> Memory:
    groups = scenario.pod_groups
    started = {g.name: g.started_seconds_ago for g in groups}
    stale = {g.name: g.stale_seconds_ago for g in groups}
    return Memory(
        {name: NOW - ago for name, ago in started.items() if ago is not None},
        {name: NOW - ago for name, ago in stale.items() if ago is not None},
    )


def _objects(scenario: Scenario) -> tuple[Objects, dict[str, Pod]]:
    """The objects of the API, and the pods by name. Those that run get their nodes from the accounts, so that they can be moved."""
    pods = {pod.name: _pod(group, pod) for group in scenario.pod_groups for pod in group.pods}
    objects = Objects(
        nodes=tuple(map(_node, scenario.nodes)),
        pods=tuple(pods.values()),
        kai_pod_groups=tuple(map(_pod_group, scenario.pod_groups)),
        kai_topologies=tuple(map(_topology, scenario.topologies)),
    )
    return objects, pods


def _node(given: GivenNode) -> Node:
    allocatable = {"cpu": "1k", "memory": "1Ti", "pods": "1k", RESOURCE: str(given.gpus)}
    metadata = {"name": given.name, "uid": given.name, "labels": given.labels}
    return convert(Node, {"metadata": metadata, "status": {"allocatable": allocatable}})


def _pod(group: GivenGroup, given: GivenPod) -> Pod:
    metadata = {
        "name": given.name,
        "namespace": NAMESPACE,
        "uid": given.name,
        "annotations": {kai.POD_GROUP: group.name},
        "labels": {kai.SUBGROUP: given.sub_group} if given.sub_group else {},
    }
    resources = {"limits": {RESOURCE: str(given.gpus)}, "requests": {RESOURCE: str(given.gpus)}}
    containers = [{"name": "main", "image": "work", "resources": resources}]
    return convert(Pod, {"metadata": metadata, "spec": {"containers": containers}})


def _pod_group(given: GivenGroup) -> KaiPodGroup:
    spec = {
        "minMember": given.min_member,
        "minSubGroup": given.min_sub_group,
        "queue": given.queue,
        "subGroups": list(given.sub_groups),
        "topologyConstraint": given.topology_constraint,
        "preemptibility": given.preemptibility or None,
        "preemptionDelay": given.preemption_delay,
        "stalenessGracePeriod": given.staleness_grace_period,
    }
    metadata = {
        "name": given.name,
        "namespace": NAMESPACE,
        "uid": given.name,
        "creationTimestamp": timestamp_at(NOW - given.created_seconds_ago),
    }
    known = {key: value for key, value in spec.items() if value is not None}
    return convert(KaiPodGroup, {"metadata": metadata, "spec": known})


def _topology(given: GivenTopology) -> KaiTopology:
    levels = [{"nodeLabel": label} for label in given.levels]
    return convert(KaiTopology, {"metadata": {"name": given.name}, "spec": {"levels": levels}})

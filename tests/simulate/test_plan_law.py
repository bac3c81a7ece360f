"""A plan decides as the scheduler does: the same pods in line, the same nodes and devices."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.placement.world import Objects, World, state_of
from drayman.scheduler.cycle import Cycle
from drayman.scheduler.queue import Queue
from drayman.simulate.plan_report import PlanReport
from drayman.simulate.planning import plan
from simulate.cluster import alone, claim, cluster, node, pod, wanted

NODES = ("a", "b", "c")
LABEL = "topology.kubernetes.io/zone"


def spread() -> dict[str, Any]:
    """Not beside another pod with the same label."""
    term = {"labelSelector": {"matchLabels": {"app": "s"}}, "topologyKey": "kubernetes.io/hostname"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}, "metadata": {"labels": {"app": "s"}}}


FIELDS = st.sampled_from(
    [
        {},
        {"priority": 5},
        {"cpu": "12"},
        {"nodeSelector": {LABEL: "x"}},
        {"schedulingGates": [{"name": "g"}]},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        spread(),
    ]
)
PODS = st.lists(st.tuples(FIELDS, st.integers(0, 4)), min_size=1, max_size=8)
"""Each pod with its fields and the number of its claim, 0 for none. Pods of the same number share the claim."""


def world(devices: list[int], tainted: bool) -> World:
    spec = {"taints": [{"key": "k", "effect": "NoSchedule"}]} if tainted else {}
    nodes = tuple(
        node(name, labels={LABEL: zone}, spec=spec if name == "c" else {})
        for name, zone in zip(NODES, ("x", "y", "y"), strict=True)
    )
    return cluster(dict(zip(NODES, devices, strict=True)), nodes=nodes)


def decided(objects: Objects, pods: list[Any]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What the scheduler makes of the pods: node and devices of those it places."""
    queue = Queue()
    state = state_of(objects)
    cycle = Cycle(state, queue, lambda: 0.0, policy=Policy.BEST, binding_timeout_s=600.0)
    for made in pods:
        if not made.spec.scheduling_gates:
            queue.add(made)
    found = {}
    for placement in cycle.decide(len(pods)).placements:
        uses = [entry.resource_claim_name for entry in placement.pod.spec.resource_claims]
        claims = [state.find_claim("default", name) for name in uses if name]
        devices = sorted(
            result.device
            for used in claims
            if used is not None and used.status.allocation is not None
            for result in used.status.allocation.devices.results
        )
        found[placement.pod.metadata.name] = (placement.node, tuple(devices))
    return found


def planned(report: PlanReport) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {
        made.name: (made.node, tuple(sorted(device.device for device in made.devices)))
        for made in report.pods
        if made.waits is None
    }


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3), st.booleans(), PODS)
def test_a_plan_decides_as_the_scheduler_does(
    devices: list[int], tainted: bool, asked: list[tuple[dict[str, Any], int]]
) -> None:
    """For any pods, with claims of their own or shared, important or not, near or far from one another."""
    there = world(devices, tainted)
    counts = {number for _, number in asked if number}
    claims = tuple(claim(f"c{number}", min(number, 2)) for number in sorted(counts))
    made = [
        (f"p{index}", {**fields, **({"claim": f"c{number}"} if number else {})})
        for index, (fields, number) in enumerate(asked)
    ]
    report = plan(there, wanted(*(alone(name, **fields) for name, fields in made), claims=claims))
    objects = there.objects.joined(Objects(claims=claims))
    assert planned(report) == decided(objects, [pod(name, **fields) for name, fields in made])

"""One decision: what the scheduler does with a pod is what a plan predicts, an explanation says and remedies are tried with."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from drayman.allocator import Policy
from drayman.api.core import Pod, PodResourceClaim
from drayman.api.meta import ObjectMeta
from drayman.api.pod_groups import PodGroup, PodGroupSpec
from drayman.cluster.turns import Turns
from drayman.explain.pod import explain_pod
from drayman.explain.remedies.trying import MOST_SEARCHES, Trials
from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider
from drayman.placement.world import Objects, World, state_of
from drayman.reasons.reason import Reason
from drayman.scheduler.cycle import Cycle
from drayman.scheduler.queue import Queue
from drayman.simulate.expanding import Workload
from drayman.simulate.planning import plan
from simulate.cluster import DRIVER, NOW, claim, cluster, held, node, place, pod, wanted

ZONE = "topology.kubernetes.io/zone"
TITLES = re.compile("|".join(re.escape(reason.title) for reason in Reason if reason.kind))
REASONS = {reason.value for reason in Reason}
CORDONED: dict[str, Any] = {"spec": {"unschedulable": True}}
TAINTED: dict[str, Any] = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}


def on_node(name: str, device: str) -> dict[str, Any]:
    """The status of a claim that has a device of a node and cannot be used elsewhere."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    result = {"request": "gpu", "driver": DRIVER, "pool": name, "device": device}
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}


def away(app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def group(name: str, *entries: PodResourceClaim) -> PodGroup:
    metadata = ObjectMeta(name=name, namespace="default", uid=name)
    return PodGroup(metadata=metadata, spec=PodGroupSpec(resource_claims=entries))


def uses_port(name: str, **fields: Any) -> Pod:
    ports = [{"containerPort": 80, "hostPort": 80}]
    return pod(name, containers=[{"name": "main", "ports": ports}], **fields)


class Case(NamedTuple):
    """A pod, the cluster in which it comes, and what becomes of it."""

    name: str
    asked: Pod
    there: World
    becomes: str


ONE = cluster({"a": 1})
THEN = "2026-01-01T00:00:00Z"
CASES = [
    Case("nothing but a node", pod("p"), ONE, "a"),
    Case("a claim from a template", pod("p", "one"), ONE, "a: gpu-0"),
    Case(
        "a claim by name", pod("p", claim="c"), cluster({"a": 1}, claims=(claim("c"),)), "a: gpu-0"
    ),
    Case(
        "a claim that has its device",
        pod("p", claim="c"),
        cluster({"a": 1, "b": 1}, claims=(claim("c", status=on_node("b", "gpu-0")),)),
        "b: gpu-0",
    ),
    Case("no such claim", pod("p", claim="c"), ONE, "ClaimMissing"),
    Case("no such template", pod("p", "five"), ONE, "TemplateMissing"),
    Case(
        "a claim that goes",
        pod("p", claim="c"),
        cluster(
            {"a": 1},
            claims=(
                claim(
                    "c",
                    metadata={
                        "name": "c",
                        "namespace": "default",
                        "uid": "c",
                        "deletionTimestamp": THEN,
                    },
                ),
            ),
        ),
        "ClaimDeleting",
    ),
    Case(
        "a claim of somebody else",
        pod(
            "p",
            "one",
            status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]},
        ),
        cluster({"a": 1}, claims=(claim("c"),)),
        "ClaimForeign",
    ),
    Case(
        "no such group",
        pod("p", claim="c", schedulingGroup={"podGroupName": "g"}),
        cluster({"a": 1}, claims=(claim("c"),)),
        "PodGroupMissing",
    ),
    Case(
        "no such group, and a claim still to be made",
        pod("p", "one", schedulingGroup={"podGroupName": "g"}),
        ONE,
        "PodGroupMissing",
    ),
    Case(
        "a claim still to be made for a pod in a group",
        pod("p", "one", schedulingGroup={"podGroupName": "g"}),
        cluster({"a": 1}, pod_groups=(group("g"),)),
        "a: gpu-0",
    ),
    Case(
        "a group that exists",
        pod("p", claim="c", schedulingGroup={"podGroupName": "g"}),
        cluster({"a": 1}, claims=(claim("c"),), pod_groups=(group("g"),)),
        "a: gpu-0",
    ),
    Case(
        "no such class",
        pod("p", "one"),
        World(replace(ONE.objects, classes=()), NOW),
        "ClassMissing",
    ),
    Case("no nodes", pod("p"), cluster({}), "NoNodes"),
    Case(
        "devices that others have",
        pod("p", "one"),
        cluster({"a": 1}, claims=(held("taken", "a", "gpu-0"),)),
        "DevicesInUse",
    ),
    Case("more than there are", pod("p", "two"), ONE, "CountTooHigh"),
    Case("another zone", pod("p", nodeSelector={ZONE: "x"}), ONE, "NodeMismatch"),
    Case(
        "a cordon", pod("p"), World(Objects(nodes=(node("a", **CORDONED),)), NOW), "NodesCordoned"
    ),
    Case("a taint", pod("p"), World(Objects(nodes=(node("a", **TAINTED),)), NOW), "NodesTainted"),
    Case("too small a node", pod("p", cpu="99"), ONE, "NodeTooSmall"),
    Case(
        "a full node",
        pod("p", cpu="20"),
        cluster({"a": 0}, pods=(pod("other", cpu="20", nodeName="a"),)),
        "NodesFull",
    ),
    Case(
        "a port in use",
        uses_port("p"),
        cluster({"a": 0}, pods=(uses_port("other", nodeName="a"),)),
        "PortsInUse",
    ),
    Case(
        "no such volume claim",
        pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]),
        ONE,
        "VolumeUnbound",
    ),
    Case(
        "a neighbour that it avoids",
        pod("p", affinity=away("web")),
        cluster(
            {"a": 0},
            pods=(pod("other", nodeName="a", metadata={"labels": {"app": "web"}}),),
        ),
        "PodAntiAffinity",
    ),
    Case(
        "devices where it cannot go",
        pod("p", claim="c", nodeSelector={ZONE: "x"}),
        World(
            cluster({"b": 1}, claims=(claim("c", status=on_node("b", "gpu-0")),)).objects.joined(
                Objects(nodes=(node("a", labels={ZONE: "x"}),))
            ),
            NOW,
        ),
        "ClaimElsewhere",
    ),
]


def by_scheduler(case: Case) -> str:
    """What a round decides; of a refusal the reason in the message for the pod."""
    queue, turns, state = Queue(), Turns(), state_of(case.there.objects)
    cycle = Cycle(
        state,
        queue,
        lambda: case.there.now,
        policy=Policy.BEST,
        binding_timeout_s=600.0,
        turns=turns,
        rng=random.Random(0),
    )
    turns.take(case.asked)
    queue.add(case.asked)
    decided = cycle.decide(1)
    if decided.refused:
        word = TITLES.search(decided.refused[0].message)
        assert word is not None, decided.refused[0].message
        return word[0].partition(" ")[0]
    (placement,) = decided.placements
    had = [c.status.allocation for c in placement.held if c.status.allocation is not None]
    devices = [r.device for a in (*had, *placement.devices) for r in a.devices.results]
    return f"{placement.node}: {','.join(devices)}" if devices else placement.node


def by_plan(case: Case) -> str:
    return place(plan(case.there, wanted(Workload(case.asked))).pods[0])


def by_explanation(case: Case) -> str:
    """The word of the headline; where the pod fits, what it would get."""
    objects = case.there.objects.joined(Objects(pods=(case.asked,)))
    world = case.there.with_objects(objects)
    found = explain_pod(world, case.asked, with_remedies=False)
    if found.headline.reason is not Reason.FITS:
        return found.headline.reason.value
    claims = Decider(world.state).round(world.now).claims(case.asked)
    had = (claim.status.allocation for claim in claims)
    devices = [r.device for a in had if a is not None for r in a.devices.results]
    devices += [name.rpartition("/")[2] for name in found.devices]
    return f"{found.node}: {','.join(devices)}" if devices else found.node


ASKING: dict[str, Callable[[Case], str]] = {
    "scheduler": by_scheduler,
    "plan": by_plan,
    "explanation": by_explanation,
}


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_everybody_decides_alike(case: Case, asking: str) -> None:
    """The same node and devices, or the same reason, for every caller."""
    assert ASKING[asking](case) == case.becomes


@pytest.mark.parametrize("asking", [by_scheduler, by_explanation])
def test_the_claim_of_a_group_is_not_made_for_its_pods(asking: Callable[[Case], str]) -> None:
    """A pod waits until the controller has made it for the group. A plan does so itself."""
    asked = pod("p", "one", schedulingGroup={"podGroupName": "g"})
    there = cluster({"a": 1}, pod_groups=(group("g", *asked.spec.resource_claims),))
    assert asking(Case("", asked, there, "")) == "ClaimPending"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_remedies_are_tried_with_the_same_rules(case: Case) -> None:
    """What remedies are tried with finds room for a pod exactly where the scheduler places it."""
    state = state_of(case.there.objects)
    trials = Trials(state, case.there.now, list(state.nodes.values()), MOST_SEARCHES)
    try:
        fit = trials.first_fit(trials.round.demand(case.asked))
    except ClaimsNotReadyError:
        fit = None
    assert (fit is None) == (case.becomes in REASONS)

"""Reasons to wait that come before nodes are looked at."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.meta import ObjectMeta
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand
from drayman.placement.world import Objects, World
from drayman.reasons.reason import Headline
from drayman.reasons.waiting import before_nodes, demand_of, held_back, not_charged
from oracle.build import claim, exactly

SPEC = claim(exactly("r"))["spec"]
LATER = "2026-01-01T00:00:00Z"
BY_NAME = {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}
BY_TEMPLATE = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
IN_GROUP = {**BY_TEMPLATE, "schedulingGroup": {"podGroupName": "group"}}
TEMPLATE = {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": SPEC}}
MADE = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "c"}]}
USER = {"resource": "pods", "name": "p", "uid": "uid-p"}


def made(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    named = {"name": "c", "namespace": "default", "uid": "uid-c", "resourceVersion": "1"}
    return {"metadata": {**named, **metadata}, "spec": SPEC, "status": status or {}}


def allocated(*conditions: dict[str, Any]) -> dict[str, Any]:
    """A claim with a device that must be made ready, and what its driver says of it."""
    device = {"driver": "gpu.example.com", "pool": "a", "device": "d0"}
    binding = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    result = {"request": "r", **device, **binding}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [USER],
        "devices": [{**device, "conditions": list(conditions)}],
    }
    return made(status)


def published(node: str) -> dict[str, Any]:
    """What the driver says of a node that has no devices."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": []}
    return {"metadata": {"name": f"slice-{node}"}, "spec": spec}


def condition(kind: str, status: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "x", "lastTransitionTime": LATER}


def on_node(phase: str, **status: Any) -> dict[str, Any]:
    return {"spec": {"nodeName": "a"}, "status": {"phase": phase, **status}}


def waits(name: str, reason: str, message: str = "") -> dict[str, Any]:
    """The status of a container that does not run."""
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "it runs": ({"spec": {"nodeName": "a"}}, {}, "Runs", "on node a"),
    "it has not started": (
        {"spec": {"nodeName": "a"}, "status": {"phase": "Pending"}},
        {},
        "NotStarted (held)",
        "The pod is on node a, and has not started yet. Its events say why if it stays like this: kubectl describe pod p -n default.",
    ),
    "it is being started": (
        on_node("Pending", containerStatuses=[waits("main", "ContainerCreating")]),
        {},
        "NotStarted (held)",
        "not started yet: container main waits (ContainerCreating). Its events say why if it stays like this:"
        " kubectl describe pod p -n default.",
    ),
    "a driver that refuses": (
        on_node(
            "Pending",
            containerStatuses=[waits("main", "ContainerCreating", "claim c: driver d: no.")],
        ),
        {},
        "NotStarted (held)",
        "The pod is on node a, and has not started yet: container main waits (ContainerCreating): claim c: driver d: no.",
    ),
    "no image": (
        on_node(
            "Pending",
            containerStatuses=[
                waits("main", "ErrImageNeverPull", "Image x is not there."),
                waits("side", "ContainerCreating"),
            ],
        ),
        {},
        "NotStarted (held)",
        "has not started yet: container main waits (ErrImageNeverPull): Image x is not there.",
    ),
    "an init container that cannot be made": (
        on_node(
            "Pending",
            initContainerStatuses=[waits("first", "CreateContainerConfigError", 'no secret "s"')],
            containerStatuses=[waits("main", "PodInitializing")],
        ),
        {},
        "NotStarted (held)",
        'yet: init container first waits (CreateContainerConfigError): no secret "s".',
    ),
    "an init container that runs": (
        on_node(
            "Pending",
            initContainerStatuses=[{"name": "first", "state": {"running": {}}}],
            containerStatuses=[waits("main", "PodInitializing")],
        ),
        {},
        "NotStarted (held)",
        "yet: its containers wait for init container first to end.",
    ),
    "it crashes": (
        on_node(
            "Running",
            containerStatuses=[
                {"name": "side", "state": {"running": {}}},
                {
                    **waits("main", "CrashLoopBackOff", "back-off 10s restarting"),
                    "lastState": {
                        "terminated": {"exitCode": 3, "reason": "Error", "message": "no\ndata\n"}
                    },
                },
            ],
        ),
        {},
        "NotStarted (held)",
        "does not run as a whole: container main ends again and again (CrashLoopBackOff), last with exit code 3 (Error): no data.",
    ),
    "all of it runs": (
        on_node("Running", containerStatuses=[{"name": "main", "state": {"running": {}}}]),
        {},
        "Runs",
        "The pod is on node a.",
    ),
    "it has ended": (
        {"spec": {"nodeName": "a"}, "status": {"phase": "Succeeded"}},
        {},
        "Runs",
        "Succeeded",
    ),
    "it is going": (
        {"metadata": {"deletionTimestamp": LATER}, "spec": {"nodeName": "a"}},
        {},
        "Terminating (held)",
        "still on node a",
    ),
    "it should be gone": (
        {
            "metadata": {"deletionTimestamp": LATER, "finalizers": ["x/a", "x/b"]},
            "spec": {"nodeName": "a"},
        },
        {},
        "Terminating (held)",
        "still on node a. It has had its time to end. Finalizers: x/a and x/b. Its events say why if it stays like this:"
        " kubectl describe pod p -n default.",
    ),
    "its driver is gone": (
        {"metadata": {"deletionTimestamp": LATER}, "spec": {"nodeName": "a", **BY_NAME}},
        {"claims": [allocated()]},
        "Terminating (held)",
        "It has had its time to end. Driver gpu.example.com, which has to take back the devices of claim c, publishes nothing on the node"
        " any more: start the driver gpu.example.com on a.",
    ),
    "its driver is gone from another node": (
        {"metadata": {"deletionTimestamp": LATER}, "spec": {"nodeName": "a", **BY_NAME}},
        {"claims": [allocated()], "slices": [published("b")]},
        "Terminating (held)",
        "start the driver gpu.example.com on a.",
    ),
    "its device is gone, and its driver is there": (
        {"metadata": {"deletionTimestamp": LATER}, "spec": {"nodeName": "a", **BY_NAME}},
        {"claims": [allocated()], "slices": [published("a")]},
        "Terminating (held)",
        "Its events say why if it stays like this:",
    ),
    "it has time to go": (
        {"metadata": {"deletionTimestamp": "2099-01-01T00:00:00Z"}, "spec": {"nodeName": "a"}},
        {},
        "Terminating (held)",
        "The pod is being deleted and still on node a.",
    ),
    "gates": (
        {"spec": {"schedulingGates": [{"name": "x/a"}, {"name": "x/b"}]}},
        {},
        "Gated (held)",
        "2 scheduling gates: x/a and x/b",
    ),
    "somebody else's": ({"spec": {"schedulerName": "mine"}}, {}, "OtherScheduler (held)", "mine"),
    "no claim": ({"spec": BY_NAME}, {}, "ClaimMissing (held)", '"c" does not exist'),
    "a claim that is going": (
        {"spec": BY_NAME},
        {"claims": [made(deletionTimestamp=LATER)]},
        "ClaimDeleting (held)",
        "Claim c",
    ),
    "no template": ({"spec": BY_TEMPLATE}, {}, "TemplateMissing (held)", "template t"),
    "a claim of somebody else": (
        {"spec": BY_TEMPLATE, "status": MADE},
        {"claims": [made()], "templates": [TEMPLATE]},
        "ClaimForeign (held)",
        "Claim c",
    ),
    "no group": (
        {"spec": IN_GROUP},
        {"templates": [TEMPLATE]},
        "PodGroupMissing (held)",
        "Pod group group",
    ),
    "a claim that the group has still to get": (
        {"spec": IN_GROUP},
        {
            "templates": [TEMPLATE],
            "groups": [
                {"metadata": {"name": "group", "namespace": "default"}, "spec": BY_TEMPLATE}
            ],
        },
        "ClaimPending (held)",
        "entry g",
    ),
    "devices that are not ready": (
        {"spec": BY_NAME},
        {"claims": [allocated(condition("Ready", "False"))]},
        "DevicesNotReady (held)",
        "gpu.example.com/a/d0 (Ready)",
    ),
    "devices that failed": (
        {"spec": BY_NAME},
        {"claims": [allocated(condition("Broken", "True"))]},
        "BindingFailed (held)",
        "Broken",
    ),
}


def world(there: dict[str, Any]) -> World:
    objects = Objects(
        nodes=(Node(metadata=ObjectMeta(name="a")),),
        claims=tuple(convert(ResourceClaim, item) for item in there.get("claims", ())),
        templates=tuple(
            convert(ResourceClaimTemplate, item) for item in there.get("templates", ())
        ),
        slices=tuple(convert(ResourceSlice, item) for item in there.get("slices", ())),
        pod_groups=tuple(convert(PodGroup, item) for item in there.get("groups", ())),
    )
    return World(objects, 1_900_000_000.0)


def pod_of(fields: dict[str, Any]) -> Pod:
    metadata = {"name": "p", "namespace": "default", "uid": "uid-p", **fields.get("metadata", {})}
    spec = {"containers": [{"name": "main"}], **fields.get("spec", {})}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": fields.get("status", {})})


def waiting(world: World, pod: Pod) -> Headline | Demand:
    """What is said before nodes are asked, which is also said of what would be decided."""
    round_ = Decider(world.state).round(world.now)
    found = demand_of(world, round_, pod)
    decided = held_back(world, pod) or before_nodes(world, round_.consider(pod), pod)
    assert decided == (found if isinstance(found, Headline) else None)
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_comes_before_nodes(name: str) -> None:
    """The word, its kind, and what the sentence must say."""
    pod, there, title, words = CASES[name]
    found = waiting(world(there), pod_of(pod))
    assert isinstance(found, Headline)
    assert found.reason.title == title
    assert words in found.sentence
    assert found.sentence.endswith(".")


@pytest.mark.parametrize(
    ("pod", "there"),
    [
        ({}, {}),
        ({"spec": BY_NAME}, {"claims": [made()]}),
        ({"spec": BY_TEMPLATE}, {"templates": [TEMPLATE]}),
        ({"spec": BY_NAME}, {"claims": [allocated(condition("Ready", "True"))]}),
    ],
    ids=["no claims", "an open claim", "a claim to be made", "devices that are ready"],
)
def test_nodes_are_to_be_looked_at(pod: dict[str, Any], there: dict[str, Any]) -> None:
    """Nothing comes before the search for a node."""
    assert not isinstance(waiting(world(there), pod_of(pod)), Headline)


def test_a_pod_that_no_quota_covers_waits_for_that_reason():
    """As the scheduler has said, which asks what keeps quota; what nodes would say to the pod does not matter."""
    said = not_charged("pod p has no Workload that is admitted.")
    condition = {"type": "PodScheduled", "status": "False", "message": str(said)}
    metadata = {"name": "p", "namespace": "default", "uid": "uid-p"}
    body = {"metadata": metadata, "spec": {}, "status": {"conditions": [condition]}}
    pod = convert(Pod, body)
    assert held_back(World(Objects(pods=(pod,)), 0.0), pod) == said
    other = {**condition, "message": f"DevicesInUse (not now): {said}"}
    pod = convert(Pod, {**body, "status": {"conditions": [other]}})
    assert held_back(World(Objects(pods=(pod,)), 0.0), pod) is None

"""The checker itself: small states of which it is known what is wrong with them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import pytest

from faults.invariants import FINALIZER, broken_promises, unsettled
from faults.load import lost
from faults.snapshot import Object, Snapshot, amount
from faults.units import Unit

SHARED: Final[Object] = {"shareID": "a", "consumedCapacity": {"memory": "50Gi"}}


def metadata(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": "default", "uid": f"uid-of-{name}", **more}


def node(name: str = "node", **allocatable: str) -> Object:
    return {
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "status": {"allocatable": allocatable},
    }


def gpu(name: str, **more: Any) -> Object:
    return {"name": name, "capacity": {"memory": {"value": "80Gi"}}, **more}


def slice_of(*devices: Object, node_name: str = "node", counters: str = "") -> Object:
    spec: Object = {"driver": "gpus", "pool": {"name": node_name}, "nodeName": node_name}
    spec["devices"] = list(devices)
    if counters:
        spec["sharedCounters"] = [{"name": "set", "counters": {"slots": {"value": counters}}}]
    return {"metadata": {"name": f"slice-of-{node_name}"}, "spec": spec}


def consumer(pod: str) -> Object:
    return {"resource": "pods", "name": pod, "uid": f"uid-of-{pod}"}


def result(device: str = "gpu-0", pool: str = "node", **more: Any) -> Object:
    return {"driver": "gpus", "pool": pool, "device": device, "request": "gpu", **more}


def on(*names: str) -> Object:
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def claim(name: str, *pods: str, results: list[Object] | None = None, **more: Any) -> Object:
    """An allocated claim with its consumers."""
    allocation = {
        "devices": {"results": [result()] if results is None else results},
        "nodeSelector": on("node"),
    }
    status: Object = {"allocation": allocation, "reservedFor": [consumer(pod) for pod in pods]}
    return {"metadata": metadata(name, finalizers=[FINALIZER], **more), "status": status}


def pod(name: str, *claims: str, phase: str = "Running", node_name: str = "node") -> Object:
    spec: Object = {"containers": [{"name": "main"}], "nodeName": node_name}
    spec["resourceClaims"] = [{"name": each, "resourceClaimName": each} for each in claims]
    return {"metadata": metadata(name), "spec": spec, "status": {"phase": phase}}


def generated_for(name: str) -> list[Object]:
    return [{"kind": "Pod", "name": name, "uid": f"uid-of-{name}", "controller": True}]


def with_template(made: str | None) -> Object:
    found = pod("pod")
    found["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
    if made:
        statuses = [{"name": "gpu", "resourceClaimName": made}]
        found["status"]["resourceClaimStatuses"] = statuses
    return found


def with_extended(claim_name: str | None) -> Object:
    found = pod("pod")
    found["spec"]["containers"][0]["resources"] = {"requests": {"example.com/gpu": "1"}}
    if claim_name:
        found["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": claim_name}
    return found


def changed(item: Object, path: str, value: Any) -> Object:
    """A copy with one field changed, or without it."""
    copy = deepcopy(item)
    *way, last = path.split(".")
    inner = copy
    for step in way:
        inner = inner[step]
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return copy


NODES: Final = (node(),)
SLICES: Final = (slice_of(gpu("gpu-0"), gpu("gpu-1")),)
HALVES: Final = slice_of(
    *(
        gpu(f"gpu-{n}", consumesCounters=[{"counterSet": "set", "counters": {"slots": {"value": "4"}}}])
        for n in range(2)
    ),
    counters="7",
)  # fmt: skip

GOOD: Final = {
    "nothing": Snapshot(),
    "a pod with its claim": Snapshot((pod("pod", "gpu"),), (claim("gpu", "pod"),), NODES, SLICES),
    "two pods that share a claim": Snapshot(
        (pod("one", "gpu"), pod("two", "gpu")), (claim("gpu", "one", "two"),), NODES, SLICES
    ),
    "shares of a device": Snapshot(
        (pod("one", "a"), pod("two", "b")),
        (
            claim("a", "one", results=[result(shareID="a", consumedCapacity={"memory": "50Gi"})]),
            claim("b", "two", results=[result(shareID="b", consumedCapacity={"memory": "30Gi"})]),
        ),
        NODES,
        SLICES,
    ),
    "somebody looks at a device that is in use": Snapshot(
        (pod("one", "a"), pod("two", "b")),
        (claim("a", "one"), claim("b", "two", results=[result(adminAccess=True)])),
        NODES,
        SLICES,
    ),
    "counters with something left": Snapshot(
        (pod("pod", "gpu"),), (claim("gpu", "pod"),), NODES, (HALVES,)
    ),
    "a generated claim": Snapshot(
        (with_template("made"),),
        (claim("made", "pod", ownerReferences=generated_for("pod")),),
        NODES,
        SLICES,
    ),
    "extended resources": Snapshot(
        (with_extended("made"),),
        (claim("made", "pod", ownerReferences=generated_for("pod")),),
        NODES,
        SLICES,
    ),
    "extended resources of the node itself": Snapshot(
        (with_extended(None),), (), (node(**{"example.com/gpu": "1"}),), SLICES
    ),
    "an ended pod and its claim, given back": Snapshot(
        (pod("pod", "gpu", phase="Succeeded"),), ({"metadata": metadata("gpu")},), NODES, SLICES
    ),
    "workloads at their end": Snapshot(
        jobs=({"metadata": metadata("job"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}},),
        deployments=(
            {
                "metadata": metadata("deployment", generation=1),
                "spec": {"replicas": 2},
                "status": {"readyReplicas": 2, "observedGeneration": 1},
            },
        ),
    ),
}  # fmt: skip

BROKEN: Final = {
    "a device held twice": (
        Snapshot((), (claim("a", "one"), claim("b", "two")), NODES, SLICES),
        "device gpus/node/gpu-0 is held by several: default/a, default/b",
    ),
    "a device held twice by one claim": (
        Snapshot((), (claim("a", "one", results=[result(), result()]),), NODES, SLICES),
        "device gpus/node/gpu-0 is held by several: default/a, default/a",
    ),
    "a whole device that is shared too": (
        Snapshot((), (claim("a", "one"), claim("b", "two", results=[result(shareID="b")]))),
        "device gpus/node/gpu-0 is held by several: default/a, default/b",
    ),
    "a share held twice": (
        Snapshot(
            (), (claim("a", results=[result(**SHARED)]), claim("b", results=[result(**SHARED)]))
        ),
        "device gpus/node/gpu-0 is held by several: default/a, default/b",
    ),
    "too much of a capacity": (
        Snapshot(
            (),
            (
                claim("a", results=[result(**SHARED)]),
                claim("b", results=[result(**{**SHARED, "shareID": "b"})]),
            ),
            NODES,
            SLICES,
        ),
        f"device gpus/node/gpu-0: {100 * 2**30} of memory is taken, of 80Gi",
    ),
    "too much of a counter": (
        Snapshot((), (claim("a"), claim("b", results=[result("gpu-1")])), NODES, (HALVES,)),
        "counter gpus/node/set/slots: 8 is taken, of 7",
    ),
    "reserved without devices": (
        Snapshot((), (changed(claim("a", "pod"), "status.allocation", None),)),
        "claim default/a is reserved but not allocated",
    ),
    "allocated without a finalizer": (
        Snapshot((), (changed(claim("a", "pod"), "metadata.finalizers", None),)),
        "claim default/a is allocated and can be deleted all the same",
    ),
    "reserved twice": (
        Snapshot((), (claim("a", "pod", "pod"),)),
        "claim default/a is reserved twice for the same",
    ),
    "device status without devices": (
        Snapshot((), ({"metadata": metadata("a"), "status": {"devices": [{}]}},)),
        "claim default/a has the status of devices, but no devices",
    ),
    "bound without its claim": (
        Snapshot((pod("pod", "gpu"),), (), NODES),
        "pod default/pod on node, gpu: there is no claim",
    ),
    "bound before its claim was generated": (
        Snapshot((with_template(None),), (), NODES),
        "pod default/pod on node, gpu: there is no claim",
    ),
    "bound with a claim that is not reserved": (
        Snapshot((pod("pod", "gpu"),), (claim("gpu", "other"),), NODES),
        "pod default/pod on node, gpu: claim gpu is not reserved for it",
    ),
    "bound with a claim of an older pod of its name": (
        Snapshot(
            (with_template("gpu"),),
            (claim("gpu", "pod", ownerReferences=generated_for("older")),),
            NODES,
        ),
        "pod default/pod on node, gpu: claim gpu was made for another pod",
    ),
    "bound with a claim that lost its devices": (
        Snapshot((pod("pod", "gpu"),), ({"metadata": metadata("gpu"), "status": {}},), NODES),
        "pod default/pod on node, gpu: claim gpu has no devices",
    ),
    "bound elsewhere": (
        Snapshot(
            (pod("pod", "gpu", node_name="far"),), (claim("gpu", "pod"),), (node(), node("far"))
        ),
        "pod default/pod on far, gpu: claim gpu has its devices elsewhere",
    ),
    "bound to a node without the device": (
        Snapshot(
            (pod("pod", "gpu", node_name="far"),),
            (changed(claim("gpu", "pod"), "status.allocation.nodeSelector", None),),
            (node(), node("far")),
            SLICES,
        ),
        "pod default/pod on far, gpu: device gpus/node/gpu-0 is on node",
    ),
    "bound without a claim for extended resources": (
        Snapshot((with_extended(None),), (), NODES),
        "pod default/pod on node: there is no claim for example.com/gpu",
    ),
}

RESTLESS: Final = {
    "reserved for a pod that is gone": (
        Snapshot((), (claim("gpu", "pod"),)),
        "claim default/gpu is reserved for pod pod, which is gone",
    ),
    "reserved for a pod that has ended": (
        Snapshot((pod("pod", "gpu", phase="Failed"),), (claim("gpu", "pod"),)),
        "claim default/gpu is reserved for pod pod, which has ended",
    ),
    "devices for nobody": (Snapshot((), (claim("gpu"),)), "claim default/gpu holds devices for nobody"),
    "a deleted claim that stays": (
        Snapshot((), ({"metadata": metadata("gpu", deletionTimestamp="now")},)),
        "claim default/gpu is deleted and stays",
    ),
    "a generated claim without its pod": (
        Snapshot((), ({"metadata": metadata("gpu", ownerReferences=generated_for("pod"))},)),
        "claim default/gpu was made for pod pod, which needs it no more",
    ),
    "a claim that was generated once too often": (
        Snapshot(
            (with_template("made"),),
            (
                claim("made", "pod", ownerReferences=generated_for("pod")),
                {"metadata": metadata("again", ownerReferences=generated_for("pod"))},
            ),
        ),
        "claim default/again was made for pod pod, which does not know it",
    ),
    "a pod without a node": (
        Snapshot((changed(pod("pod", phase="Pending"), "spec.nodeName", None),)),
        "pod default/pod has no node: nobody says why",
    ),
    "a pod that does not start": (
        Snapshot((pod("pod", phase="Pending"),)),
        "pod default/pod on node is Pending",
    ),
    "a deleted pod that stays": (
        Snapshot((changed(pod("pod"), "metadata.deletionTimestamp", "now"),)),
        "pod default/pod is deleted and stays",
    ),
    "a pod whose claim is not generated": (
        Snapshot((with_template(None),)),
        "pod default/pod lacks the claim of gpu",
    ),
    "a job that does not end": (
        Snapshot(jobs=({"metadata": metadata("job")},)),
        "job default/job is not complete",
    ),
    "a deleted namespace that stays": (
        Snapshot(namespaces=({"metadata": metadata("tenant", deletionTimestamp="now")},)),
        "namespace tenant is deleted and stays",
    ),
    "a set with too few": (
        Snapshot(sets=({"metadata": metadata("set", generation=1), "spec": {"replicas": 1}},)),
        "default/set has 0 of 1 replicas",
    ),
    "a deployment with too few": (
        Snapshot(
            deployments=(
                {"metadata": metadata("deployment", generation=2), "spec": {"replicas": 2}},
            )
        ),
        "default/deployment has 0 of 2 replicas",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good_states_pass(name: str) -> None:
    """Nothing is found in a state that is as it should be."""
    assert (broken_promises(GOOD[name]), unsettled(GOOD[name])) == ([], [])


@pytest.mark.parametrize("name", BROKEN)
def test_broken_promises_are_found(name: str) -> None:
    """What may never be seen is named, with who is concerned."""
    state, finding = BROKEN[name]
    assert finding in broken_promises(state)


@pytest.mark.parametrize("name", RESTLESS)
def test_leaks_and_stalls_are_found(name: str) -> None:
    """What may be seen on the way, but not in the end, is named."""
    state, finding = RESTLESS[name]
    assert finding in unsettled(state)


POD: Final = "/api/v1/namespaces/default/pods/a"
JOB: Final = "/apis/batch/v1/namespaces/default/jobs/a"


@pytest.mark.parametrize(
    ("path", "versions", "deleted", "has_gap", "finding"),
    [
        (POD, {"uid": 5}, (), False, []),
        (POD, {"uid": 9}, (), False, []),
        (POD, {"uid": 4}, (), False, [f"{POD} is as it was before revision 5"]),
        (POD, {}, (), False, [f"{POD} is lost"]),
        (POD, {"another": 9}, ("another",), False, [f"{POD} is lost"]),
        (POD, {}, ("uid",), False, []),
        (POD, {}, (), True, []),
        (JOB, {}, ("uid",), True, [f"{JOB} is lost"]),
    ],
)
def test_lost_objects_are_found(
    path: str, versions: dict[str, int], deleted: tuple[str, ...], has_gap: bool, finding: list[str]
) -> None:
    """What was acknowledged is there, at that version or later, unless it is a pod that was seen to be deleted."""
    units = [Unit("a", [], {}, {path: "uid"})]
    assert lost(units, {"uid": 5}, versions, deleted, has_gap=has_gap) == finding


@pytest.mark.parametrize(
    ("text", "number"),
    [("80Gi", 80 * 2**30), ("100G", 10**11), ("1500m", 1.5), ("2e3", 2000), ("7", 7), (7, 7)],
)
def test_amounts(text: str | int, number: float) -> None:
    """Quantities are compared as numbers."""
    assert amount(text) == number

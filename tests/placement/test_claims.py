"""Which claims a pod uses (spec/dra.md 2.1), for whom they are reserved, and whether their devices are ready."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import NodeSelector, Pod
from drayman.api.resource import ResourceClaim
from drayman.placement.claims import (
    ClaimsNotReadyError,
    claims_of,
    claims_used_by,
    is_reserved_for,
    only_node_of,
    pods_holding,
    readiness,
)

DEVICE = {"driver": "d", "pool": "p", "device": "gpu-0"}
DIRECT = {"name": "e", "resourceClaimName": "c"}
GENERATED = {"name": "e", "resourceClaimTemplateName": "t"}


def pod(*entries: dict[str, Any], made: dict[str, str | None] | None = None, **spec: Any) -> Pod:
    statuses = [{"name": name, "resourceClaimName": claim} for name, claim in (made or {}).items()]
    return convert(
        Pod,
        {
            "metadata": {"name": "pod", "namespace": "default", "uid": "pod-uid"},
            "spec": {"resourceClaims": list(entries), **spec},
            "status": {"resourceClaimStatuses": statuses},
        },
    )


def claim(name: str = "c", *owners: dict[str, Any], **metadata: Any) -> ResourceClaim:
    named = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return convert(
        ResourceClaim, {"metadata": {**named, "ownerReferences": list(owners), **metadata}}
    )


def owner(uid: str = "pod-uid", *, controller: bool = True, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "pod",
        "uid": uid,
        "controller": controller,
        **fields,
    }


GROUP = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "group"}
IN_GROUP = {"schedulingGroup": {"podGroupName": "group"}}


def found(of: Pod, *claims: ResourceClaim) -> list[str]:
    by_key = {(c.metadata.namespace, c.metadata.name): c for c in claims}
    return [c.metadata.name for c in claims_of(of, lambda *key: by_key.get(key))]


USED: dict[str, tuple[Pod, list[ResourceClaim], list[str]]] = {
    "nothing": (pod(), [], []),
    "by name, whoever owns it": (pod(DIRECT), [claim("c", owner("somebody"))], ["c"]),
    "from a template": (pod(GENERATED, made={"e": "c"}), [claim("c", owner())], ["c"]),
    "an entry that needs none": (pod(GENERATED, made={"e": None}), [], []),
    "in the order of the entries": (
        pod({**DIRECT, "name": "f", "resourceClaimName": "d"}, GENERATED, made={"e": "c"}),
        [claim("c", owner()), claim("d")],
        ["d", "c"],
    ),
    "of the pod's group": (
        pod(GENERATED, made={"e": "c"}, **IN_GROUP),
        [claim("c", owner("group-uid", **GROUP))],
        ["c"],
    ),
}


@pytest.mark.parametrize("name", USED)
def test_claims_of_a_pod(name: str) -> None:
    """Direct names are taken as they are, generated ones from the status, where they belong to the pod or its group."""
    of, claims, wanted = USED[name]
    assert found(of, *claims) == wanted


NOT_READY: dict[str, tuple[Pod, list[ResourceClaim], str]] = {
    "missing": (pod(DIRECT), [], '"c" does not exist'),
    "going": (pod(DIRECT), [claim(deletionTimestamp="2026-01-01T00:00:00Z")], "is being deleted"),
    "not made yet": (pod(GENERATED), [], "entry e to be made from template t"),
    "recorded but missing": (pod(GENERATED, made={"e": "c"}), [], '"c" does not exist'),
    "of another pod": (
        pod(GENERATED, made={"e": "c"}),
        [claim("c", owner("other"))],
        "was not made for this pod",
    ),
    "owned but not controlled": (
        pod(GENERATED, made={"e": "c"}),
        [claim("c", owner(controller=False))],
        "was not made for this pod",
    ),
    "of a group that is not the pod's": (
        pod(GENERATED, made={"e": "c"}),
        [claim("c", owner("group-uid", **GROUP))],
        "was not made for this pod",
    ),
    "an entry that says nothing": (pod({"name": "e"}), [], "neither a claim nor a template"),
}


@pytest.mark.parametrize("name", NOT_READY)
def test_claims_that_are_not_ready(name: str) -> None:
    """The pod's owner is told what is missing."""
    of, claims, words = NOT_READY[name]
    with pytest.raises(ClaimsNotReadyError, match=words):
        found(of, *claims)


def reserved(*users: dict[str, str]) -> ResourceClaim:
    return convert(
        ResourceClaim, {"metadata": {"name": "c"}, "status": {"reservedFor": list(users)}}
    )


def taken(*users: dict[str, str], owners: list[dict[str, Any]] | None = None) -> ResourceClaim:
    return replace(claim("c", *(owners or [])), status=reserved(*users).status)


def test_reservations_go_by_uid() -> None:
    """A pod of the same name is another pod."""
    assert is_reserved_for(reserved({"resource": "pods", "name": "x", "uid": "pod-uid"}), pod())
    assert not is_reserved_for(reserved({"resource": "pods", "name": "pod", "uid": "old"}), pod())


def test_reservations_of_a_group_hold_for_its_pods() -> None:
    """A claim that is reserved for a pod group is reserved for its members, and for nobody else."""
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "group", "uid": "g"}
    assert is_reserved_for(reserved(group), pod(**IN_GROUP))
    assert not is_reserved_for(reserved(group), pod())
    assert not is_reserved_for(reserved({**group, "apiGroup": "example.com"}), pod(**IN_GROUP))


POD_USER = {"resource": "pods", "name": "pod", "uid": "pod-uid"}
GROUP_USER = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "group", "uid": "g"}
HOLDING: dict[str, tuple[ResourceClaim, list[str] | None]] = {
    "no pod": (reserved(), []),
    "pods": (reserved(POD_USER, {**POD_USER, "uid": "other"}), ["pod-uid", "other"]),
    "a group": (reserved(GROUP_USER), None),
    "a pod and a group": (reserved(POD_USER, GROUP_USER), None),
    "something unknown": (reserved({**POD_USER, "apiGroup": "example.com"}), None),
}


@pytest.mark.parametrize("name", HOLDING)
def test_which_pods_hold_a_claim(name: str) -> None:
    """Those that it is reserved for. A group keeps it whichever of its pods go, and so do consumers of other kinds."""
    of, wanted = HOLDING[name]
    found = pods_holding(of)
    assert (None if found is None else [user.uid for user in found]) == wanted


USES: dict[str, tuple[Pod, ResourceClaim, bool]] = {
    "reserved for it": (pod(DIRECT), taken(POD_USER), True),
    "reserved for its group": (pod(DIRECT, **IN_GROUP), taken(GROUP_USER), True),
    "only named": (pod(DIRECT), taken(), False),
    "of another pod": (pod(DIRECT), taken({**POD_USER, "uid": "other"}), False),
    "made for it": (pod(GENERATED, made={"e": "c"}), taken(POD_USER, owners=[owner()]), True),
    "made for another": (pod(GENERATED, made={"e": "c"}), taken(POD_USER), False),
}


@pytest.mark.parametrize("name", USES)
def test_which_claims_a_pod_uses(name: str) -> None:
    """Those that are reserved for it and, if they are generated, were made for it: to name a claim is not to use it."""
    of, claim_, wanted = USES[name]
    assert list(claims_used_by(of, lambda *_: claim_)) == ([claim_] if wanted else [])


def allocated(*conditions: tuple[str, str], of: str = "gpu-0", **result: Any) -> ResourceClaim:
    slow = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    said = [{"type": kind, "status": status, "message": "why"} for kind, status in conditions]
    devices = [{**DEVICE, "device": of, "conditions": said}] if said else []
    results = [{"request": "r", **DEVICE, **(result or slow)}]
    status = {"allocation": {"devices": {"results": results}}, "devices": devices}
    return convert(ResourceClaim, {"metadata": {"name": "c"}, "status": status})


READINESS: dict[str, tuple[ResourceClaim, bool, bool]] = {
    "nothing is allocated": (claim(), True, False),
    "devices without conditions": (allocated(adminAccess=True), True, False),
    "no report yet": (allocated(), False, False),
    "a report about another device": (allocated(("Ready", "True"), of="gpu-1"), False, False),
    "not yet": (allocated(("Ready", "False")), False, False),
    "ready": (allocated(("Ready", "True")), True, False),
    "failed": (allocated(("Failed", "True")), False, True),
    "ready and failed": (allocated(("Ready", "True"), ("Failed", "True")), False, True),
    "a failure that is over": (allocated(("Ready", "True"), ("Failed", "False")), True, False),
}


@pytest.mark.parametrize("name", READINESS)
def test_readiness(name: str) -> None:
    """All conditions of all devices are true, and no failure is."""
    of, is_ready, fails = READINESS[name]
    state = readiness(of)
    assert (state.is_ready, bool(state.failure)) == (is_ready, fails)
    assert bool(state.pending) == (not is_ready and not fails)


def test_readiness_names_device_and_condition() -> None:
    """What is missing or has failed is told with the driver's words."""
    assert readiness(allocated()).pending == ("d/p/gpu-0 (Ready)",)
    assert (
        readiness(allocated(("Failed", "True"))).failure == "device d/p/gpu-0 reports Failed: why"
    )


def selector(*terms: dict[str, Any]) -> NodeSelector:
    return convert(NodeSelector, {"nodeSelectorTerms": list(terms)})


def name_is(*names: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


ONLY: dict[str, tuple[NodeSelector | None, str | None]] = {
    "none": (None, None),
    "one node": (selector(name_is("a")), "a"),
    "two nodes": (selector(name_is("a", "b")), None),
    "two terms": (selector(name_is("a"), name_is("b")), None),
    "not that node": (selector(name_is("a", operator="NotIn")), None),
    "labels": (selector({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), None),
}


@pytest.mark.parametrize("name", ONLY)
def test_the_only_node(name: str) -> None:
    """An allocation is tied to a node where its selector has one term that names one node."""
    of, wanted = ONLY[name]
    assert only_node_of(of) == wanted

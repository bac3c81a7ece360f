"""What holds for headlines on any cluster, for any pod.

A headline comes exactly where the search finds no node. *never* stays refused on the emptied cluster, *not now* is served there. The
emptied cluster is built anew from the objects: it shares nothing with what worked the headline out.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod, PodSpec
from drayman.api.quantity import Quantity
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.demand import Demand
from drayman.placement.placing import Found, NotFound
from drayman.placement.world import Objects, state_of
from drayman.reasons.headline import Headlines, headline
from drayman.reasons.reason import Outlook, Reason
from oracle.build import taint
from oracle.nodes import JsonObject
from oracle.selectors import GPU
from scheduler.laws.fleet import GPU_RESOURCE, SHARED_CLAIMS, Fleet, Wishes, fleets

NAMESPACE = "default"
NOW = 1_000_000.0
RULE: JsonObject = {
    "metadata": {"name": "rule"},
    "spec": {"deviceSelector": {"driver": GPU}, "taint": taint("health", "bad", "NoSchedule")},
}
_LIKE = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
_SOCIAL: list[JsonObject] = [
    *[{}] * 5,
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_LIKE]}}},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_LIKE]}}},
    {"topologySpreadConstraints": [{**_LIKE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
]


@dataclass(frozen=True, slots=True)
class Cast:
    """A pod of a kind, and how it feels about others."""

    kind: int
    social: JsonObject
    app: str


def casts() -> st.SearchStrategy[Cast]:
    return st.builds(
        Cast, st.integers(0, 5), st.sampled_from(_SOCIAL), st.sampled_from(["", "", "x"])
    )


def objects_of(fleet: Fleet, *, tainted: bool) -> Objects:
    shared = [
        {"metadata": _named(name), "spec": item["spec"]}
        for name, item in zip(SHARED_CLAIMS, fleet.shared_claims, strict=True)
    ]
    return Objects(
        nodes=tuple(convert(Node, node) for node in fleet.nodes),
        slices=tuple(convert(ResourceSlice, item) for item in fleet.slices),
        classes=tuple(convert(DeviceClass, item) for item in fleet.classes),
        taint_rules=(convert(DeviceTaintRule, RULE),) if tainted else (),
        claims=tuple(convert(ResourceClaim, item) for item in shared),
    )


def _named(name: str) -> JsonObject:
    return {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "resourceVersion": "1"}


def pod_of(number: int, wishes: Wishes, cast: Cast) -> tuple[Pod, list[ResourceClaim]]:
    """A pod with the claims of its own."""
    name = f"pod-{number}"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"}
    claims, entries, statuses = [], [], []
    for index, item in enumerate(wishes.own_claims):
        metadata = _named(f"{name}-own-{index}")
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        claims.append(convert(ResourceClaim, {"metadata": metadata, "spec": item["spec"]}))
        entries.append({"name": f"own-{index}", "resourceClaimTemplateName": "t"})
        statuses.append({"name": f"own-{index}", "resourceClaimName": metadata["name"]})
    entries += [{"name": each, "resourceClaimName": each} for each in wishes.shared_claims]
    requests = {"cpu": str(wishes.cpu)} if wishes.cpu else {}
    if wishes.gpus:
        requests[GPU_RESOURCE] = str(wishes.gpus)
    spec: JsonObject = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "resourceClaims": entries,
        "nodeSelector": {"zone": wishes.zone} if wishes.zone else {},
        "tolerations": [{"key": "lease", "operator": "Exists"}] if wishes.tolerates else [],
        **cast.social,
    }
    metadata = {**_named(name), "labels": {"app": cast.app} if cast.app else {}}
    status = {"resourceClaimStatuses": statuses}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status}), claims


def found_when_empty(objects: Objects, demand: Demand, placed: list[Placement]) -> bool:
    """Whether a cluster of the same hardware takes the pod if no pod on it uses anything or is in the way.

    Pods that it may want near are there all the same.
    """
    affinity = demand.pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        placed = []
    emptied = Objects(
        pods=tuple(
            Pod(metadata=each.pod.metadata, spec=PodSpec(node_name=each.node)) for each in placed
        ),
        nodes=tuple(_with_room(node, len(placed)) for node in objects.nodes),
        slices=objects.slices,
        classes=objects.classes,
        taint_rules=objects.taint_rules,
        claims=demand.claims,
    )
    round_ = Decider(state_of(emptied)).round(NOW)
    found = round_.find(round_.demand_with(demand.pod, demand.claims))
    return isinstance(found, Found)


def _with_room(node: Node, pods: int) -> Node:
    """A node that takes this many more pods."""
    allocatable = node.status.allocatable
    more = {**allocatable, "pods": Quantity(allocatable["pods"].amount + pods)}
    return replace(node, status=replace(node.status, allocatable=more))


@given(fleets(), st.lists(casts(), min_size=4, max_size=14), st.booleans())
def test_the_kind_of_a_headline_is_what_the_emptied_cluster_says(
    fleet: Fleet, script: list[Cast], tainted: bool
) -> None:
    """*never* is refused with nothing in use, *not now* is not, and the headlines that are kept are those made anew."""
    objects = objects_of(fleet, tainted=tainted)
    state = state_of(objects)
    round_, kept = Decider(state).round(NOW), Headlines(state)
    placed: list[Placement] = []
    for number, cast in enumerate(script):
        pod, claims = pod_of(number, fleet.kinds[cast.kind % len(fleet.kinds)], cast)
        for claim in claims:
            state.set_claim(claim)
        demand = round_.demand(pod)
        found = round_.find(demand)
        if isinstance(found, Found):
            placed.append(round_.place(demand, found))
            continue
        told = headline(state, demand, found)
        event(told.reason.value)
        assert told == kept.of(demand, found)
        assert told.reason.kind is not None, "a pod that fits nowhere has a reason to wait"
        fits = found_when_empty(objects, demand, placed)
        if told.reason.kind is Outlook.NEVER:
            assert not fits, told
        elif told.reason.kind is Outlook.NOT_NOW:
            assert fits, told
        elif fits:
            assert told.reason.kind is Outlook.NOT_HERE or told.reason is Reason.SEARCH_LIMIT, told


@given(fleets(), st.lists(casts(), min_size=1, max_size=6))
def test_a_headline_names_what_it_is_about(fleet: Fleet, script: list[Cast]) -> None:
    """A sentence is a sentence: it has an end, no markers are left in it, and devices come with a claim."""
    state = state_of(objects_of(fleet, tainted=False))
    round_ = Decider(state, policy=Policy.FIRST_FIT).round(NOW)
    for number, cast in enumerate(script):
        pod, claims = pod_of(number, fleet.kinds[cast.kind % len(fleet.kinds)], cast)
        for claim in claims:
            state.set_claim(claim)
        demand = round_.demand(pod)
        found = round_.find(demand)
        if isinstance(found, NotFound):
            told = headline(state, demand, found, Policy.FIRST_FIT)
            assert told.sentence.endswith("."), told
            assert "\x00" not in told.sentence, told
            assert "None" not in told.sentence, told

"""Random clusters for the laws of the scheduler: nodes that are alike or not, their hardware, and what pods want of them.

Hardware and claims are those of the allocator's laws. Pools that belong to a node are repeated on other nodes, so that there are
nodes of one shape, and pools that several nodes share stay as they are.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from hypothesis import strategies as st

from oracle.build import ALL_FEATURES, CLASSES, NODE, claim, exactly, piece
from oracle.nodes import JsonObject
from oracle.strategies import _TUNED
from oracle.strategies_claims import claims
from oracle.strategies_hardware import hardware, pools, rarely

GPU_RESOURCE = "example.com/gpu"
NODES = ("node-1", "node-2", "node-3", "node-4")
NAMESPACES = ("default", "other")
APPS = ("x", "y")
SHARED_CLAIMS = ("shared-0", "shared-1")
FEATURES = ALL_FEATURES
_LABELS: list[JsonObject] = [{"zone": "a", "tier": "3"}, {"zone": "b", "tier": "1"}]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a pod asks for."""

    own_claims: tuple[JsonObject, ...] = ()
    shared_claims: tuple[str, ...] = ()
    gpus: int = 0
    """As an extended resource."""
    cpu: int = 0
    zone: str = ""
    tolerates: bool = False
    priority: int = 0
    namespace: str = NAMESPACES[0]
    app: str = ""
    """The value of its label."""
    near: JsonObject = field(default_factory=dict)
    """The fields of its spec that are about other pods."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a cluster is made of before anything happens."""

    nodes: tuple[JsonObject, ...]
    slices: tuple[JsonObject, ...]
    classes: tuple[JsonObject, ...]
    shared_claims: tuple[JsonObject, ...]
    kinds: tuple[Wishes, ...]
    """Pods come in few kinds, as in real life: most of them are copies of one another."""


@st.composite
def nodes(draw: st.DrawFn, name: str) -> JsonObject:
    allocatable: JsonObject = {
        "cpu": str(draw(st.sampled_from([8, 3]))),
        "memory": "8Gi",
        "pods": str(draw(st.sampled_from([10, 3]))),
    }
    if draw(rarely(5)):
        allocatable[GPU_RESOURCE] = str(draw(st.integers(0, 2)))
    spec: JsonObject = {}
    if draw(rarely(6)):
        effect = draw(st.sampled_from(["NoSchedule", "PreferNoSchedule"]))
        spec["taints"] = [{"key": "lease", "value": "x", "effect": effect}]
    if draw(rarely(20)):
        spec["unschedulable"] = True
    labels = {"kubernetes.io/hostname": name, **draw(st.sampled_from(_LABELS))}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def _moved(item: JsonObject, node: str) -> JsonObject:
    """A slice of a pool of the first node, as another node has it."""
    moved = deepcopy(item)
    moved["metadata"]["name"] = f"{node}-{item['metadata']['name']}"
    moved["spec"]["pool"]["name"] = f"{node}-{item['spec']['pool']['name']}"
    for scope in (moved["spec"], *(moved["spec"].get("devices") or ())):
        if scope.get("nodeName") == NODE:
            scope["nodeName"] = node
    return moved


@st.composite
def slices(draw: st.DrawFn, names: tuple[str, ...]) -> list[JsonObject]:
    made: list[JsonObject] = []
    made.append(piece([], pool="empty", name="empty", nodeName=names[0]))
    for number in range(draw(st.integers(1, 2))):
        model = draw(_local_pools(f"local-{number}"))
        for node in names:
            if draw(rarely(5)):
                continue
            made += [_moved(item, node) for item in model]
    if draw(rarely(3)):
        made += draw(hardware(3))
    return [item for item in made if not _hides_shares(item, made)]


def _hides_shares(item: JsonObject, made: list[JsonObject]) -> bool:
    """Whether another generation of the pool has a device of the same name that can be shared.

    What a share of a device means that can no longer be shared is nobody's law.
    """
    pool = item["spec"]["pool"]
    names = {device["name"] for device in item["spec"].get("devices") or ()}
    return any(
        device["name"] in names and device.get("allowMultipleAllocations")
        for other in made
        if other["spec"]["pool"]["name"] == pool["name"]
        and other["spec"]["pool"]["generation"] != pool["generation"]
        for device in other["spec"].get("devices") or ()
    )


@st.composite
def _local_pools(draw: st.DrawFn, name: str) -> list[JsonObject]:
    """A pool of the first node: a few plain devices, or anything that a pool can be."""
    if not draw(rarely(3)):
        devices = [f"d{n}" for n in range(draw(st.sampled_from([4, 3, 2, 1])))]
        return [piece(devices, pool=name, name=name)]
    driver = draw(st.sampled_from(["gpu.example.com", "gpu.example.com", "nic.example.com"]))
    return draw(pools(driver, name, draw(st.integers(1, 3))))


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    names = NODES[: draw(st.sampled_from([2, 3, 4, 1]))]
    classes: list[JsonObject] = [*deepcopy(CLASSES), deepcopy(_TUNED)]
    classes[0]["spec"]["extendedResourceName"] = GPU_RESOURCE
    return Fleet(
        nodes=tuple(draw(nodes(name)) for name in names),
        slices=tuple(draw(slices(names))),
        classes=tuple(classes),
        shared_claims=tuple(draw(_claims()) for _ in SHARED_CLAIMS),
        kinds=tuple(draw(st.lists(wishes(), min_size=1, max_size=3))),
    )


@st.composite
def _claims(draw: st.DrawFn) -> JsonObject:
    """Mostly plain ones, as people write them; the others have everything."""
    if draw(rarely(4)):
        return draw(claims(2))
    count = draw(st.sampled_from([1, 1, 1, 2]))
    return claim(exactly("r0", count, draw(st.sampled_from(["gpu", "gpu", "any"]))))


@st.composite
def wishes(draw: st.DrawFn) -> Wishes:
    shared = [draw(st.sampled_from(SHARED_CLAIMS))] if draw(rarely(2)) else []
    return Wishes(
        own_claims=tuple(draw(_claims()) for _ in range(draw(st.sampled_from([1, 1, 0, 2])))),
        shared_claims=tuple(shared),
        gpus=draw(st.integers(1, 2)) if draw(rarely(4)) else 0,
        cpu=draw(st.sampled_from([0, 0, 1, 2])),
        zone=draw(st.sampled_from(["a", "b"])) if draw(rarely(10)) else "",
        tolerates=draw(rarely(3)),
        priority=draw(st.sampled_from([0, 0, 5, 9])),
    )


@st.composite
def crowded(draw: st.DrawFn) -> Fleet:
    """One or two small nodes, pods that may be preempted, and pods that may preempt them."""
    names = NODES[: draw(st.sampled_from([2, 1]))]
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    made = [
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
            "status": {"allocatable": allocatable},
        }
        for name in names
    ]
    hardware_of_nodes = [
        piece(["d0", "d1", "d2"], pool=f"{name}-pool", name=f"{name}-slice", nodeName=name)
        for name in names
    ]
    counts = st.sampled_from([1, 1, 2, 3])
    cpus = st.sampled_from([0, 0, 1, 2])
    kinds = [
        Wishes((claim(exactly("r0", draw(counts), "gpu")),), cpu=draw(cpus), priority=priority)
        for priority in (0, 0, 9, 9)
    ]
    unused = tuple(claim(exactly("r0", 1, "gpu")) for _ in SHARED_CLAIMS)
    return Fleet(
        tuple(made), tuple(hardware_of_nodes), tuple(deepcopy(CLASSES)), unused, tuple(kinds)
    )


@st.composite
def fragile(draw: st.DrawFn) -> Fleet:
    """Small nodes whose drivers have to make devices ready, or cannot, and pods that share claims."""
    names = NODES[: draw(st.sampled_from([3, 2]))]
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    allocatable = {"cpu": str(draw(st.sampled_from([2, 8]))), "memory": "8Gi", "pods": "10"}
    made: list[JsonObject] = [
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
            "status": {"allocatable": allocatable},
        }
        for name in names
    ]
    slices_of_nodes = []
    for name in names:
        devices: list[JsonObject] = [
            {"name": f"d{number}", **(conditions if draw(st.booleans()) else {})}
            for number in range(draw(st.sampled_from([1, 2])))
        ]
        slices_of_nodes.append(
            piece(devices, pool=f"{name}-pool", name=f"{name}-slice", nodeName=name)
        )
    one = claim(exactly("r0", 1, "gpu"))
    kinds = [
        Wishes((one,), cpu=draw(st.sampled_from([0, 1]))),
        Wishes((), (SHARED_CLAIMS[0],), cpu=draw(st.sampled_from([1, 2]))),
        Wishes((one,), (SHARED_CLAIMS[1],)),
    ]
    shared = tuple(one for _ in SHARED_CLAIMS)
    return Fleet(
        tuple(made), tuple(slices_of_nodes), tuple(deepcopy(CLASSES)), shared, tuple(kinds)
    )


@st.composite
def neighbourly(draw: st.DrawFn) -> Fleet:
    """Small nodes in two zones, and pods that want others near or far, or spread."""
    made: list[JsonObject] = [
        {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "zone": draw(st.sampled_from("ab"))},
            },
            "spec": {"unschedulable": True} if draw(rarely(3)) else {},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for name in NODES[: draw(st.sampled_from([2, 1, 3]))]
    ]
    unused = tuple(claim(exactly("r0", 1, "gpu")) for _ in SHARED_CLAIMS)
    no_devices = (piece([], pool="empty", name="empty", nodeName=NODES[0]),)
    kinds = draw(st.lists(_neighbours(), min_size=2, max_size=5))
    return Fleet(tuple(made), no_devices, tuple(deepcopy(CLASSES)), unused, tuple(kinds))


@st.composite
def _neighbours(draw: st.DrawFn) -> Wishes:
    near: JsonObject = {}
    selector = {"matchLabels": {"app": draw(st.sampled_from(APPS))}}
    key = draw(st.sampled_from(["kubernetes.io/hostname", "zone"]))
    rule = draw(st.sampled_from(["", "podAffinity", "podAntiAffinity", "spread", "spread"]))
    if rule == "spread":
        term: JsonObject = {"topologyKey": key, "labelSelector": selector, "maxSkew": 1}
        near["topologySpreadConstraints"] = [{**term, "whenUnsatisfiable": "DoNotSchedule"}]
    elif rule:
        term = {"topologyKey": key, "labelSelector": selector}
        if draw(rarely(2)):
            term["namespaceSelector"] = draw(st.sampled_from([{}, {"matchLabels": {"team": "t"}}]))
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        near["affinity"] = {rule: required}
    return Wishes(
        cpu=draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, 3])),
        zone=draw(st.sampled_from("ab")) if draw(rarely(4)) else "",
        priority=draw(st.sampled_from([0, 0, 0, 5])),
        namespace=draw(st.sampled_from(NAMESPACES)),
        app=draw(st.sampled_from(APPS)),
        near=near,
    )

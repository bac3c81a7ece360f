"""Small clusters with devices, claim templates, and workloads whose pods ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.kueue import pod_template_of
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceClaimTemplate, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.quota.demands import Placement
from drayman.quota.fitting.expecting import PodSetPods, WorkloadPods
from oracle.build import capacity, device, device_class, exactly, partitioned, piece, shared
from placement.everything import everything

HOST = "kubernetes.io/hostname"
NAMESPACE = "default"
_NO_CONTENT = ("marks", "_marks", "_crowds", "_is_counting", "_gone")
TEMPLATES: Mapping[str, list[dict[str, Any]]] = {
    "one": [exactly()],
    "two": [exactly(count=2)],
    "large": [exactly(select=['device.attributes["gpu.example.com"].model == "large"'])],
    "part": [exactly(cls="part")],
    "share": [exactly(cls="share", capacity={"requests": {"memory": "2"}})],
}


def make_state() -> ClusterState:
    state = ClusterState(Features(), lambda _: None)
    for name, kind in {"gpu": "whole", "part": "part", "share": "share"}.items():
        expression = f'device.attributes["gpu.example.com"].kind == "{kind}"'
        state.set_class(convert(DeviceClass, device_class(name, expression)))
    for name, requests in TEMPLATES.items():
        value = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"spec": {"devices": {"requests": requests}}},
        }
        state.set_template(convert(ResourceClaimTemplate, value))
    return state


def make_node(
    name: str, cpu: int = 4, *, labels: Mapping[str, str] | None = None, **spec: Any
) -> Node:
    value = {
        "metadata": {"name": name, "labels": {HOST: name, **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "20"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return convert(Node, value)


def whole(node: str, models: Iterable[str], **fields: Any) -> list[ResourceSlice]:
    """Whole devices of these models."""
    made = [
        device(f"d{number}", attrs={"kind": "whole", "model": model}, **fields)
        for number, model in enumerate(models)
    ]
    return [convert(ResourceSlice, piece(made, pool=node, name=node, nodeName=node))]


def parts(node: str, number: int, counter: int) -> list[ResourceSlice]:
    """Partitions that each take two of a counter."""
    made = [device(f"p{n}", attrs={"kind": "part"}, spends={"s": {"c": 2}}) for n in range(number)]
    pool = f"{node}-parts"
    found = partitioned(made, {"s": {"c": counter}}, pool=pool, nodeName=node)
    return [convert(ResourceSlice, each) for each in found]


def shares(node: str, memory: int) -> list[ResourceSlice]:
    """A device that several claims share, each with some of its memory."""
    made = shared("s0", {"memory": capacity(memory)}, attrs={"kind": "share"})
    pool = f"{node}-shares"
    return [convert(ResourceSlice, piece([made], pool=pool, name=pool, nodeName=node))]


def add_node(state: ClusterState, node: Node, *slices: list[ResourceSlice]) -> None:
    state.set_node(node)
    for each in slices:
        for slice_ in each:
            state.set_slice(slice_)


def template(claims: Iterable[str] = (), cpu: int = 1, **spec: Any) -> dict[str, Any]:
    """A pod template with a claim from each of these templates, or with a claim that exists: `=name`."""
    entries = [
        {"name": f"c{n}", "resourceClaimName": name[1:]}
        if name.startswith("=")
        else {"name": f"c{n}", "resourceClaimTemplateName": name}
        for n, name in enumerate(claims)
    ]
    container = {
        "name": "main",
        "resources": {
            "requests": {"cpu": str(cpu)},
            "claims": [{"name": entry["name"]} for entry in entries],
        },
    }
    return {"spec": {"containers": [container], "resourceClaims": entries, **spec}}


def pod_set(
    count: int,
    made: dict[str, Any] | None = None,
    *,
    name: str = "main",
    placement: Placement | None = None,
) -> PodSetPods:
    return PodSetPods(name, count, pod_template_of(made or template()), placement)


def workload(name: str, *pod_sets: PodSetPods) -> WorkloadPods:
    return WorkloadPods(NAMESPACE, name, pod_sets)


def real_pods(wanted: WorkloadPods, priority: int = 0) -> list[tuple[str, Pod]]:
    """The pods of a workload as their controller makes them, with the set that each is in."""
    found = []
    for each in wanted.pod_sets:
        for number in range(each.count):
            name = f"{wanted.name}-{each.name}-x{number}"
            labels = each.template.metadata.labels
            metadata = ObjectMeta(name=name, namespace=wanted.namespace, uid=name, labels=labels)
            spec = replace(each.template.spec, priority=priority)
            found.append((each.name, Pod(metadata=metadata, spec=spec)))
    return found


def content(state: ClusterState) -> Any:
    """All that a state consists of, but for the marks, which only ever grow outside of trials, an index of pods that begins with the
    first pod that depends on others, and keeps what kinds of pods there were, and the claims that are remembered as gone, of which there
    is a most."""
    return _with_content(everything(state))


def _with_content(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in _NO_CONTENT}
        return {key: found for key, each in kept.items() if (found := _with_content(each)) != {}}
    if isinstance(value, (list, tuple)):
        return [_with_content(each) for each in value]
    return value

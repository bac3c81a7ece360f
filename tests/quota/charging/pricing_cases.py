"""A small cluster and pods for prices: classes `gpu`, `nic`, `mig` and `share`, with what a case needs beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.kueue import PodTemplate, pod_template_of
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.outcome import Charges, PriceRefusal
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Gates, Rules
from drayman.quota.demands import PodSetRequest
from oracle.build import device_class
from oracle.selectors import GPU, NIC

JsonObject = dict[str, Any]

GI = 1 << 30
MI = 1 << 20
ON_GPU = f'device.driver == "{GPU}"'
ON_NIC = f'device.driver == "{NIC}"'


def attribute_is(name: str, value: str) -> str:
    """A selector: an attribute of a GPU has this value."""
    return f'device.attributes["{GPU}"].{name} == "{value}"'


def maps(name: str, *classes: str, sources: Sequence[JsonObject] = ()) -> JsonObject:
    """A mapping of classes to a quota resource."""
    return {"name": name, "deviceClassNames": list(classes), "sources": list(sources)}


def counter(name: str = "memory", driver: str = GPU, select: str = "true") -> JsonObject:
    return {"counter": _measure(name, driver, select)}


def capacity_source(name: str = "memory", driver: str = GPU, select: str = "true") -> JsonObject:
    return {"capacity": _measure(name, driver, select)}


def _measure(name: str, driver: str, select: str) -> JsonObject:
    return {"name": name, "driver": driver, "deviceSelector": {"cel": {"expression": select}}}


MAPPINGS = (
    maps("gpus", "gpu"),
    maps("nics", "nic"),
    maps("gpu.memory", "mig", sources=[counter()]),
    maps("vram", "share", sources=[capacity_source()]),
)

CLASSES = (
    device_class("gpu", ON_GPU),
    device_class("nic", ON_NIC),
    device_class("mig", ON_GPU),
    device_class("share", ON_GPU),
)


def extended(name: str, resource: str, created: str = "", *select: str) -> JsonObject:
    """A class that stands behind an extended resource."""
    made = device_class(name, *select)
    made["spec"]["extendedResourceName"] = resource
    if created:
        made["metadata"]["creationTimestamp"] = created
    return made


def cluster(
    *slices: JsonObject,
    templates: Mapping[str, Sequence[JsonObject]] | None = None,
    claims: Iterable[JsonObject] = (),
    classes: Iterable[JsonObject] = CLASSES,
    rules: Iterable[JsonObject] = (),
    nodes: Iterable[JsonObject] = (),
    namespace: str = "default",
) -> ClusterState:
    """A cluster with these objects. Templates are given as their requests, by name."""
    state = ClusterState(Features(), lambda _: None)
    for each in classes:
        state.set_class(convert(DeviceClass, each))
    for each in nodes:
        state.set_node(convert(Node, each))
    for each in slices:
        state.set_slice(convert(ResourceSlice, each))
    for each in rules:
        state.set_taint_rule(convert(DeviceTaintRule, each))
    for each in claims:
        state.set_claim(convert(ResourceClaim, each))
    for name, requests in (templates or {}).items():
        state.set_template(template(name, requests, namespace=namespace))
    return state


def template(
    name: str, requests: Sequence[JsonObject], *, namespace: str = "default", **devices: Any
) -> ResourceClaimTemplate:
    return convert(
        ResourceClaimTemplate,
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
        },
    )


def pods(
    *templates: str,
    claims: Sequence[str] = (),
    containers: Sequence[Mapping[str, str]] = ({},),
    inits: Sequence[Mapping[str, str]] = (),
    sidecars: Sequence[Mapping[str, str]] = (),
) -> PodTemplate:
    """Pods with a claim of each template, with these claims, and with containers that make these requests."""
    entries: list[JsonObject] = [
        {"name": f"t{number}", "resourceClaimTemplateName": name}
        for number, name in enumerate(templates)
    ]
    entries += [
        {"name": f"c{number}", "resourceClaimName": name} for number, name in enumerate(claims)
    ]
    first = [_container(f"i{n}", r) for n, r in enumerate(inits)]
    first += [_container(f"s{n}", r) | {"restartPolicy": "Always"} for n, r in enumerate(sidecars)]
    spec = {
        "initContainers": first,
        "containers": [_container(f"c{n}", r) for n, r in enumerate(containers)],
        "resourceClaims": entries,
    }
    return pod_template_of({"spec": spec})


def _container(name: str, requests: Mapping[str, str]) -> JsonObject:
    return {"name": name, "resources": {"requests": dict(requests)}}


def pricing(
    state: ClusterState,
    mappings: Sequence[JsonObject] = MAPPINGS,
    *,
    rules: Rules | None = None,
    gates: Gates | None = None,
) -> DevicePricing:
    read = read_mappings({"resources": {"deviceClassMappings": list(mappings)}}, gates)
    return DevicePricing(state, read, rules=rules, gates=gates)


def price(
    state: ClusterState,
    template: PodTemplate,
    *,
    count: int = 1,
    mappings: Sequence[JsonObject] = MAPPINGS,
    rules: Rules | None = None,
    gates: Gates | None = None,
    flavor: Mapping[str, str] | None = None,
) -> Charges | PriceRefusal:
    """The price of pod set `main`."""
    asked = pricing(state, mappings, rules=rules, gates=gates)
    found = asked.price_workload("default", [PodSetRequest("main", count, template)], flavor=flavor)
    return found if isinstance(found, PriceRefusal) else found["main"]


def charged(found: Charges | PriceRefusal) -> dict[str, int]:
    """What a pod is charged. Fails with the reason where there is no price."""
    assert isinstance(found, Charges), found.message
    return dict(found.charges)


def refused(found: Charges | PriceRefusal) -> PriceRefusal:
    assert isinstance(found, PriceRefusal), found
    return found

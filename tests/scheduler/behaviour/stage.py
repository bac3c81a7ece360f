"""A whole cluster, and the few words in which a test says what is in it and what it waits for.

API server, controllers and scheduler run as `drayman up` runs them, and everything a test does or sees goes through HTTP. There is no
kubelet: what one would report, the test reports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from controllers.world import (
    CLAIM_VALUES,
    FINALIZER,
    NAMESPACE,
    POD_VALUES,
    TEMPLATE_VALUES,
    World,
    eventually,
    stays,
)
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.api.struct import Json
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.cluster import HttpClient
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    EVENTS,
    NODES,
    RESOURCE_SLICES,
    JsonObject,
    Resource,
)
from drayman.scheduler.options import SchedulerOptions

NODE_VALUES = NODES.as_values()
SLICE_VALUES = RESOURCE_SLICES.as_values()
CLASS_VALUES = DEVICE_CLASSES.as_values()
RULE_VALUES = DEVICE_TAINT_RULES.as_values()
DRIVER = "gpu.example.com"
ALLOCATABLE = {"cpu": "8", "memory": "16Gi", "pods": "110"}
EXTENDED = "resource.kubernetes.io/extended-resource-claim"


class Stage(World):
    """A cluster to act on."""

    __slots__ = ()

    # What is in it.

    async def create(self, resource: Resource[JsonObject], value: JsonObject) -> JsonObject:
        """Pods come when everything else is known that was made before."""
        if resource is POD_VALUES:
            await self.heard(but=POD_VALUES)
        return await super().create(resource, value)

    async def node(self, name: str = "node-a", *devices: Any, **fields: Any) -> None:
        """A node with devices of its own. `labels`, `allocatable` and `spec` are its fields."""
        labels = {"kubernetes.io/hostname": name, **fields.get("labels", {})}
        allocatable = {**ALLOCATABLE, **fields.get("allocatable", {})}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"allocatable": allocatable, "capacity": allocatable, "conditions": ready}
        metadata = {"name": name, "labels": labels}
        value = {"metadata": metadata, "spec": fields.get("spec", {}), "status": status}
        await self.create(NODE_VALUES, value)
        # Its kubelet has reported: a new node starts with a taint that keeps pods away until then.
        taints = {"spec": {"taints": fields.get("spec", {}).get("taints")}}
        await self.patch(NODE_VALUES, name, taints)
        if devices:
            await self.slice(name, *devices, nodeName=name)

    async def slice(self, pool: str, *devices: Any, **scope: Any) -> str:
        """A slice that is a whole pool; returns its name."""
        driver, generation = scope.pop("driver", DRIVER), scope.pop("generation", 1)
        name = scope.pop("name", f"{driver}-{pool}-{generation}")
        spec = {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": [device(item) if isinstance(item, str) else item for item in devices],
            **(scope or {"allNodes": True}),
        }
        await self.create(SLICE_VALUES, {"metadata": {"name": name}, "spec": spec})
        return str(name)

    async def publish(self, name: str, *devices: Any) -> None:
        """Replaces the devices of a slice."""
        made = [device(item) if isinstance(item, str) else item for item in devices]
        await self.patch(SLICE_VALUES, name, {"spec": {"devices": made}})

    async def device_class(self, name: str = "gpu", *expressions: str, **spec: Any) -> None:
        selectors = [{"cel": {"expression": text}} for text in expressions]
        made = {**({"selectors": selectors} if selectors else {}), **spec}
        await self.create(CLASS_VALUES, {"metadata": {"name": name}, "spec": made})

    async def rule(self, name: str, effect: str, **selector: str) -> None:
        """A DeviceTaintRule; without a selector it selects nothing."""
        spec: JsonObject = {"taint": {"key": "health", "value": "bad", "effect": effect}}
        if selector:
            spec["deviceSelector"] = selector
        await self.create(RULE_VALUES, {"metadata": {"name": name}, "spec": spec})

    async def make_claim(self, name: str, *requests: JsonObject, **devices: Json) -> None:
        await self.create(
            CLAIM_VALUES, {"metadata": {"name": name}, "spec": asks(*requests, **devices)}
        )

    async def make_template(self, name: str, *requests: JsonObject, **metadata: Json) -> None:
        spec = {"metadata": metadata, "spec": asks(*requests)}
        await self.create(TEMPLATE_VALUES, {"metadata": {"name": name}, "spec": spec})

    async def start_pod(self, name: str, *entries: JsonObject | str, **spec: Any) -> Pod:
        """A pod. An entry that is a name stands for that claim; `requests` are those of its container, `annotations` its own."""
        listed = [{"name": e, "resourceClaimName": e} if isinstance(e, str) else e for e in entries]
        uses = [{"name": entry["name"]} for entry in listed]
        wanted, annotations = spec.pop("requests", {}), spec.pop("annotations", {})
        resources: JsonObject = {"claims": uses, "requests": wanted}
        resources["limits"] = {key: value for key, value in wanted.items() if "/" in key}
        container = {"name": "main", "image": "example.com/image:1", "resources": resources}
        made = {"containers": [container], "resourceClaims": listed, **spec}
        metadata = {"name": name, "annotations": annotations}
        await self.create(POD_VALUES, {"metadata": metadata, "spec": made})
        return await self.until_pod(name, lambda _: True)

    async def allocate_by_hand(self, name: str, device: str, node: str, **fields: Json) -> None:
        """Gives a claim a device of a node, as another scheduler would."""
        await self.patch(CLAIM_VALUES, name, {"metadata": {"finalizers": [FINALIZER]}})
        result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
        allocation = {"devices": {"results": [result]}, "nodeSelector": only(node)}
        await self.patch(
            CLAIM_VALUES, name, {"status": {"allocation": allocation, **fields}}, "status"
        )

    async def report(self, claim: str, device: str, pool: str, **conditions: str) -> None:
        """What a driver says about a device of a claim."""
        said = [
            {
                "type": kind,
                "status": status,
                "reason": "Said",
                "message": f"{kind} is {status}",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for kind, status in conditions.items()
        ]
        entry = {"driver": DRIVER, "pool": pool, "device": device, "conditions": said}
        await self.patch(CLAIM_VALUES, claim, {"status": {"devices": [entry]}}, "status")

    async def delete(self, resource: Resource[JsonObject], name: str) -> None:
        await self.client.delete(resource, name, NAMESPACE if resource.namespaced else None)

    # What becomes of it.

    async def bound(self, *names: str) -> str:
        """Waits until pods have a node; returns that of the last."""
        node = ""
        for name in names:
            node = (await self.until_pod(name, lambda pod: bool(pod.spec.node_name))).spec.node_name
        return node

    async def refused(self, name: str, *words: str) -> str:
        """Waits until a pod is told why it waits, in these words."""
        pod = await self.until_pod(
            name, lambda pod: all(word in message_of(pod) for word in words or (" ",))
        )
        assert not pod.spec.node_name
        return message_of(pod)

    async def keeps_waiting(self, name: str) -> None:
        async def node() -> str:
            pod = await self.get_pod(name)
            return "gone" if pod is None else pod.spec.node_name

        await self.heard()
        await stays(node, lambda found: not found)

    async def stays_bound(self, name: str) -> None:
        async def alive() -> bool:
            pod = await self.get_pod(name)
            return pod is not None and pod.metadata.deletion_timestamp is None

        await self.heard()
        await stays(alive, bool)

    async def allocated(self, name: str) -> ResourceClaim:
        return await self.until_claim(name, lambda claim: claim.status.allocation is not None)

    async def free(self, name: str) -> ResourceClaim:
        return await self.until_claim(name, lambda claim: claim.status.allocation is None)

    async def claim_of(self, pod: str) -> ResourceClaim:
        """The only generated claim of a pod."""
        (name,) = (await self.generated(pod)).values()
        assert name is not None
        found = await self.get_claim(name)
        assert found is not None
        return found

    async def extended_claim_of(self, pod: str) -> ResourceClaim:
        """The claim made for the extended resources of a pod that has a node."""
        found = await self.until_pod(
            pod, lambda p: p.status.extended_resource_claim_status is not None
        )
        status = found.status.extended_resource_claim_status
        assert status is not None
        return await self.allocated(status.resource_claim_name)

    async def event(self, name: str, reason: str) -> JsonObject:
        """Waits for an event about an object."""

        async def read() -> list[JsonObject]:
            listed = (await self.client.list(EVENTS, NAMESPACE)).items
            return [e for e in listed if (e["regarding"]["name"], e["reason"]) == (name, reason)]

        return (await eventually(read, bool))[0]

    async def rule_status(self, name: str, wanted: Callable[[JsonObject], bool]) -> JsonObject:
        """The condition of a taint rule, once it is as wanted."""

        async def read() -> JsonObject:
            rule = await self.client.get(RULE_VALUES, name)
            found = rule.get("status", {}).get("conditions") or [{}]
            return dict(found[0])

        return await eventually(read, wanted)


@asynccontextmanager
async def staged(folder: Path, **options: Any) -> AsyncIterator[Stage]:
    """A cluster whose scheduler does not wait long after errors."""
    settings = SchedulerOptions(**{"first_backoff_s": 0.05, "longest_backoff_s": 0.2, **options})
    instance = await start(
        Options(
            folder=Folder(folder / "drayman"),
            durable=False,
            control_plane=ControlPlane(scheduler=settings),
        )
    )
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            yield Stage(client, (), instance.informers)
    finally:
        await instance.stop()


def device(name: str, **fields: Any) -> JsonObject:
    return {"name": name, **fields}


def tainted(name: str, effect: str, key: str = "health", **fields: Any) -> JsonObject:
    return device(name, taints=[{"key": key, "value": "bad", "effect": effect}], **fields)


def conditional(name: str, **fields: Any) -> JsonObject:
    """A device that its driver has to make ready."""
    return device(name, bindingConditions=["Ready"], bindingFailureConditions=["Failed"], **fields)


def asks(*requests: JsonObject, **devices: Json) -> JsonObject:
    return {"devices": {"requests": list(requests) or [wants()], **devices}}


def wants(name: str = "r", device_class: str = "gpu", **fields: Any) -> JsonObject:
    """A request; `select` is a CEL expression."""
    return {"name": name, "exactly": _of_class(device_class, fields)}


def prefers(*device_classes: str, name: str = "r") -> JsonObject:
    """A request with alternatives, the first the best."""
    listed = [{"name": each, **_of_class(each, {})} for each in device_classes]
    return {"name": name, "firstAvailable": listed}


def _of_class(name: str, fields: dict[str, Any]) -> JsonObject:
    fields = dict(fields)
    expression = fields.pop("select", "")
    made = {"deviceClassName": name, **fields}
    if expression:
        made["selectors"] = [{"cel": {"expression": expression}}]
    return made


def tolerates(**fields: Any) -> list[JsonObject]:
    return [{"key": "health", "operator": "Exists", **fields}]


def from_template(template: str = "t", name: str = "gpu") -> JsonObject:
    return {"name": name, "resourceClaimTemplateName": template}


def only(node: str) -> JsonObject:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"nodeSelectorTerms": [{"matchFields": fields}]}


def message_of(pod: Pod) -> str:
    """Why a pod waits."""
    found = [c for c in pod.status.conditions if c.type_ == "PodScheduled" and c.status == "False"]
    return found[0].message or "" if found else ""


def users_of(claim: ResourceClaim) -> list[str]:
    return [user.name for user in claim.status.reserved_for]


def devices_of(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation
    return [] if allocation is None else [entry.device for entry in allocation.devices.results]

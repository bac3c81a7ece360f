"""Plays a scenario on a cluster: the same objects on an API server, with the scheduler and the controllers at work.

The pod first waits for the reason that was told. Then one remedy is carried out as an administrator would, and the pod has to get its
node. Pods and claims that do not take a change are made anew with it. There is no kubelet and no job: what they would report, the play
reports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from controllers.world import FINALIZER, eventually
from drayman.api.codec import to_dict
from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.apiserver.holdings.exclusive import ExclusiveDevices
from drayman.apiserver.instance.control_plane import ControlPlane, running
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import Client, DeleteOptions, InProcessClient, merge_patch
from drayman.cluster.embedded import Store
from drayman.cluster.errors import ForbiddenError, InvalidError, NotFoundError
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    JsonObject,
    Resource,
    generic,
)
from drayman.explain.answer import Operation, Remedy
from drayman.inventory.features import Features
from drayman.placement.world import Objects
from drayman.reasons.reason import Reason
from drayman.scheduler.options import SchedulerOptions
from explain.applying import apply

_NAMESPACE_VALUES = NAMESPACES.as_values()
_POD_VALUES = PODS.as_values()
_CLAIM_VALUES = RESOURCE_CLAIMS.as_values()
_PRIORITY_CLASSES = generic(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False
)
_AT_ONCE = DeleteOptions(grace_period_seconds=0)
_FIRST: dict[str, Resource[Any]] = {
    "namespaces": NAMESPACES,
    "nodes": NODES,
    "classes": DEVICE_CLASSES,
    "taint_rules": DEVICE_TAINT_RULES,
    "storage_classes": STORAGE_CLASSES,
    "volumes": PERSISTENT_VOLUMES,
    "volume_claims": VOLUME_CLAIMS,
    "templates": RESOURCE_CLAIM_TEMPLATES,
    "pod_groups": POD_GROUPS,
    "slices": RESOURCE_SLICES,
}
"""What is there before any pod, in this order."""
_PATCHED = {
    "Node": NODES,
    "Pod": PODS,
    "DeviceClass": DEVICE_CLASSES,
    "DeviceTaintRule": DEVICE_TAINT_RULES,
    "ResourceSlice": RESOURCE_SLICES,
    "ResourceClaim": RESOURCE_CLAIMS,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES,
    "PodGroup": POD_GROUPS,
}
_UNCHANGEABLE = ("ResourceClaim", "ResourceClaimTemplate", "PodGroup")
_SILENT = (Reason.OTHER_SCHEDULER, Reason.GATED)
"""The scheduler does not touch pods with these."""


@asynccontextmanager
async def server(features: Features) -> AsyncIterator[Client]:
    """A server with controllers and a scheduler that does not wait long before it tries again."""
    store = Store.open(None)
    try:
        # A play allocates devices beside the scheduler, which may not have heard of the last of them when it decides.
        store.constrain(ExclusiveDevices(store))
        core = make_server(store).core
        await create_first_objects(core)
        options = SchedulerOptions(
            is_guarded=True, first_backoff_s=0.05, longest_backoff_s=0.2, features=features
        )
        async with (
            running(core, ControlPlane(scheduler=options)),
            InProcessClient(ServerBackend(core)) as client,
        ):
            yield client
    finally:
        store.close()


@dataclass(slots=True)
class Play:
    """The objects of a scenario on a server; the last pod is the one that waits."""

    client: Client
    objects: Objects
    written: Mapping[str, Sequence[JsonObject]]
    """The same as they were written, with the fields that nobody here reads."""
    _uids: dict[str, str] = field(default_factory=dict)
    """Those that the server gave, by the ones of the scenario."""

    @property
    def subject(self) -> Pod:
        return self.objects.pods[-1]

    async def begin(self) -> None:
        """Everything is there, the pod that waits last."""
        known = {namespace.metadata.name for namespace in self.objects.namespaces} | {"default"}
        for name in {pod.metadata.namespace for pod in self.objects.pods} - known:
            await self.client.create(_NAMESPACE_VALUES, {"metadata": {"name": name}})
        for name, resource in _FIRST.items():
            for value, text in zip(getattr(self.objects, name), self.written[name], strict=True):
                await self._create(resource, value, text)
        for node in self.objects.nodes:
            # A node starts with a taint that keeps pods away until its kubelet has reported.
            taints = [to_dict(taint) for taint in node.spec.taints]
            patch = merge_patch({"spec": {"taints": taints or None}})
            await self.client.patch(NODES, node.metadata.name, patch)
        for priority in {pod.spec.priority for pod in self.objects.pods} - {None, 0}:
            value = {"metadata": {"name": f"priority-{priority}"}, "value": priority}
            await self.client.create(_PRIORITY_CLASSES, value)
        claims = [claim for claim in self.objects.claims if not claim.metadata.owner_references]
        for claim in claims:
            await self._create(RESOURCE_CLAIMS, claim)
        for pod in self.objects.pods[:-1]:
            await self._start(pod)
        for claim in claims:
            await self._allocate(claim)
        await self._start(self.subject)

    async def waits_for(self, reason: Reason) -> None:
        """The pod has no node, and its condition says why."""
        if reason not in _SILENT:
            await eventually(self._read, lambda pod: f"{reason.title}: " in _message(pod))
        assert not (await self._read()).spec.node_name

    async def carry_out(self, remedy: Remedy) -> None:
        """Everything that the remedy says is done."""
        changed = apply(self.objects, remedy)
        anew = [o for o in remedy.operations if not await self._is_done(o)]
        if not anew:
            return
        # A group is not removed while it has pods, and what was made from a template does not change with it.
        of_all = anew[0].kind in ("PodGroup", "ResourceClaimTemplate", "Pod")
        for pod in (self.subject, *(_others_of_gang(self.objects.pods) if of_all else ())):
            await self._remove(PODS, pod.metadata)
        self.objects = changed
        for operation in anew:
            await self._make_anew(operation)
        for pod in (*(_others_of_gang(changed.pods) if of_all else ()), self.subject):
            await self._start(pod)

    async def is_bound(self) -> str:
        """The node that the pod gets."""
        return (await eventually(self._read, lambda pod: bool(pod.spec.node_name))).spec.node_name

    async def _is_done(self, operation: Operation) -> bool:
        """Whether the cluster has taken the change; if not, something has to be made anew."""
        namespace = operation.namespace or None
        resource = _PATCHED.get(operation.kind)
        match operation.verb:
            case "delete":
                assert resource is not None
                await self.client.delete(resource, operation.name, namespace, options=_AT_ONCE)
            case "wait":
                for pod in _ending(self.objects.pods, operation):
                    await self._report(pod, {"phase": "Succeeded"})
            case _ if operation.kind in _UNCHANGEABLE:
                return False
            case _:
                assert resource is not None
                patch = json_patch([dict(step) for step in operation.patch])
                try:
                    await self.client.patch(resource, operation.name, patch, namespace)
                except (ForbiddenError, InvalidError):
                    assert operation.kind == "Pod", "only pods are made anew with a change"
                    return False
        return True

    async def _make_anew(self, operation: Operation) -> None:
        if operation.kind not in _UNCHANGEABLE:
            return
        resource: Resource[Any] = _PATCHED[operation.kind]
        found: Iterable[Any] = {
            "ResourceClaim": self.objects.claims,
            "ResourceClaimTemplate": self.objects.templates,
            "PodGroup": self.objects.pod_groups,
        }[operation.kind]
        (value,) = (v for v in found if v.metadata.name == operation.name)
        await self._remove(resource, value.metadata)
        await self._create(resource, value)

    async def _remove(self, resource: Resource[Any], metadata: ObjectMeta) -> None:
        name, namespace = metadata.name, metadata.namespace
        await self.client.delete(resource, name, namespace, options=_AT_ONCE)

        async def is_gone() -> bool:
            try:
                await self.client.get(resource, name, namespace)
            except NotFoundError:
                return True
            return False

        await eventually(is_gone, bool)

    async def _create(
        self, resource: Resource[Any], value: Any, text: JsonObject | None = None
    ) -> None:
        sent = to_dict(value) if text is None else dict(text)
        sent |= {"apiVersion": resource.api_version, "metadata": _own(sent["metadata"])}
        if resource is POD_GROUPS:
            # A scene knows the claims of a group only, not how its pods are scheduled.
            sent["spec"] = {"schedulingPolicy": {"basic": {}}, **sent.get("spec", {})}
        namespace = sent["metadata"].get("namespace") if resource.namespaced else None
        made = await self.client.create(resource.as_values(), sent, namespace)
        self._uids[value.metadata.uid] = str(made["metadata"]["uid"])

    async def _start(self, pod: Pod) -> None:
        if pod.spec.priority:
            pod = msgspec.structs.replace(
                pod,
                spec=msgspec.structs.replace(
                    pod.spec, priority=None, priority_class_name=f"priority-{pod.spec.priority}"
                ),
            )
        await self._create(PODS, pod)
        if pod.spec.node_name:
            await self._report(pod, {"phase": pod.status.phase})

    async def _allocate(self, claim: ResourceClaim) -> None:
        """Gives a claim what it has in the scenario, as a scheduler would."""
        if claim.status.allocation is None:
            return
        name, namespace = claim.metadata.name, claim.metadata.namespace
        keep = merge_patch({"metadata": {"finalizers": [FINALIZER]}})
        await self.client.patch(_CLAIM_VALUES, name, keep, namespace)
        status = to_dict(claim.status)
        for user in status.get("reservedFor", ()):
            user["uid"] = self._uids[user["uid"]]
        patch = merge_patch({"status": status})
        await self.client.patch(_CLAIM_VALUES, name, patch, namespace, subresource="status")

    async def _report(self, pod: Pod, status: JsonObject) -> None:
        patch = merge_patch({"status": status})
        name, namespace = pod.metadata.name, pod.metadata.namespace
        await self.client.patch(_POD_VALUES, name, patch, namespace, subresource="status")

    async def _read(self) -> Pod:
        metadata = self.subject.metadata
        return await self.client.get(PODS, metadata.name, metadata.namespace)


def _own(metadata: JsonObject) -> JsonObject:
    """Without what the server gives, and without owners: there are none here, and what belongs to nobody would be removed."""
    given = ("uid", "resourceVersion", "ownerReferences")
    return {key: value for key, value in metadata.items() if key not in given}


def _ending(pods: Iterable[Pod], operation: Operation) -> list[Pod]:
    """The pods whose end is waited for."""
    if operation.kind == "Pod":
        key = (operation.namespace, operation.name)
        return [pod for pod in pods if (pod.metadata.namespace, pod.metadata.name) == key]
    return [
        pod
        for pod in pods
        if pod.metadata.namespace == operation.namespace
        and any(o.name == operation.name for o in pod.metadata.owner_references)
    ]


def _others_of_gang(pods: Sequence[Pod]) -> list[Pod]:
    """The pods that are in a group with the last one."""
    group = pods[-1].spec.scheduling_group
    return [pod for pod in pods[:-1] if group and pod.spec.scheduling_group == group]


def _message(pod: Pod) -> str:
    found = (c.message for c in pod.status.conditions if c.type_ == "PodScheduled")
    return next(found, "") or ""

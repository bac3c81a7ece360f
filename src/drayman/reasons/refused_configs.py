"""What drivers will refuse of the configuration of a pod's devices, including limits that exceed the memory of a device.

Kubernetes does not interpret it, so the pod gets its node and its devices, and then does not start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from drayman.api.core import Pod
from drayman.api.pods import containers_with, entry_claims, used_claims
from drayman.api.resource import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from drayman.driver_configs.known import (
    IN_CLAIM,
    IN_TEMPLATE,
    refused_in_claim,
    refused_in_class,
)
from drayman.driver_configs.memory_limits import overcommits, reserved_pods
from drayman.inventory.identity import DeviceId
from drayman.placement.state import ClusterState
from drayman.placement.world import World

Asking: TypeAlias = ResourceClaim | ResourceClaimTemplate | DeviceClass
"""What has configurations for drivers."""
_NOUNS: Final = {ResourceClaim: "claim", ResourceClaimTemplate: "template", DeviceClass: "class"}


def refused_configs(world: World, pod: Pod, made: Iterable[ResourceClaim] = ()) -> tuple[str, ...]:
    """A sentence for each, with the object and the field. Drivers that are not known are left out.

    `made` are claims that a plan makes for the pod.
    """
    limits = _exceeded_limits(world, pod, made)
    return tuple(dict.fromkeys((*_refusals(world.state, pod), *limits)))


def _exceeded_limits(world: World, pod: Pod, made: Iterable[ResourceClaim]) -> Iterator[str]:
    """The limits of programs that share devices with the pod's, where these add up to more than the devices' memory."""
    state, namespace = world.state, pod.metadata.namespace
    own = {claim.metadata.name: claim for claim in made}
    for name in used_claims(pod):
        known = state.find_claim(namespace, name)
        if known is not None:
            own[name] = known

    def find(result: DeviceRequestAllocationResult) -> Device | None:
        published = world.published(DeviceId.of(result))
        return None if published is None else published[1]

    def programs(claim: ResourceClaim, request: str) -> int:
        """Other pods of the same claim are taken to have as many containers as this one."""
        name = claim.metadata.name
        if claim.metadata.namespace != namespace or name not in own:
            return reserved_pods(claim, request)
        containers = max(1, containers_with(pod, name, request)) if name in used_claims(pod) else 1
        users = {consumer.uid for consumer in claim.status.reserved_for} | {pod.metadata.uid}
        return containers * len(users)

    for claim in own.values():
        if claim.status.allocation is not None:
            for found in overcommits(claim, state.claims_beside(claim), find, programs):
                yield f"{title_of_asking(claim)}: driver {found.limits[0].device[0]} refuses it: {found}"


def title_of_asking(value: Asking) -> str:
    """What such a sentence calls the object that has the configuration, and begins with."""
    return f"{_NOUNS[type(value)]} {value.metadata.name}"


def _refusals(state: ClusterState, pod: Pod) -> Iterator[str]:
    for owner, devices, path in _asked(state, pod):
        for refused in refused_in_claim(devices, path):
            yield f"{owner}: {refused}"
        for name in dict.fromkeys(_classes(devices)):
            device_class = state.inventory.classes.get(name)
            if device_class is not None:
                for refused in refused_in_class(device_class):
                    yield f"{title_of_asking(device_class)}: {refused}"


def _asked(state: ClusterState, pod: Pod) -> Iterator[tuple[str, DeviceClaim, str]]:
    """What the claims of a pod ask for, with the object and the field where that is written."""
    namespace = pod.metadata.namespace
    for entry, name in entry_claims(pod):
        claim = state.find_claim(namespace, name) if name else None
        template_name = entry.resource_claim_template_name
        template = state.find_template(namespace, template_name) if template_name else None
        if template is not None:
            yield title_of_asking(template), template.spec.spec.devices, IN_TEMPLATE
        elif claim is not None:
            yield title_of_asking(claim), claim.spec.devices, IN_CLAIM


def _classes(devices: DeviceClaim) -> Iterator[str]:
    for request in devices.requests:
        for _, asked in request.alternatives():
            yield asked.device_class_name

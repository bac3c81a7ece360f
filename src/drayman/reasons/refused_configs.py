"""What drivers will refuse of the configuration of a pod's devices.

Kubernetes does not look at it, so the pod gets its node and its devices, and then does not start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from drayman.api.core import Pod
from drayman.api.pods import entry_claims
from drayman.api.resource import DeviceClaim, DeviceClass, ResourceClaim, ResourceClaimTemplate
from drayman.driver_configs.known import (
    IN_CLAIM,
    IN_TEMPLATE,
    refused_in_claim,
    refused_in_class,
)
from drayman.placement.state import ClusterState

Asking: TypeAlias = ResourceClaim | ResourceClaimTemplate | DeviceClass
"""What has configurations for drivers."""
_NOUNS: Final = {ResourceClaim: "claim", ResourceClaimTemplate: "template", DeviceClass: "class"}


def refused_configs(state: ClusterState, pod: Pod) -> tuple[str, ...]:
    """A sentence for each, with the object and the field. Nothing is said about drivers that are not known."""
    return tuple(dict.fromkeys(_refusals(state, pod)))


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

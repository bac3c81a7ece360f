"""What drivers will refuse of the configuration of a pod's devices.

Kubernetes does not look at it, so the pod gets its node and its devices, and then does not start.
"""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api.core import Pod
from drayman.api.pods import entry_claims
from drayman.api.resource import DeviceClaim
from drayman.driver_configs.known import refused_in_claim, refused_in_class
from drayman.placement.state import ClusterState


def refused_configs(state: ClusterState, pod: Pod) -> tuple[str, ...]:
    """A sentence for each, with the object and the field. Nothing is said about drivers that are not known."""
    return tuple(dict.fromkeys(_refusals(state, pod)))


def _refusals(state: ClusterState, pod: Pod) -> Iterator[str]:
    for owner, devices in _asked(state, pod):
        for refused in refused_in_claim(devices):
            yield f"{owner}: {refused}"
        for name in dict.fromkeys(_classes(devices)):
            device_class = state.inventory.classes.get(name)
            for refused in refused_in_class(device_class) if device_class is not None else ():
                yield f"class {name}: {refused}"


def _asked(state: ClusterState, pod: Pod) -> Iterator[tuple[str, DeviceClaim]]:
    """What the claims of a pod ask for, and where that is written."""
    namespace = pod.metadata.namespace
    for entry, name in entry_claims(pod):
        claim = state.find_claim(namespace, name) if name else None
        template_name = entry.resource_claim_template_name
        template = state.find_template(namespace, template_name) if template_name else None
        if template is not None:
            yield f"template {template_name}", template.spec.spec.devices
        elif claim is not None:
            yield f"claim {claim.metadata.name}", claim.spec.devices


def _classes(devices: DeviceClaim) -> Iterator[str]:
    for request in devices.requests:
        for _, asked in request.alternatives():
            yield asked.device_class_name

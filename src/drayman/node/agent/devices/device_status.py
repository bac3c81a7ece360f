"""How the devices of a container are, as the status of its pod says it (`allocatedResourcesStatus`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import claim_of
from drayman.api.struct import Json
from drayman.node.agent.devices.claims import is_used
from drayman.node.agent.devices.health import Condition
from drayman.node.claims import Held, HeldDevice
from drayman.plugins.model import HealthState

ConditionOf = Callable[[str, str, str], Condition]
"""By driver, pool and name of a device."""
_WORDS: Final = {
    HealthState.HEALTHY: "Healthy",
    HealthState.UNHEALTHY: "Unhealthy",
    HealthState.UNKNOWN: "Unknown",
}


def device_statuses(
    pod: Pod, held: Iterable[Held], condition_of: ConditionOf
) -> dict[str, list[Json]]:
    """By container, those that name claims. As with a kubelet, neither init containers nor extended resources are told of."""
    by_name = {each.name: each.devices for each in held}
    entries = {entry.name: entry for entry in pod.spec.resource_claims}
    found: dict[str, list[Json]] = {}
    for container in pod.spec.containers:
        for use in container.resources.claims:
            devices = by_name.get(claim_of(pod, entries[use.name]) or "", ())
            resources = {
                _id(device): _resource(device, condition_of)
                for device in devices
                if is_used(device.requests, use.request)
            }
            if resources:
                name = f"claim:{use.name}/{use.request}" if use.request else f"claim:{use.name}"
                status = {"name": name, "resources": list(resources.values())}
                found.setdefault(container.name, []).append(status)
    return found


def _id(device: HeldDevice) -> str:
    return device.cdi_ids[0] if device.cdi_ids else f"{device.driver}/{device.pool}/{device.device}"


def _resource(device: HeldDevice, condition_of: ConditionOf) -> dict[str, Json]:
    condition = condition_of(device.driver, device.pool, device.device)
    found: dict[str, Json] = {"resourceID": _id(device), "health": _WORDS[condition.state]}
    return found | ({"message": condition.message} if condition.message else {})

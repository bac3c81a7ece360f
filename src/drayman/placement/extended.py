"""Extended resources that are served by devices: which class stands behind a resource name, and what claim a pod needs.

A pod that asks for `example.com/gpu: 2` gets, on a node whose kubelet does not offer that resource itself, a claim that Drayman makes for
it. The requests of that claim follow fixed rules, since the node agent finds a container's devices by the names in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from drayman.api.core import Container, ContainerExtendedResourceRequest, Pod
from drayman.api.pods import containers_of, is_sidecar
from drayman.api.resource import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from drayman.inventory.undo import UndoLog

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


class ExtendedResources:
    """From resource names to device classes."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._classes: dict[str, DeviceClass] = {}
        self._named: dict[str, set[str]] = {}  # resource name to the classes that claim it

    def apply(self, device_class: DeviceClass) -> None:
        name = device_class.metadata.name
        self.remove(name)
        self._log.note(self.remove, name)
        self._classes[name] = device_class
        resource = device_class.spec.extended_resource_name
        if resource:
            self._named.setdefault(resource, set()).add(name)

    def remove(self, name: str) -> None:
        known = self._classes.pop(name, None)
        if known is None:
            return
        self._log.note(self.apply, known)
        if not known.spec.extended_resource_name:
            return
        names = self._named[known.spec.extended_resource_name]
        names.discard(name)
        if not names:
            del self._named[known.spec.extended_resource_name]

    def class_of(self, resource: str) -> str | None:
        """The class behind a resource name. If several claim it, the newest wins, then the first by name."""
        if resource.startswith(IMPLICIT_PREFIX):
            name = resource.removeprefix(IMPLICIT_PREFIX)
            return name if name in self._classes else None
        names = self._named.get(resource)
        if not names:
            return None
        if len(names) == 1:
            return next(iter(names))
        newest = max(self._classes[name].metadata.creation_timestamp or "" for name in names)
        return min(
            name
            for name in names
            if (self._classes[name].metadata.creation_timestamp or "") == newest
        )

    def resources_of(self, pod: Pod) -> Mapping[str, str]:
        """The resources that a pod asks for and that have a class, with the class."""
        found: dict[str, str] = {}
        for container in containers_of(pod):
            for resource, quantity in container.resources.requests.items():
                if "/" in resource and resource not in found and quantity.amount:
                    class_name = self.class_of(resource)
                    if class_name is not None:
                        found[resource] = class_name
        return found


class ExtendedClaim(Struct, frozen=True):
    """The claim that a pod needs on nodes where these resources are served by devices."""

    spec: ResourceClaimSpec
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def extended_claim(
    pod: Pod,
    classes: Mapping[str, str],
    share: tuple[DeviceRequest, ContainerExtendedResourceRequest] | None = None,
) -> ExtendedClaim | None:
    """The claim for `classes`, a mapping from resource to class, and for a share of a GPU; None if the pod needs no such devices."""
    requests: dict[str, ExactDeviceRequest] = {}
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(classes):
        _add_resource(pod, resource, classes[resource], requests, mappings)
    named = [DeviceRequest(name=name, exactly=requests[name]) for name in sorted(requests)]
    if share is not None:
        named.append(share[0])
        mappings.append(share[1])
    if not named:
        return None
    devices = DeviceClaim(requests=tuple(named))
    return ExtendedClaim(ResourceClaimSpec(devices=devices), tuple(mappings))


@dataclass(slots=True)
class _Extra:
    """What a plain init container needs beyond what it can borrow."""

    index: int
    name: str
    count: int


def _add_resource(
    pod: Pod,
    resource: str,
    class_name: str,
    requests: dict[str, ExactDeviceRequest],
    mappings: list[ContainerExtendedResourceRequest],
) -> None:
    containers = containers_of(pod)
    plain_inits = len(pod.spec.init_containers)
    lasting: list[tuple[int, str, int]] = []  # position, request, devices of those that stay
    for index, container in enumerate(containers):
        count = _count(container, resource)
        if not count or (index < plain_inits and container.restart_policy != "Always"):
            continue
        name = _request_name(index, container, resource)
        lasting.append((index, name, count))
        requests[name] = _request(class_name, count)
        mappings.append(_mapping(container, resource, name))
    extras: list[_Extra] = []
    borrowing: list[tuple[Container, list[str], _Extra | None]] = []
    for index, container in enumerate(pod.spec.init_containers):
        count = _count(container, resource)
        if not count or is_sidecar(container):
            continue
        borrowed, missing = _borrow(lasting, index, count)
        extra = None
        if missing > 0:
            extra = _Extra(index, _request_name(index, container, resource), missing)
            extras.append(extra)
        borrowing.append((container, borrowed, extra))
    # One init container runs at a time, so the largest extra request serves all of them.
    largest = max(extras, key=lambda extra: (extra.count, -extra.index), default=None)
    if largest is not None:
        requests[largest.name] = _request(class_name, largest.count)
    for container, borrowed, extra in borrowing:
        mappings += [_mapping(container, resource, name) for name in borrowed]
        if extra is not None and largest is not None:
            mappings.append(_mapping(container, resource, largest.name))


def _borrow(lasting: list[tuple[int, str, int]], index: int, count: int) -> tuple[list[str], int]:
    """Requests of containers that start later and whose devices are idle until then, and what is still missing."""
    borrowed: list[str] = []
    for position, name, devices in lasting:
        if count <= 0:
            break
        if position >= index:
            borrowed.append(name)
            count -= devices
    return borrowed, count


def _count(container: Container, resource: str) -> int:
    """Devices that a container asks for. A fraction of a device is none."""
    quantity = container.resources.requests.get(resource)
    if quantity is None:
        return 0
    amount = quantity.amount
    return int(amount) if amount == int(amount) else 0


def _request_name(index: int, container: Container, resource: str) -> str:
    position = sorted(container.resources.requests).index(resource)
    return f"container-{index}-request-{position}"


def _request(class_name: str, count: int) -> ExactDeviceRequest:
    return ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=count
    )


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(
        container_name=container.name, resource_name=resource, request_name=request
    )

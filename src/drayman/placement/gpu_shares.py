"""Shares of GPUs as KAI's annotations ask for them: `gpu-fraction: "0.5"`, or `gpu-memory: "4096"` in MiB.

A pod with such an annotation gets a claim for a share of a device, made in the same way as the claim for extended resources. The share
comes from a device class that counts as GPUs in queues and has devices that several claims may share by memory
(`allowMultipleAllocations` and a capacity `memory`); of several such classes, from the first by name. A fraction becomes that fraction of
every capacity that the device shares, and an amount of memory the same part of the others: a capacity that a claim does not request is
often consumed whole. Where devices have different memory, there is one alternative for each size, the smallest first.

A kubelet gives a container the devices of such a claim only for extended resources that the container requests. So the container that gets
the share requests `kai.scheduler/gpu-share: 1`. The API server of Drayman adds that to new pods, as KAI's webhook changes pods; elsewhere a
pod without it waits with that reason.

The annotations are read as KAI reads them. `gpu-fraction-container-name` names the container that gets the device; without it, the first
container does. More than one device (`gpu-fraction-num-devices`) is not supported, and a pod that asks for it waits with that reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct

from drayman.api.core import ContainerExtendedResourceRequest, Pod
from drayman.api.pods import containers_of
from drayman.api.quantity import Format, Quantity
from drayman.api.resource import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from drayman.inventory.bitsets import positions
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.inventory import Inventory
from drayman.placement.claims import ClaimLack, ClaimsNotReadyError
from drayman.placement.queueing.gpus import Gpus

FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
CONTAINER: Final = "gpu-fraction-container-name"
ANNOTATIONS: Final = (FRACTION, MEMORY, DEVICES, CONTAINER)
RESOURCE: Final = "kai.scheduler/gpu-share"
"""The extended resource that the container requests that gets the share."""
REQUEST: Final = "gpu-share"
"""The request of the claim."""
_CAPACITY: Final = "memory"
_SHARED: Final = "device.allowMultipleAllocations"
_DECIMAL: Final = re.compile(r"[0-9]{0,9}\.?[0-9]{1,9}", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_MOST_SIZES: Final = 8
"""Alternatives that a request may have."""
_MEBIBYTE: Final = 1024 * 1024


class GpuShareError(Exception):
    """A pod cannot get the share that it asks for. The message names the annotation."""

    def __init__(self, message: str, *, is_invalid: bool) -> None:
        super().__init__(message)
        self.is_invalid = is_invalid
        """Whether the annotation is wrong, on any cluster."""


class GpuShare(Struct, frozen=True):
    """What the annotations of a pod ask for: a part of a device, or so many bytes of its memory."""

    annotation: str
    fraction: Fraction | None
    memory: int
    container: str


class Size(Struct, frozen=True):
    """What devices of one size have."""

    driver: str
    memory: int
    """In bytes."""
    others: tuple[tuple[str, Quantity], ...]
    """The other capacities of which a claim gets a part."""


class Offer(Struct, frozen=True):
    """A class with devices that can be shared by memory."""

    device_class: str
    sizes: tuple[Size, ...]
    """The smallest first."""


class ShareRequest(Struct, frozen=True):
    """The request for a share, and the container that gets it."""

    device_class: str
    request: DeviceRequest
    mapping: ContainerExtendedResourceRequest


def asks_for_share(annotations: Mapping[str, str]) -> bool:
    """Whether a pod with these annotations asks for a share of a GPU."""
    return bool(annotations) and any(name in annotations for name in ANNOTATIONS)


def share_of(pod: Pod, gpus: Gpus) -> GpuShare | None:
    """What a pod asks for; None if it asks for no share. Raises GpuShareError for annotations that KAI refuses."""
    if not asks_for_share(pod.metadata.annotations):
        return None
    annotations = pod.metadata.annotations
    fraction, memory = annotations.get(FRACTION), annotations.get(MEMORY)
    if fraction is None and memory is None:
        other = next(name for name in ANNOTATIONS if name in annotations)
        raise _invalid(other, f"means nothing without {FRACTION} or {MEMORY}")
    if fraction is not None and memory is not None:
        raise _invalid(MEMORY, f"cannot be given together with {FRACTION}")
    annotation = FRACTION if fraction is not None else MEMORY
    if annotations.get(DEVICES, "1") != "1":
        raise _invalid(
            DEVICES, f"is {annotations[DEVICES]!r}; only shares of one device are supported"
        )
    for container in containers_of(pod):
        for resource, amount in container.resources.requests.items():
            if amount.amount and "/" in resource and gpus.is_resource(resource):
                raise _invalid(
                    annotation,
                    f"cannot be given together with whole GPUs, and container {container.name} requests {resource}",
                )
    return GpuShare(
        annotation,
        None if fraction is None else _fraction(fraction),
        0 if memory is None else _memory(memory),
        _container(pod, annotation, annotations.get(CONTAINER)),
    )


def offers_of(inventory: Inventory, gpus: Gpus) -> tuple[Offer, ...]:
    """The classes that have shares of GPUs, by name."""
    found = []
    for name in sorted(inventory.classes):
        if gpus.is_class(name):
            selectors = inventory.classes[name].spec.selectors
            expressions = tuple(s.cel.expression for s in selectors if s.cel is not None)
            sizes = inventory.everywhere.derived(_Sizes).of(expressions)
            if sizes:
                found.append(Offer(name, sizes))
    return tuple(found)


def request_for(share: GpuShare, offers: tuple[Offer, ...]) -> ShareRequest:
    """The request that serves a share. Raises GpuShareError if no class offers any of that size."""
    if not offers:
        raise GpuShareError(
            f"annotation {share.annotation} asks for a share of a GPU, and no device class that counts as GPUs has devices"
            f" that several claims may share by {_CAPACITY}",
            is_invalid=False,
        )
    offer = offers[0]
    sizes = [size for size in offer.sizes if size.memory >= share.memory][:_MOST_SIZES]
    if not sizes:
        largest = Quantity(max(size.memory for size in offer.sizes), Format.BINARY_SI)
        raise GpuShareError(
            f"annotation {share.annotation} asks for {share.memory // _MEBIBYTE} MiB of a GPU, and the largest that class"
            f" {offer.device_class} shares has {largest}",
            is_invalid=False,
        )
    mapping = ContainerExtendedResourceRequest(
        container_name=share.container, resource_name=RESOURCE, request_name=REQUEST
    )
    alternatives = tuple(
        DeviceSubRequest(
            name=f"size-{number}",
            device_class_name=offer.device_class,
            selectors=_selectors(_SHARED, _has_memory(size)),
            allocation_mode="ExactCount",
            count=1,
            capacity=_part(share, size),
        )
        for number, size in enumerate(sizes)
    )
    if len(alternatives) > 1:
        return ShareRequest(
            offer.device_class, DeviceRequest(name=REQUEST, first_available=alternatives), mapping
        )
    only = alternatives[0]
    exactly = ExactDeviceRequest(
        device_class_name=only.device_class_name,
        selectors=only.selectors,
        allocation_mode=only.allocation_mode,
        count=only.count,
        capacity=only.capacity,
    )
    return ShareRequest(offer.device_class, DeviceRequest(name=REQUEST, exactly=exactly), mapping)


def part_of_device(share: GpuShare, offers: tuple[Offer, ...]) -> Fraction:
    """What a share costs in a queue: a part of a GPU. Memory counts as a part of the smallest device that has enough."""
    if share.fraction is not None:
        return share.fraction
    sizes = (size.memory for offer in offers[:1] for size in offer.sizes)
    smallest = next((size for size in sizes if size >= share.memory), None)
    return Fraction(1) if smallest is None else Fraction(share.memory, smallest)


def _invalid(annotation: str, problem: str) -> GpuShareError:
    return GpuShareError(f"annotation {annotation} {problem}", is_invalid=True)


def _fraction(text: str) -> Fraction:
    found = Fraction(text) if _DECIMAL.fullmatch(text) else Fraction(0)
    if not 0 < found < 1:
        raise _invalid(
            FRACTION, f"must be a number above 0 and below 1, as in 0.5, and is {text!r}"
        )
    return found


def _memory(text: str) -> int:
    found = int(text) if _WHOLE.fullmatch(text) else 0
    if not found:
        raise _invalid(
            MEMORY, f"must be a whole number of MiB above 0, as in 4096, and is {text!r}"
        )
    return found * _MEBIBYTE


def _container(pod: Pod, annotation: str, named: str | None) -> str:
    """The container that gets the share."""
    if named is not None and all(named != each.name for each in containers_of(pod)):
        raise _invalid(CONTAINER, f"names container {named!r}, which the pod does not have")
    for container in containers_of(pod):
        if RESOURCE in container.resources.requests and named in (None, container.name):
            return container.name
    wanted = named or pod.spec.containers[0].name
    if not pod.metadata.creation_timestamp:
        return wanted  # a pod that a template will make: the server adds the request when it is created
    raise _invalid(
        annotation,
        f"needs {RESOURCE}: 1 in the limits of container {wanted}, so that its kubelet gives it the device",
    )


def _part(share: GpuShare, size: Size) -> CapacityRequirements:
    """What a share takes of a device of this size."""
    part = share.fraction if share.fraction is not None else Fraction(share.memory, size.memory)
    requests = {_CAPACITY: Quantity(max(1, int(size.memory * part)), Format.BINARY_SI)}
    for name, amount in size.others:
        requests[name] = Quantity(max(1, int(amount.amount * part)), amount.format)
    return CapacityRequirements(requests=requests)


def _selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=each)) for each in expressions)


def _has_memory(size: Size) -> str:
    amount = Quantity(size.memory, Format.BINARY_SI)
    capacities = f'device.capacity["{size.driver}"]'
    return f'"{_CAPACITY}" in {capacities} && {capacities}.{_CAPACITY}.compareTo(quantity("{amount}")) == 0'


class _Sizes:
    """The devices that can be shared by memory, among those that pass selectors: their sizes."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._known: dict[tuple[str, ...], tuple[Size, ...]] = {}

    def of(self, expressions: tuple[str, ...]) -> tuple[Size, ...]:
        found = self._known.get(expressions)
        if found is None:
            records = self._hardware.records
            sizes: dict[tuple[int, str], Size] = {}
            for position in positions(self._hardware.select(expressions)[0]):
                device = records[position].device
                memory = device.capacity.get(_CAPACITY)
                if not device.allow_multiple_allocations or memory is None:
                    continue
                others = tuple(
                    (name, each.value)
                    for name, each in sorted(device.capacity.items())
                    if name != _CAPACITY and each.request_policy is not None
                )
                size = Size(records[position].id.driver, int(memory.value.amount), others)
                sizes.setdefault((size.memory, size.driver), size)
            found = self._known[expressions] = tuple(sizes[key] for key in sorted(sizes))
        return found


class GpuShares:
    """Shares of GPUs in one cluster."""

    def __init__(self, inventory: Inventory, gpus: Gpus) -> None:
        self._inventory = inventory
        self._gpus = gpus

    def request(self, pod: Pod) -> ShareRequest | None:
        """The request for the share that a pod asks for; None if it asks for none. Raises ClaimsNotReadyError."""
        if not asks_for_share(pod.metadata.annotations):
            return None  # nearly always
        try:
            share = share_of(pod, self._gpus)
            return None if share is None else request_for(share, self._offers)
        except GpuShareError as error:
            lack = ClaimLack.SHARE_INVALID if error.is_invalid else ClaimLack.SHARE
            raise ClaimsNotReadyError(str(error), lack, pod.metadata.name) from error

    def charge(self, pod: Pod) -> tuple[Fraction | int, bool]:
        """What a pod's share costs in its queue, and whether that is certain. One that is refused costs nothing."""
        try:
            share = share_of(pod, self._gpus)
        except GpuShareError:
            return 0, True
        if share is None:
            return 0, True
        offers = self._offers
        return part_of_device(share, offers), share.fraction is not None or bool(offers)

    @property
    def _offers(self) -> tuple[Offer, ...]:
        return offers_of(self._inventory, self._gpus)

"""Extended resources that devices stand behind: the claim that the scheduler will make for a pod is what is charged for them.

So a sidecar and a container with a device each are two devices, and an init container costs only what it cannot borrow from containers that
start later. Requests below zero count as none. What is asked for must be a whole number of devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from drayman.api.core import Container, Pod, PodSpec, ResourceRequirements
from drayman.api.integers import INT64_MAX
from drayman.api.quantity import Quantity
from drayman.api.resource import ResourceClaimSpec
from drayman.placement.extended import IMPLICIT_PREFIX, ExtendedResources, extended_claim
from drayman.quota.charging.outcome import Code, refuse
from drayman.quota.charging.rules import Rules

_RESERVED = "kubernetes.io/"


def asked_names(spec: PodSpec, rules: Rules) -> frozenset[str]:
    """The names in a pod's requests that devices may stand behind, now or later."""
    found = set()
    for _, container in _containers(spec):
        for name, quantity in _requests(container).items():
            if "/" in name and quantity.amount and _may_be_devices(name, rules):
                found.add(name)
    return frozenset(found)


def device_claims(
    spec: PodSpec, names: frozenset[str], classes: ExtendedResources, path: str
) -> Iterator[tuple[str, ResourceClaimSpec | None]]:
    """Of these names, those with a class behind them, each with the claim that a pod will have for it; None if that is for no device.

    `path` is that of the pod's spec. Raises RefusedError for quantities that are no number of devices.
    """
    for name in sorted(names):
        class_name = classes.class_of(name)
        if class_name is None:
            continue
        _check_quantities(spec, name, path)
        claim = extended_claim(Pod(spec=_only(spec, name)), {name: class_name})
        if claim is None:
            yield name, None
            continue
        total = sum(r.exactly.count for r in claim.spec.devices.requests if r.exactly is not None)
        if total > INT64_MAX:
            text = f"the containers ask for {total} of {name}, more than can be counted"
            raise refuse(Code.QUANTITY_INVALID, path, text)
        yield name, claim.spec


def _may_be_devices(name: str, rules: Rules) -> bool:
    if name.startswith(IMPLICIT_PREFIX):
        return rules.implicit_names
    return not name.startswith(_RESERVED)


def _containers(spec: PodSpec) -> Iterator[tuple[str, Container]]:
    for member, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for index, container in enumerate(containers):
            yield f"{member}[{index}]", container


def _requests(container: Container) -> dict[str, Quantity]:
    """What a container asks for: its limits where it says nothing else, as the pod will have it."""
    resources = container.resources
    return {**resources.limits, **resources.requests} if resources.limits else resources.requests


def _check_quantities(spec: PodSpec, name: str, path: str) -> None:
    for place, container in _containers(spec):
        quantity = _requests(container).get(name)
        if quantity is None or quantity.amount <= 0:
            continue
        field = f"{path}.{place}.resources.requests[{name}]"
        if quantity.amount != int(quantity.amount):
            text = f"devices are asked for in whole numbers, not {quantity}"
            raise refuse(Code.QUANTITY_INVALID, field, text)
        if quantity.amount > INT64_MAX:
            raise refuse(Code.QUANTITY_INVALID, field, f"{quantity} is more than can be counted")


def _only(spec: PodSpec, name: str) -> PodSpec:
    """The containers with requests for one resource, as far as they are for any of it."""

    def keep(container: Container) -> Container:
        quantity = _requests(container).get(name)
        asked = {} if quantity is None or quantity.amount <= 0 else {name: quantity}
        return replace(container, resources=ResourceRequirements(requests=asked))

    return PodSpec(
        init_containers=tuple(map(keep, spec.init_containers)),
        containers=tuple(map(keep, spec.containers)),
    )

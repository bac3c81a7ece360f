"""What counts as a GPU in queues, whichever way a pod asks for it.

An extended resource does if its name ends in `/gpu`, or if its device class does. A device class does if it says so, in the annotation
`drayman.dev/counts-as-gpu`; one that says nothing, if its extended resource ends in `/gpu`, or if its name is `gpu` or begins with `gpu.`.
Each device counts as one, whole or part. With admin access, a device is taken from nobody.

Of a claim without devices, the dearest alternative counts; "all devices" are as many as the node with the most of them has.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from drayman.api.resource import DeviceClass, ExactDeviceRequest, RequestSpec, ResourceClaim
from drayman.api.resource import ResourceClaimSpec as ClaimSpec
from drayman.bounded import Bounded
from drayman.inventory.bitsets import positions
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.inventory import Inventory
from drayman.inventory.units import units
from drayman.placement.extended import ExtendedResources

COUNTS: Final = "drayman.dev/counts-as-gpu"
"""The annotation of a device class: `true` or `false`."""
_SUFFIX: Final = "/gpu"
_ALL: Final = "All"
_MOST_QUESTIONS: Final = 256


def counts_as_gpu(device_class: DeviceClass) -> bool:
    """Whether each device of a class counts as a GPU."""
    stated = device_class.metadata.annotations.get(COUNTS)
    if stated is not None:
        return stated == "true"
    name, resource = device_class.metadata.name, device_class.spec.extended_resource_name or ""
    return resource.endswith(_SUFFIX) or name == "gpu" or name.startswith("gpu.")


class Gpus:
    """Counts GPUs in what pods ask for and have."""

    def __init__(self, inventory: Inventory, extended: ExtendedResources) -> None:
        self._inventory = inventory
        self._extended = extended

    def is_resource(self, name: str) -> bool:
        """Whether an extended resource counts."""
        if name.endswith(_SUFFIX):
            return True
        behind = self._extended.class_of(name)
        return behind is not None and self.is_class(behind)

    def is_class(self, name: str) -> bool:
        """Whether the devices of a class count."""
        known = self._inventory.classes.get(name)
        return known is not None and counts_as_gpu(known)

    def held(self, claim: ResourceClaim) -> int:
        """By the devices that a claim has."""
        specs = dict(
            named for request in claim.spec.devices.requests for named in request.alternatives()
        )
        return sum(
            not result.admin_access
            and (spec := specs.get(result.request)) is not None
            and self.is_class(spec.device_class_name)
            for result in claim.status.results
        )

    def asked(self, spec: ClaimSpec) -> int:
        """By a claim that has none yet."""
        return sum(
            max((self._asked_by(each) for _, each in request.alternatives()), default=0)
            for request in spec.devices.requests
        )

    def _asked_by(self, request: RequestSpec) -> int:
        is_admin = isinstance(request, ExactDeviceRequest) and bool(request.admin_access)
        if is_admin or not self.is_class(request.device_class_name):
            return 0
        if request.allocation_mode != _ALL:
            return max(1, request.count)
        device_class = self._inventory.classes[request.device_class_name]
        selectors = (*device_class.spec.selectors, *request.selectors)
        expressions = tuple(each.cel.expression for each in selectors if each.cel is not None)
        return self._inventory.everywhere.derived(_MostOfNodes).of(expressions)

    def in_pools(self) -> int:
        """How many the cluster has as devices: a GPU that is also offered in parts is one."""
        expressions = frozenset(
            tuple(s.cel.expression for s in each.spec.selectors if s.cel is not None)
            for each in self._inventory.classes.values()
            if counts_as_gpu(each)
        )
        return self._inventory.everywhere.derived(_Whole).number(expressions) if expressions else 0


class _Whole:
    """How many pieces of hardware have devices that pass the selectors of a class."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._known: Bounded[frozenset[tuple[str, ...]], int] = Bounded(_MOST_QUESTIONS)

    def number(self, classes: frozenset[tuple[str, ...]]) -> int:
        found = self._known.get(classes)
        if found is None:
            of_device = self._hardware.derived(units).of_device
            passing = (positions(self._hardware.select(each)[0]) for each in classes)
            pieces = {of_device[position] for some in passing for position in some}
            found = self._known[classes] = len(pieces)
        return found


class _MostOfNodes:
    """How many devices that pass selectors the node has that has most of them."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._known: Bounded[tuple[str, ...], int] = Bounded(_MOST_QUESTIONS)

    def of(self, expressions: tuple[str, ...]) -> int:
        found = self._known.get(expressions)
        if found is None:
            records = self._hardware.records
            passing = positions(self._hardware.select(expressions)[0])
            by_node = Counter(records[each].node_name for each in passing)
            found = self._known[expressions] = max(by_node.values(), default=0)
        return found

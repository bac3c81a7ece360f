"""`resource.k8s.io/v1`: classes, slices, claims, templates, taint rules.

Absent, null and empty lists mean the same in almost every field, so lists default to an empty tuple. The few fields where
Kubernetes distinguishes null from empty are optional here.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import field

from drayman.api.core import NodeSelector
from drayman.api.meta import Condition, ObjectMeta, TemplateMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int64, Json, Timestamp, always

GROUP = "resource.k8s.io"
API_VERSION = f"{GROUP}/v1"

# --- Selectors, taints, configuration: shared by several kinds ------------------------------------


class CELDeviceSelector(ApiStruct):
    expression: str = ""


class DeviceSelector(ApiStruct):
    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(ApiStruct):
    driver: str = ""
    parameters: Json = None


class DeviceTaint(ApiStruct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Timestamp | None = None


class DeviceToleration(ApiStruct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


# --- DeviceClass ----------------------------------------------------------------------------------


class DeviceClassConfiguration(ApiStruct):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiStruct):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct):
    api_version: str = always(API_VERSION)
    kind: str = always("DeviceClass")
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# --- ResourceSlice --------------------------------------------------------------------------------


class ResourcePool(ApiStruct):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class Counter(ApiStruct):
    value: Quantity = Quantity.ZERO


class CounterSet(ApiStruct, merge_key=("name",)):
    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(ApiStruct, merge_key=("counterSet",)):
    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceAttribute(ApiStruct):
    """A value of one of eight types; exactly one field is set."""

    int_: Int64 | None = field(name="int", default=None)
    bool_: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(ApiStruct):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(ApiStruct):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct):
    value: Quantity = Quantity.ZERO
    request_policy: CapacityRequestPolicy | None = None


class NodeAllocatableResourceMapping(ApiStruct):
    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class Device(ApiStruct, merge_key=("name",)):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = field(
        default_factory=dict
    )


class ResourceSliceSpec(ApiStruct):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(ApiStruct):
    api_version: str = always(API_VERSION)
    kind: str = always("ResourceSlice")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


# --- ResourceClaim and ResourceClaimTemplate ------------------------------------------------------


class CapacityRequirements(ApiStruct):
    requests: dict[str, Quantity] = field(default_factory=dict)


class ExactDeviceRequest(ApiStruct):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiStruct, merge_key=("name",)):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


RequestSpec: TypeAlias = ExactDeviceRequest | DeviceSubRequest


class DeviceRequest(ApiStruct, merge_key=("name",)):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()

    def alternatives(self) -> list[tuple[str, RequestSpec]]:
        """What serves the request, best first, by the names that results, constraints and configuration use for it."""
        if self.exactly is not None:
            return [(self.name, self.exactly)]
        return [(f"{self.name}/{sub.name}", sub) for sub in self.first_available]


class DeviceConstraint(ApiStruct):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(ApiStruct):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(ApiStruct):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] = field(default_factory=dict)

    @property
    def is_exclusive(self) -> bool:
        """Whether the claim has the device to itself: it neither shares it by capacity nor only looks at it."""
        return self.share_id is None and not self.admin_access


class DeviceAllocationConfiguration(ApiStruct):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiStruct):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Timestamp | None = None


class ResourceClaimConsumerReference(ApiStruct, merge_key=("uid",)):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class NetworkDeviceData(ApiStruct):
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(ApiStruct, merge_key=("driver", "pool", "device", "shareID")):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    conditions: tuple[Condition, ...] = ()
    data: Json = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(ApiStruct):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """The devices that were allocated, one result for each; empty without an allocation."""
        return () if self.allocation is None else self.allocation.devices.results


class ResourceClaim(ApiStruct):
    api_version: str = always(API_VERSION)
    kind: str = always("ResourceClaim")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiStruct):
    metadata: TemplateMeta = TemplateMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiStruct):
    api_version: str = always(API_VERSION)
    kind: str = always("ResourceClaimTemplate")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


# --- DeviceTaintRule ------------------------------------------------------------------------------


class DeviceTaintSelector(ApiStruct):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(ApiStruct):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(ApiStruct):
    """Held in the v1 form; 1.36 serves it as v1alpha3 and v1beta2."""

    api_version: str = always(API_VERSION)
    kind: str = always("DeviceTaintRule")
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


def claim_state(claim: ResourceClaim) -> str:
    """The state of a claim as a list of words: deleted, pending, allocated, reserved."""
    words = ["deleted"] if claim.metadata.deletion_timestamp is not None else []
    if claim.status.allocation is not None:
        words.append("allocated")
        if claim.status.reserved_for:
            words.append("reserved")
    elif not words:
        words.append("pending")
    return ",".join(words)

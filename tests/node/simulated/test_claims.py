"""Claims are prepared before a pod starts, and no device is prepared for two of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import (
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drayman.api.struct import Json
from drayman.cluster import DeleteOptions, merge_patch
from drayman.cluster.cache import Cache
from drayman.cluster.resources import PODS
from drayman.node.claims import ClaimsError, Devices, NodeClaims
from drayman.node.simulated.claim_status import ready_devices
from drayman.node.simulated.preparing import CachedClaims, NothingKept, SimulatedDrivers
from node.simulated.world import CLAIM_VALUES, NAMESPACE, POD_VALUES, world

GPU_0 = ("gpu.example.com", "example-0", "gpu-0")
BINDS = {
    "bindingConditions": ["BindingConditions"],
    "bindingFailureConditions": ["BindingFailureConditions"],
}
NOW = DeleteOptions(grace_period_seconds=0)


def device_conditions(claim: dict[str, Json]) -> list[tuple[str, str, str]]:
    return [
        (device["device"], condition["type"], condition["status"])
        for device in claim["status"].get("devices", ())
        for condition in device.get("conditions", ())
    ]


async def test_devices_are_reported_ready() -> None:
    """The status of a claim has each device with a Ready condition once its pod runs."""
    async with world() as w:
        await w.claim("c", GPU_0)
        await w.pod("p", "example-0", claims=["c"])
        await w.until_phase("p", "Running")
        claim = await w.until(CLAIM_VALUES, "c", lambda claim: bool(device_conditions(claim)))
        assert device_conditions(claim) == [("gpu-0", "Ready", "True")]


async def test_network_interfaces_come_with_their_data() -> None:
    """Name, addresses and hardware address of a NIC are in the status of the claim."""
    async with world("dgx-h100=1") as w:
        await w.claim("c", ("dra.net", "dgx-h100-0", "pci-0000-18-00-0"))
        await w.pod("p", "dgx-h100-0", claims=["c"])
        claim = await w.until(CLAIM_VALUES, "c", lambda claim: bool(device_conditions(claim)))
        data = claim["status"]["devices"][0]["networkData"]
        assert data["interfaceName"] == "ibp24s0"
        assert data["ips"]
        assert data["hardwareAddress"].startswith("00:00:10:29:fe:80")


def test_interfaces_of_drivers_that_use_the_same_names_have_addresses_of_their_own() -> None:
    """Two network drivers may both call their pool after the node and number their interfaces alike."""
    name = {"dra.net/ifName": DeviceAttribute(string="eth0")}
    results = tuple(
        DeviceRequestAllocationResult(request="r", driver=driver, pool="n", device="eth0")
        for driver in ("dra.net", "sriov.example.com")
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    claim = ResourceClaim(status=ResourceClaimStatus(allocation=allocation))
    found = ready_devices(claim, lambda _: Device(name="eth0", attributes=name), "now")
    addresses = {each.network_data.ips for each in found if each.network_data}
    assert len(addresses) == 2


async def test_a_pod_waits_for_its_claim() -> None:
    """While a claim is not reserved for it the pod is Pending and an event says why; then it runs."""
    async with world() as w:
        await w.claim("c", GPU_0)
        claims = [{"name": "c0", "resourceClaimName": "c"}]
        pod = await w.pod("p", "example-0", resourceClaims=claims)
        event = await w.event("FailedPrepareDynamicResources")
        assert event["note"] == "claim c is not reserved for the pod"
        assert (await w.client.get(POD_VALUES, "p", NAMESPACE))["status"]["phase"] == "Pending"
        await w.reserve("c", pod)
        await w.until_phase("p", "Running")


SHARING = {
    "a strategy": ({"strategy": "MPSS"}, "sharing.strategy: 'MPSS' is none of TimeSlicing, MPS"),
    "a limit": (
        {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "banana"}},
        "sharing.mpsConfig.defaultPinnedDeviceMemoryLimit: ",
    ),
    "a field": ({"stragety": "MPS"}, "unknown field sharing.stragety"),
}


@pytest.mark.parametrize("name", SHARING)
async def test_a_configuration_that_its_driver_refuses_holds_the_pod(name: str) -> None:
    """It has its devices and stays in ContainerCreating; the event has the words of the driver."""
    sharing, problem = SHARING[name]
    head = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    opaque = {"driver": "gpu.nvidia.com", "parameters": head | {"sharing": sharing}}
    async with world("dgx-h100=1") as w:
        device = ("gpu.nvidia.com", "dgx-h100-0", "gpu-0")
        await w.claim("c", device, config=[{"source": "FromClaim", "opaque": opaque}])
        await w.pod("p", "dgx-h100-0", claims=["c"])
        event = await w.event("FailedPrepareDynamicResources")
        lead = "claim c: driver gpu.nvidia.com: configuration of the claim: "
        assert event["note"].startswith(f"{lead}{problem}")
        status = (await w.client.get(POD_VALUES, "p", NAMESPACE))["status"]
        assert status["phase"] == "Pending"
        (container,) = status["containerStatuses"]
        waiting = container["state"]["waiting"]
        assert waiting == {"reason": "ContainerCreating", "message": event["note"]}


async def test_limits_beyond_the_memory_of_a_device_hold_the_pods() -> None:
    """A driver adds up the limits of all containers of all pods of a claim, until the claim permits the excess."""
    head = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    sharing = {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "30Gi"}}
    opaque = {"driver": "gpu.nvidia.com", "parameters": head | {"sharing": sharing}}
    uses = {"resources": {"claims": [{"name": "c0"}]}, "image": "busybox"}
    two = [{"name": name, **uses} for name in ("one", "two")]
    async with world("dgx-h100=1") as w:
        device = ("gpu.nvidia.com", "dgx-h100-0", "gpu-0")
        await w.claim("c", device, config=[{"source": "FromClaim", "opaque": opaque}])
        await w.pod("p", "dgx-h100-0", claims=["c"], containers=two)
        await w.until_phase("p", "Running")
        await w.pod("q", "dgx-h100-0", claims=["c"], containers=two)
        event = await w.event("FailedPrepareDynamicResources")
        assert event["note"] == (
            "claim c: driver gpu.nvidia.com: the memory limits on device gpu.nvidia.com/dgx-h100-0/gpu-0"
            " add up to 120Gi of 81559Mi: 4 programs of claim default/c with 30Gi;"
            ' annotate the claim with drayman.dev/allow-memory-overcommit: "true" to permit it'
        )
        allow = {"metadata": {"annotations": {"drayman.dev/allow-memory-overcommit": "true"}}}
        await w.client.patch(CLAIM_VALUES, "c", merge_patch(allow), NAMESPACE)
        await w.until_phase("q", "Running")


async def test_what_keeps_an_init_container_from_its_start_is_in_its_status() -> None:
    """The others say that they wait for it."""
    async with world() as w:
        entry = {"name": "c0", "resourceClaimName": "none"}
        init = [{"name": "first", "image": "i"}]
        await w.pod("p", "example-0", claims=[], resourceClaims=[entry], initContainers=init)
        await w.event("FailedPrepareDynamicResources")
        status = (await w.client.get(POD_VALUES, "p", NAMESPACE))["status"]
        (first,), (main,) = status["initContainerStatuses"], status["containerStatuses"]
        said = {"reason": "ContainerCreating", "message": "claim none does not exist"}
        assert first["state"]["waiting"] == said
        assert main["state"]["waiting"] == {"reason": "PodInitializing"}


async def test_a_claim_of_a_group_is_for_the_pods_of_that_group() -> None:
    """A pod that is in another group, or in none, waits; one of the group runs."""
    async with world() as w:
        await w.claim("c", GPU_0)
        group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
        change = merge_patch({"status": {"reservedFor": [group]}})
        await w.client.patch(CLAIM_VALUES, "c", change, NAMESPACE, subresource="status")
        claims = [{"name": "c0", "resourceClaimName": "c"}]
        await w.pod("p", "example-0", resourceClaims=claims)
        event = await w.event("FailedPrepareDynamicResources")
        assert event["note"] == "claim c is not reserved for the pod"
        member = {"schedulingGroup": {"podGroupName": "g"}}
        await w.pod("q", "example-0", resourceClaims=claims, **member)
        await w.until_phase("q", "Running")


async def test_a_device_that_is_not_published_cannot_be_prepared() -> None:
    """The event names the device."""
    async with world() as w:
        await w.claim("c", ("gpu.example.com", "example-0", "gpu-99"))
        await w.pod("p", "example-0", claims=["c"])
        event = await w.event("FailedPrepareDynamicResources")
        assert "device gpu.example.com/example-0/gpu-99 is not there" in event["note"]


async def test_a_device_allocated_twice_is_noticed() -> None:
    """The second pod stays Pending, the violation is counted and told."""
    async with world() as w:
        for number in (1, 2):
            await w.claim(f"c{number}", GPU_0)
            await w.pod(f"p{number}", "example-0", claims=[f"c{number}"])
            if number == 1:
                await w.until_phase("p1", "Running")
        event = await w.event("DeviceHeldTwice")
        assert event["note"].endswith("is in use by claim default/c1")
        assert w.nodes.violations > 0
        assert (await w.client.get(POD_VALUES, "p2", NAMESPACE))["status"]["phase"] == "Pending"


async def test_a_device_is_free_once_it_is_given_back() -> None:
    """Unprepare takes longer than deletion: who gets the device at once waits a little, and nothing is violated."""
    async with world() as w:
        await w.claim("c1", GPU_0)
        await w.claim("c2", GPU_0)
        await w.pod("p1", "example-0", claims=["c1"])
        await w.until_phase("p1", "Running")
        await w.client.delete(PODS, "p1", NAMESPACE, options=NOW)
        await w.pod("p2", "example-0", claims=["c2"])
        await w.until_phase("p2", "Running")
        assert w.nodes.violations == 0


async def test_pods_share_a_claim() -> None:
    """Both run, and the device is given back only after the last."""
    async with world() as w:
        await w.claim("c", GPU_0)
        for name in ("p1", "p2"):
            await w.pod(name, "example-0", claims=["c"])
            await w.until_phase(name, "Running")
        assert w.nodes.violations == 0


async def test_devices_shared_by_capacity_are_not_exclusive() -> None:
    """Two claims with shares of one device run side by side."""
    async with world("example-shared=1") as w:
        gpu = ("gpu.example.com", "example-shared-0", "gpu-0")
        for number in (1, 2):
            share = f"00000000-0000-4000-8000-00000000000{number}"
            await w.claim(f"c{number}", gpu, shareID=share)
            await w.pod(f"p{number}", "example-shared-0", claims=[f"c{number}"])
            await w.until_phase(f"p{number}", "Running")
        assert w.nodes.violations == 0


async def test_binding_conditions_are_met() -> None:
    """A device that must be made ready before binding reports it, before any pod is bound."""
    async with world("example-binding-conditions=1") as w:
        gpu = ("gpu.example.com", "example-binding-conditions-0", "gpu-0")
        await w.claim("c", gpu, **BINDS)
        claim = await w.until(CLAIM_VALUES, "c", lambda claim: bool(device_conditions(claim)))
        assert device_conditions(claim) == [("gpu-0", "BindingConditions", "True")]


async def test_binding_can_be_made_to_fail() -> None:
    """`drayman.dev/binding: fail` on the claim sets the failure condition instead."""
    async with world("example-binding-conditions=1") as w:
        gpu = ("gpu.example.com", "example-binding-conditions-0", "gpu-0")
        await w.claim(
            "c",
            gpu,
            **BINDS,
            annotations={"drayman.dev/binding": "fail"},
        )
        claim = await w.until(CLAIM_VALUES, "c", lambda claim: bool(device_conditions(claim)))
        assert device_conditions(claim) == [("gpu-0", "BindingFailureConditions", "True")]


async def test_extended_resources_are_prepared_too() -> None:
    """The claim that the scheduler made for a pod's extended resources is one of its claims."""
    async with world() as w:
        await w.claim("made", GPU_0)
        amount = {"example.com/gpu": "1"}
        container = {"name": "main", "image": "busybox", "resources": {"limits": amount}}
        pod = await w.pod("p", "", containers=[container])
        status = {
            "extendedResourceClaimStatus": {
                "resourceClaimName": "made",
                "requestMappings": [
                    {
                        "containerName": "main",
                        "resourceName": "example.com/gpu",
                        "requestName": "all",
                    }
                ],
            }
        }
        change = merge_patch({"status": status})
        await w.client.patch(POD_VALUES, "p", change, NAMESPACE, subresource="status")
        await w.reserve("made", pod)
        await w.client.bind("p", NAMESPACE, "example-0")
        await w.until_phase("p", "Running")
        await w.until(CLAIM_VALUES, "made", lambda claim: bool(device_conditions(claim)))


def claim_of(number: int, devices: tuple[int, ...]) -> ResourceClaim:
    """A claim of two drivers, for any of the pods."""
    found = tuple(
        DeviceRequestAllocationResult(
            request="r", driver=f"d{device % 2}", pool="p", device=f"gpu-{device}"
        )
        for device in devices
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=found))
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=name, uid=name) for name in "ab"
    )
    return ResourceClaim(
        metadata=ObjectMeta(name=f"c{number}", namespace="n", uid=f"c{number}"),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=users),
    )


def pod_of(name: str, *claims: int) -> Pod:
    entries = tuple(
        PodResourceClaim(name=f"e{number}", resource_claim_name=f"c{number}") for number in claims
    )
    metadata = ObjectMeta(name=name, namespace="n", uid=name)
    return Pod(metadata=metadata, spec=PodSpec(resource_claims=entries))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("prepare", "unprepare")),
        st.sampled_from(("a", "b")),
        st.lists(st.integers(0, 3), unique=True, max_size=3),
    ),
    max_size=30,
)
DEVICES = st.lists(st.lists(st.integers(0, 4), unique=True, max_size=3), min_size=4, max_size=4)


@given(STEPS, DEVICES)
def test_no_device_is_ever_prepared_for_two_claims(
    steps: list[tuple[str, str, list[int]]], devices: list[list[int]]
) -> None:
    """Whatever is prepared and unprepared in whatever order: each device has one claim at most, and none in the end."""
    asyncio.run(_law(steps, devices))


async def _law(steps: list[tuple[str, str, list[int]]], devices: list[list[int]]) -> None:
    cache: Cache[ResourceClaim] = Cache({})
    for number in range(4):
        cache.put(("n", f"c{number}"), claim_of(number, tuple(devices[number])))
    told: list[str] = []
    drivers = SimulatedDrivers(
        cache, lambda _: Device(name="d"), lambda _: False, lambda _, problem: told.append(problem)
    )
    claims = NodeClaims(NothingKept(), CachedClaims(cache), drivers)
    for verb, name, numbers in steps:
        if verb == "unprepare":
            await claims.unprepare(name)
            assert claims.of_pod(name) == []
            continue
        told.clear()
        found: Devices | None = None
        with suppress(ClaimsError):
            found = await claims.prepare(pod_of(name, *numbers))
        assert (found is None) == bool(told)
        if found is not None:
            for number in numbers:
                ready = {device.device for device in found[f"c{number}"]}
                assert ready == {f"gpu-{device}" for device in devices[number]}
        assert {held.uid for held in claims.of_pod(name)} >= {f"c{number}" for number in numbers}
        prepared = [device for held in drivers.holdings().values() for device in held]
        assert len(prepared) == len(set(prepared))
    for name in ("a", "b"):
        await claims.unprepare(name)
    assert claims.held == ()
    assert drivers.holdings() == {}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"resource_claim_statuses": ()}, "the claim for 'e' has not been created yet"),
        ({}, "claim made was not made for the pod"),
    ],
    ids=["not made", "of another pod"],
)
async def test_a_claim_from_a_template_has_to_be_that_of_the_pod(
    change: dict[str, Any], problem: str
) -> None:
    """One that has the name, but was made for another pod, is not prepared."""
    cache: Cache[ResourceClaim] = Cache({})
    cache.put(("n", "made"), claim_of(0, (0,)))
    statuses = (PodResourceClaimStatus(name="e", resource_claim_name="made"),)
    status = PodStatus(**{"resource_claim_statuses": statuses, **change})
    entry = PodResourceClaim(name="e", resource_claim_template_name="t")
    metadata = ObjectMeta(name="a", namespace="n", uid="a")
    pod = Pod(metadata=metadata, spec=PodSpec(resource_claims=(entry,)), status=status)
    drivers = SimulatedDrivers(cache, lambda _: None, lambda _: False, lambda _, problem: None)
    claims = NodeClaims(NothingKept(), CachedClaims(cache), drivers)
    with pytest.raises(ClaimsError, match=problem):
        await claims.prepare(pod)
    assert claims.held == ()

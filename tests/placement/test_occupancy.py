"""What devices are counted as, on hardware as it is sold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from drayman.api.core import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.api.resource import (
    Counter as ApiCounter,
)
from drayman.drivers.profiles import dgx_h100
from drayman.inventory import DeviceId
from drayman.inventory.pool import PoolState
from drayman.placement.fit.readiness import Closed
from drayman.placement.occupancy import NO_NODE, Occupancy, State, occupancy, tally
from drayman.simulate.capacity_left import capacity_use
from drayman.simulate.unit_counts import count_by_kind, gather
from drayman.topology import DeviceKind

DRIVER = "gpu.example.com"
GPU = "gpu.nvidia.com"
BAD = DeviceTaint(key="example.com/bad", effect="NoSchedule")


def node(name: str = "n") -> Node:
    return Node(metadata=ObjectMeta(name=name))


def slice_(
    devices: Iterable[Device] = (),
    *,
    name: str = "s",
    pool: str = "p",
    generation: int = 1,
    of: int = 1,
    on: str | None = "n",
    counters: tuple[CounterSet, ...] = (),
) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=of),
            node_name=on,
            all_nodes=None if on else True,
            devices=tuple(devices) or None,
            shared_counters=counters or None,
        ),
    )


def claim(
    name: str,
    *devices: str,
    pool: str = "p",
    driver: str = DRIVER,
    admin: bool = False,
    share: str | None = None,
    consumed: dict[str, str] | None = None,
) -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(
            request="r",
            driver=driver,
            pool=pool,
            device=device,
            admin_access=admin or None,
            share_id=share,
            consumed_capacity={k: Quantity.parse(v) for k, v in (consumed or {}).items()},
        )
        for device in devices
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=name),
        status=ResourceClaimStatus(allocation=allocation),
    )


def states(found: Occupancy) -> dict[str, State]:
    return {device.device: standing.state for device, standing in found.devices.items()}


def mig(*claims: ResourceClaim) -> Occupancy:
    hardware = dgx_h100("n", mig=True)
    slices = [item for item in hardware.slices if item.spec.driver == GPU]
    return occupancy([hardware.node], slices, claims)


def of_gpu(found: Occupancy, number: int) -> Counter[State]:
    name = f"gpu-{number}"
    return tally(s for s in found.devices.values() if s.unit.name == name)


def test_a_held_partition_partitions_its_gpu_and_blocks_what_overlaps() -> None:
    """Half of a GPU is held: the whole is partitioned, partitions in the other half stay free, other GPUs stay whole."""
    found = mig(claim("a", "gpu-0-mig-3g40gb-9-4", pool="n", driver=GPU))
    seen = states(found)
    assert seen["gpu-0"] is State.PARTITIONED
    assert seen["gpu-0-mig-3g40gb-9-4"] is State.USED
    assert seen["gpu-0-mig-3g40gb-9-0"] is State.FREE
    assert seen["gpu-0-mig-1g10gb-19-4"] is State.UNAVAILABLE
    assert seen["gpu-0-mig-7g80gb-0-0"] is State.UNAVAILABLE
    assert of_gpu(found, 1) == {State.FREE: 26}
    assert found.devices[DeviceId(GPU, "n", "gpu-0-mig-1g10gb-19-4")].why


def test_a_held_gpu_blocks_all_its_partitions() -> None:
    """One device is used; the other 25 of its GPU can be had by nobody."""
    found = mig(claim("a", "gpu-3", pool="n", driver=GPU))
    assert of_gpu(found, 3) == {State.USED: 1, State.UNAVAILABLE: 25}


def test_people_count_gpus_and_not_their_partitions() -> None:
    """208 devices are eight GPUs: one used, one partitioned, six free."""
    found = mig(
        claim("a", "gpu-3", pool="n", driver=GPU),
        claim("b", "gpu-0-mig-1g10gb-19-0", pool="n", driver=GPU),
    )
    assert len(found.devices) == 208
    assert count_by_kind(gather(found.devices.values())) == {
        DeviceKind.GPU: {State.USED: 1, State.PARTITIONED: 1, State.FREE: 6}
    }


def half(name: str) -> Device:
    counters = {"memory": ApiCounter(value=Quantity.parse("40Gi"))}
    drawn = DeviceCounterConsumption(counter_set="gpu-0", counters=counters)
    return Device(name=name, consumes_counters=(drawn,))


@pytest.mark.parametrize(
    ("held", "state"), [((), State.FREE), (("left",), State.PARTITIONED)], ids=["free", "held"]
)
def test_a_gpu_that_is_offered_in_parts_only_is_one_unit(
    held: tuple[str, ...], state: State
) -> None:
    """It goes by the name of its counters, and no part of it is taken for the whole."""
    whole = CounterSet(name="gpu-0", counters={"memory": ApiCounter(value=Quantity.parse("80Gi"))})
    slices = [
        slice_(name="counters", of=2, counters=(whole,)),
        slice_([half("left"), half("right")], name="devices", of=2),
    ]
    found = occupancy([node()], slices, [claim("a", *held)])
    (unit,) = gather(found.devices.values())
    assert unit.id.is_counter_set
    assert unit.id.name == "gpu-0"
    assert unit.state is state
    assert states(found)["right"] is State.FREE


def test_a_shared_device_says_what_is_left() -> None:
    """Two claims have a share each; the device is neither used nor free."""
    capacity = {"memory": DeviceCapacity(value=Quantity.parse("80Gi"))}
    shared = Device(name="gpu", allow_multiple_allocations=True, capacity=capacity)
    claims = [
        claim(name, "gpu", share=name, consumed={"memory": "24Gi"}) for name in ("one", "two")
    ]
    found = occupancy([node()], [slice_([shared])], claims)
    (standing,) = found.devices.values()
    assert standing.state is State.SHARED
    (use,) = capacity_use(standing)
    assert (str(use.left), str(use.taken), str(use.total)) == ("32Gi", "48Gi", "80Gi")


def test_admin_access_takes_nothing() -> None:
    """A device that is only looked after is free."""
    found = occupancy([node()], [slice_([Device(name="gpu")])], [claim("a", "gpu", admin=True)])
    assert states(found) == {"gpu": State.FREE}


def test_used_counts_before_tainted() -> None:
    """A device that is both counts once, and its taint is still told; a rule taints as the driver does."""
    devices = [Device(name=name, taints=(BAD,)) for name in ("used", "idle")]
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name="rule"),
        spec=DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(device="ruled"), taint=BAD),
    )
    slices = [slice_([*devices, Device(name="ruled")])]
    found = occupancy([node()], slices, [claim("a", "used")], [rule])
    assert states(found) == {
        "used": State.USED,
        "idle": State.TAINTED,
        "ruled": State.TAINTED,
    }
    assert all(s.taints == (("example.com/bad", "", "NoSchedule"),) for s in found.devices.values())


def test_only_the_newest_generation_counts() -> None:
    """What an older slice publishes is no device any more."""
    slices = [
        slice_([Device(name="old")], name="a"),
        slice_([Device(name="new")], name="b", generation=2),
    ]
    assert states(occupancy([node()], slices, [])) == {"new": State.FREE}


def test_devices_of_an_incomplete_pool_can_be_had_by_nobody() -> None:
    """They count, what is held of them as held, and the reason is told."""
    slices = [slice_([Device(name="one"), Device(name="two")], of=2)]
    found = occupancy([node()], slices, [claim("a", "one")])
    assert states(found) == {"one": State.USED, "two": State.UNAVAILABLE}
    (pool,) = found.pools
    assert pool.state is PoolState.INCOMPLETE
    assert "1 of 2 slices" in found.devices[DeviceId(DRIVER, "p", "two")].why


def test_devices_that_many_nodes_reach_count_once() -> None:
    """Two nodes see the same device; there is one, on no node."""
    found = occupancy([node("a"), node("b")], [slice_([Device(name="nas")], on=None)], [])
    assert states(found) == {"nas": State.FREE}
    assert found.devices[DeviceId(DRIVER, "p", "nas")].node == ""


def test_devices_of_a_node_that_is_gone_are_unavailable() -> None:
    """The slice is still there, but nobody can use what it says."""
    found = occupancy([node("other")], [slice_([Device(name="gpu")])], [])
    (standing,) = found.devices.values()
    assert (standing.state, standing.why) == (State.UNAVAILABLE, NO_NODE)


def ready(status: str) -> NodeStatus:
    return NodeStatus(conditions=(NodeCondition(type_="Ready", status=status),))


UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")
CLOSED = [
    ("cordoned", NodeSpec(unschedulable=True), ready("True"), (Closed.CORDONED,)),
    ("not ready", NodeSpec(), ready("False"), (Closed.NOT_READY,)),
    ("silent", NodeSpec(), ready("Unknown"), (Closed.NOT_READY,)),
    ("tainted for it", NodeSpec(taints=(UNREACHABLE,)), ready("True"), (Closed.NOT_READY,)),
    ("both", NodeSpec(unschedulable=True), ready("False"), (Closed.NOT_READY, Closed.CORDONED)),
]


@pytest.mark.parametrize(
    ("spec", "status", "why"), [c[1:] for c in CLOSED], ids=[c[0] for c in CLOSED]
)
def test_devices_of_a_node_that_takes_no_pods_are_not_free(
    spec: NodeSpec, status: NodeStatus, why: tuple[Closed, ...]
) -> None:
    """Nobody gets them while it is like this; what is held there stays held, and each says why."""
    closed = replace(node(), spec=spec, status=status)
    devices = (Device(name="a"), Device(name="b"))
    found = occupancy([closed], [slice_(devices)], [claim("c", "a")])
    assert states(found) == {"a": State.USED, "b": State.UNAVAILABLE}
    assert {standing.closed for standing in found.devices.values()} == {why}
    assert (
        found.devices[DeviceId(DRIVER, "p", "b")].why
        == f"its node is {' and '.join(w.words for w in why)}"
    )


@pytest.mark.parametrize(
    ("taint", "effect"),
    [("gpus-only", "NoSchedule"), ("node.kubernetes.io/not-ready", "PreferNoSchedule")],
)
def test_a_taint_that_pods_may_tolerate_leaves_devices_free(taint: str, effect: str) -> None:
    """Nodes with GPUs are often tainted so that only those come who need them."""
    tainted = replace(node(), spec=NodeSpec(taints=(Taint(key=taint, effect=effect),)))
    assert states(occupancy([tainted], [slice_([Device(name="a")])], ())) == {"a": State.FREE}


@pytest.mark.parametrize("order", [1, -1])
def test_a_device_that_an_open_node_reaches_is_free(order: int) -> None:
    """Whichever node is looked at first; it is closed where all nodes that reach it are."""
    cordoned = replace(node("m"), spec=NodeSpec(unschedulable=True))
    shared = slice_([Device(name="a")], on=None)
    assert states(occupancy([node(), cordoned][::order], [shared], ())) == {"a": State.FREE}
    found = occupancy([cordoned], [shared], ())
    assert [s.why for s in found.devices.values()] == ["the nodes that can use it are cordoned"]


def test_without_all_claims_nothing_is_known_to_be_free() -> None:
    """What the claims that can be seen have is used; the rest may be somebody else's."""
    slices = [slice_([Device(name="mine"), Device(name="other")])]
    found = occupancy([node()], slices, [claim("a", "mine")], all_claims=False)
    assert states(found) == {"mine": State.USED, "other": State.UNKNOWN}


def test_a_claim_that_is_released_leaves_nothing() -> None:
    """A claim without an allocation holds nothing."""
    released = replace(claim("a", "gpu"), status=ResourceClaimStatus())
    assert states(occupancy([node()], [slice_([Device(name="gpu")])], [released])) == {
        "gpu": State.FREE
    }

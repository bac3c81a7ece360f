"""Counted devices against the search itself, on random inventories: nobody else can say what can be had."""

from __future__ import annotations

import json

from hypothesis import event, given
from hypothesis import strategies as st

from drayman.allocator import Plan, Policy, search
from drayman.api.codec import convert
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from drayman.inventory import DeviceId, NodeView
from drayman.placement.occupancy import DeviceStanding, Occupancy, State, count, obtainable, tally
from oracle.nodes import JsonObject
from oracle.strategies import problems
from oracle.strategies_split import split_problems
from oracle.subject import inventory_of, ledger_of, node_of

HELD = (State.USED, State.SHARED)
PROBE = "probe.example.com"


def worlds() -> st.SearchStrategy[JsonObject]:
    return st.one_of(problems(), split_problems())


def probed(asked: JsonObject) -> JsonObject:
    """The same problem with devices that a selector can tell apart."""
    made: JsonObject = json.loads(json.dumps(asked))
    made["classes"].append({"metadata": {"name": "probe"}})
    for item in made["slices"]:
        spec = item["spec"]
        for device in spec.get("devices") or []:
            name = "/".join((spec["driver"], spec["pool"]["name"], device["name"]))
            device.setdefault("attributes", {})[f"{PROBE}/name"] = {"string": name}
    return made


def counted(asked: JsonObject) -> tuple[Occupancy, NodeView]:
    inventory, ledger, node = inventory_of(asked), ledger_of(asked), node_of(asked)
    slices = [convert(ResourceSlice, item) for item in asked["slices"]]
    return count(inventory, ledger, [node], slices), inventory.view(node, ledger)


def asks_for(device: DeviceId) -> ResourceClaim:
    expression = f"device.attributes['{PROBE}'].name == '{device}'"
    wanted = ExactDeviceRequest(
        device_class_name="probe",
        allocation_mode="ExactCount",
        count=1,
        selectors=(DeviceSelector(cel=CELDeviceSelector(expression=expression)),),
    )
    request = DeviceRequest(name="r", exactly=wanted)
    return ResourceClaim(
        metadata=ObjectMeta(name="probe", namespace="default"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


def can_be_had(view: NodeView, device: DeviceId) -> bool:
    return isinstance(search(view, [asks_for(device)], policy=Policy.FIRST_FIT), Plan)


@given(asked=worlds())
def test_a_free_device_is_one_that_a_search_for_it_alone_gets(asked: JsonObject) -> None:
    """FREE says that nobody holds it and the search gets it; neither more nor fewer devices are free."""
    found, view = counted(probed(asked))
    for device, standing in found.devices.items():
        event(standing.state)
        had = can_be_had(view, device)
        assert (standing.state is State.FREE) == (had and standing.state not in HELD), standing
        assert standing.state is not State.USED or not had


@given(asked=worlds())
def test_every_device_is_counted_once(asked: JsonObject) -> None:
    """States add up to the devices that the newest generations publish and the views show."""
    found, view = counted(asked)
    assert sum(tally(found.devices.values()).values()) == len(found.devices)
    shown = {record.id for record in view.hardware.records}
    newest = {device for pool in found.pools for device in pool.devices}
    assert found.devices.keys() == shown | newest


@given(asked=worlds())
def test_held_devices_are_those_of_the_ledger(asked: JsonObject) -> None:
    """USED and SHARED are exactly the devices that somebody holds, and no device is held in any other state."""
    found, _ = counted(asked)
    for device, standing in found.devices.items():
        assert (standing.state in HELD) == bool(found.ledger.held(device))


@given(asked=worlds())
def test_a_partitioned_device_is_lost_because_of_its_parts(asked: JsonObject) -> None:
    """With nothing held there is no partitioned device, and what was partitioned can then be had unless it is tainted."""
    found, _ = counted(asked)
    emptied, view = counted({**asked, "allocated": {}})
    free = obtainable(view.usage, view.tolerated(()))
    for device, standing in found.devices.items():
        assert emptied.devices[device].state is not State.PARTITIONED
        if standing.state is State.PARTITIONED and not standing.taints:
            assert free >> view.hardware.position[device] & 1


@given(asked=worlds())
def test_units_cover_the_devices(asked: JsonObject) -> None:
    """Devices of one unit are of one pool, and a unit named after a device contains it."""
    found, _ = counted(asked)
    units: dict[tuple[str, ...], list[DeviceStanding]] = {}
    for standing in found.devices.values():
        units.setdefault(tuple(map(str, standing.unit)), []).append(standing)
    for members in units.values():
        unit = members[0].unit
        assert {member.id.pool_id for member in members} == {(unit.driver, unit.pool)}
        assert unit.is_counter_set or unit.name in {member.id.device for member in members}

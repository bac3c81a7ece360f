"""The devices of a cluster with the claims that hold them and their taints: each by itself, or those of a node that are alike together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from drayman.api.struct import ApiStruct
from drayman.placement.occupancy import DeviceStanding, State
from drayman.questions.devices.reading import Reading
from drayman.reasons.naming import taint_title


class HeldDevice(ApiStruct):
    """A device and what holds it."""

    driver: str
    pool: str
    device: str
    node: str
    state: State
    claims: tuple[str, ...]
    """As namespace/name."""
    taints: tuple[str, ...]


class HeldDevices(ApiStruct):
    """The devices that were asked about."""

    devices: tuple[HeldDevice, ...]


class DeviceGroup(ApiStruct):
    """Devices of one node and driver in one state, with the same taints."""

    node: str
    driver: str
    pool: str
    state: State
    taints: tuple[str, ...]
    devices: tuple[str, ...]


def held_devices(
    reading: Reading,
    *,
    node: str | None = None,
    driver: str | None = None,
    states: Collection[str] = (),
) -> HeldDevices:
    """The devices, or only those of a node, a driver, or in some states."""
    rows = (
        _row(reading, standing)
        for standing in reading.occupancy.devices.values()
        if node in (None, standing.node)
        and driver in (None, standing.id.driver)
        and (not states or standing.state in states)
    )
    return HeldDevices(devices=tuple(rows))


def groups(devices: Sequence[HeldDevice]) -> list[DeviceGroup]:
    """Devices that are alike but for their names, in the order of their nodes and drivers."""
    found: dict[tuple[object, ...], list[HeldDevice]] = {}
    for each in devices:
        key = (each.node, each.driver, each.pool, each.state, each.taints)
        found.setdefault(key, []).append(each)
    in_order = sorted(found.values(), key=lambda members: (members[0].node, members[0].driver))
    return [
        DeviceGroup(
            node=members[0].node,
            driver=members[0].driver,
            pool=members[0].pool,
            state=members[0].state,
            taints=members[0].taints,
            devices=tuple(each.device for each in members),
        )
        for members in in_order
    ]


def _row(reading: Reading, standing: DeviceStanding) -> HeldDevice:
    own = standing.id
    claims = (share.claim.metadata for share in reading.shares.get(own, ()))
    return HeldDevice(
        driver=own.driver,
        pool=own.pool,
        device=own.device,
        node=standing.node,
        state=standing.state,
        claims=tuple(dict.fromkeys(f"{each.namespace}/{each.name}" for each in claims)),
        taints=tuple(taint_title(*taint) for taint in standing.taints),
    )

"""Every device that is published, with the claims that hold it and its taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drayman.api.resource import DeviceTaintRule
from drayman.api.struct import ApiStruct
from drayman.cluster import Client
from drayman.cluster.errors import ForbiddenError
from drayman.cluster.resources import NODES, RESOURCE_CLAIMS
from drayman.inventory.identity import DeviceId
from drayman.questions.devices.finding import (
    PublishedDevice,
    devices,
    is_about,
    taint_rules,
)
from drayman.questions.devices.reading import allocated
from drayman.questions.errors import no_such_node
from drayman.reasons.naming import taint_title


class HeldDevice(ApiStruct):
    """A device and what holds it."""

    driver: str
    pool: str
    device: str
    node: str
    claims: tuple[str, ...]
    """As namespace/name."""
    taints: tuple[str, ...]


class HeldDevices(ApiStruct):
    """The devices that were asked about."""

    devices: tuple[HeldDevice, ...]


async def held_devices(
    client: Client, *, node: str | None = None, driver: str | None = None
) -> tuple[HeldDevices, set[str]]:
    """The devices, or only those of a node or a driver, and the existing drivers. Raises NoSuchObjectError for an unknown node."""
    every = await devices(client)
    chosen = [
        found for found in every if node in (None, found.node) and driver in (None, found.driver)
    ]
    if not chosen:
        await _refuse_unknown(client, node, {found.node for found in every})
    holders: dict[DeviceId, list[str]] = {}
    for device, claim, _ in allocated((await client.list_all(RESOURCE_CLAIMS)).items):
        holders.setdefault(device, []).append(f"{claim.metadata.namespace}/{claim.metadata.name}")
    rules = await taint_rules(client)
    rows = tuple(_row(found, holders, rules) for found in chosen)
    return HeldDevices(devices=rows), {found.driver for found in every}


async def _refuse_unknown(client: Client, node: str | None, with_devices: set[str]) -> None:
    """Raises NoSuchObjectError for a node that does not exist. One that the user may not look up may exist."""
    if node is None or node in with_devices:
        return
    try:
        nodes = (await client.list_all(NODES)).items
    except ForbiddenError:
        return
    known = {each.metadata.name for each in nodes}
    if node not in known:
        raise no_such_node(node, known)


def _row(
    found: PublishedDevice,
    holders: Mapping[DeviceId, list[str]],
    rules: Sequence[DeviceTaintRule],
) -> HeldDevice:
    taints = [*found.taints, *(rule.spec.taint for rule in rules if is_about(rule, found))]
    return HeldDevice(
        driver=found.driver,
        pool=found.pool,
        device=found.name,
        node=found.node,
        claims=tuple(holders.get(DeviceId(*found.key), ())),
        taints=tuple(taint_title(each.key, each.value, each.effect) for each in taints),
    )

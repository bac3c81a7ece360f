"""Claims one by one: what each has, where, and for which pods."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import ResourceClaim, claim_state
from drayman.api.struct import ApiStruct
from drayman.inventory import DeviceId
from drayman.placement.claims import only_node_of
from drayman.questions.devices.reading import Reading, consumers

MANY_NODES: Final = "(several)"


class ClaimRow(ApiStruct, kw_only=True):
    """A claim."""

    namespace: str
    name: str
    state: str
    """As kubectl writes it."""
    node: str | None
    """The node that its allocation, or all its devices, are on."""
    devices: tuple[str, ...]
    """As driver/pool/name."""
    devices_gone: tuple[str, ...] = ()
    """Those of its devices that are not published any more."""
    node_closed: tuple[str, ...] = ()
    """Why the node with some of its devices takes no pods."""
    reserved_for: tuple[str, ...]
    created: str | None


def claim_rows(
    reading: Reading, *, namespace: str | None = None, node: str | None = None
) -> list[ClaimRow]:
    """The claims, or only those of a namespace or with devices of a node."""
    rows = [
        claim_row(claim, reading)
        for claim in reading.claims
        if namespace in (None, claim.metadata.namespace)
    ]
    return [row for row in rows if node in (None, row.node)]


def claim_row(claim: ResourceClaim, reading: Reading) -> ClaimRow:
    """The row of a claim."""
    allocation = claim.status.allocation
    devices = reading.occupancy.devices
    keys = tuple(map(DeviceId.of, claim.status.results))
    on = {devices[key].node for key in keys if key in devices}
    node = "" if allocation is None else only_node_of(allocation.node_selector) or _only(on)
    closed = {each: None for key in keys if key in devices for each in devices[key].closed}
    return ClaimRow(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        state=claim_state(claim),
        node=node or None,
        devices=tuple(map(str, keys)),
        devices_gone=tuple(str(key) for key in keys if key not in devices),
        node_closed=tuple(why.value for why in closed),
        reserved_for=consumers(claim),
        created=claim.metadata.creation_timestamp,
    )


def _only(nodes: set[str]) -> str:
    """The node that all devices are on; devices that are no longer published are on none."""
    if not nodes:
        return ""
    return next(iter(nodes)) or MANY_NODES if len(nodes) == 1 else MANY_NODES

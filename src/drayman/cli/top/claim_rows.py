"""Claims as lines: what each has, where, and for which pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from drayman.api.resource import ResourceClaim, claim_state
from drayman.cli.top.reading import Reading, consumers
from drayman.cli.top.rows import MANY_NODES, NOTHING
from drayman.cli.top.table import Cell, Column
from drayman.inventory import DeviceId
from drayman.placement.claims import only_node_of
from drayman.placement.fit.readiness import Closed

_NAMES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim of `top claims`."""

    claim: ResourceClaim
    devices: tuple[DeviceId, ...]
    node: str
    age: str
    gone: tuple[DeviceId, ...] = ()
    """Those of its devices that are not published any more."""
    closed: tuple[Closed, ...] = ()
    """Why the node with some of its devices takes no pods."""

    @property
    def state(self) -> str:
        """As kubectl has it."""
        return claim_state(self.claim)

    @property
    def marks(self) -> tuple[str, ...]:
        """What is wrong with where its devices are."""
        return (*self.closed, *(("devices-gone",) if self.gone else ()))

    def cells(self) -> tuple[Cell, ...]:
        state = self.state
        # What is reserved is allocated, so one word says it.
        word = "deleted" if state.startswith("deleted") else state.rpartition(",")[2]
        style = "yellow" if state == "pending" else "red" if self.gone else ""
        return (
            self.claim.metadata.namespace,
            self.claim.metadata.name,
            (",".join((word, *self.marks)), style),
            self.node or NOTHING,
            str(len(self.devices)),
            _listed(consumers(self.claim)),
            self.age,
            ",".join(device.device for device in self.devices) or NOTHING,
        )

    def data(self) -> dict[str, Any]:
        return {
            "namespace": self.claim.metadata.namespace,
            "name": self.claim.metadata.name,
            "state": self.state,
            "node": self.node or None,
            "devices": [str(device) for device in self.devices],
            **({"devicesGone": [str(device) for device in self.gone]} if self.gone else {}),
            **({"nodeClosed": list(self.closed)} if self.closed else {}),
            "reservedFor": list(consumers(self.claim)),
            "created": self.claim.metadata.creation_timestamp,
        }


CLAIM_COLUMNS: Final = (
    Column("NAMESPACE", may_be_cut=True),
    Column("NAME", may_be_cut=True, matters=True),
    Column("STATE"),
    Column("NODE", may_be_cut=True),
    Column("DEVICES", is_number=True),
    Column("PODS", may_be_cut=True),
    Column("AGE"),
    Column("DEVICE NAMES", may_be_cut=True, if_room=True),
)


def claim_row(claim: ResourceClaim, reading: Reading, age: str) -> ClaimRow:
    """A row for a claim: the node is the one that its allocation, or all its devices, are on."""
    allocation = claim.status.allocation
    if allocation is None:
        return ClaimRow(claim, (), "", age)
    results = allocation.devices.results
    devices = reading.occupancy.devices
    keys = tuple(DeviceId(result.driver, result.pool, result.device) for result in results)
    on = {devices[key].node for key in keys if key in devices}
    node = only_node_of(allocation.node_selector) or _only(on)
    gone = tuple(key for key in keys if key not in devices)
    closed = {each: None for key in keys if key in devices for each in devices[key].closed}
    return ClaimRow(claim, keys, node, age, gone, tuple(closed))


def _only(nodes: set[str]) -> str:
    """The node that all devices are on; devices that are no longer published are on none."""
    if not nodes:
        return ""
    return next(iter(nodes)) or MANY_NODES if len(nodes) == 1 else MANY_NODES


def _listed(names: tuple[str, ...]) -> str:
    shown = ",".join(names[:_NAMES_SHOWN]) or NOTHING
    rest = len(names) - _NAMES_SHOWN
    return f"{shown},+{rest}" if rest > 0 else shown

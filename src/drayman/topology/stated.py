"""What the devices of a node state about the place of the node.

Some fabrics publish where a node is as attributes of its network devices (DRANET) or GPUs instead of labels of the node. The node is where
its devices say, if those that say anything agree; otherwise it is nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from drayman.bounded import Bounded
from drayman.inventory.attributes import lookup, values_of
from drayman.inventory.device import DeviceRecord
from drayman.inventory.hardware import NodeHardware
from drayman.topology.levels import KNOWN_KEYS

_MOST_NAMES: Final = 64  # kept for each hardware; names come from users


class StatedPlaces:
    """What the devices that a node has for itself state. Made of a hardware by `stated_by`."""

    __slots__ = ("_kept", "_known", "_records")

    def __init__(self, records: Iterable[DeviceRecord]) -> None:
        # Devices that several nodes reach say nothing about where one of these nodes is.
        self._records = [record for record in records if record.slice.spec.node_name]
        self._kept: Bounded[str, str] = Bounded(_MOST_NAMES)
        self._known: Mapping[str, str] | None = None

    def value(self, name: str) -> str:
        """The one value that the devices have for an attribute; empty if they have none, or several."""
        found = self._kept.get(name)
        if found is None:
            values = {
                text
                for record in self._records
                for kind, text in values_of(lookup(record, name), lists=False)
                if kind == "string"
            }
            found = self._kept[name] = str(values.pop()) if len(values) == 1 else ""
        return found

    @property
    def known(self) -> Mapping[str, str]:
        """The levels of the table that the devices state."""
        if self._known is None:
            names = {name for record in self._records for name in record.device.attributes}
            values = {name: self.value(name) for name in sorted(names & KNOWN_KEYS.keys())}
            self._known = {name: value for name, value in values.items() if value}
        return self._known


def stated_by(hardware: NodeHardware) -> StatedPlaces:
    """For `NodeHardware.derived`."""
    return StatedPlaces(hardware.records)

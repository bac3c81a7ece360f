"""The matrix of `nvidia-smi topo -m` as data: how far apart the devices are. Printing it is left to the caller."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from drayman.api.resource import Device
from drayman.topology.distance import MEANINGS, Distance, Link, link
from drayman.topology.locality import DeviceKind, Locality, kind, locality


class Row(Struct, frozen=True):
    """One device and what joins it to each device of the matrix, in the order of the rows."""

    driver: str
    device: str
    kind: DeviceKind
    locality: Locality
    links: tuple[Link, ...]


class Matrix(Struct, frozen=True):
    """All devices of one node against each other."""

    rows: tuple[Row, ...]

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """The codes that occur and what they mean, from near to far."""
        present = {each.distance for row in self.rows for each in row.links}
        return tuple(
            (code, meaning)
            for distance, (code, meaning) in zip(Distance, MEANINGS.items(), strict=True)
            if distance in present
        )


_ORDER = tuple(DeviceKind)


def matrix(devices: Iterable[tuple[str, Device]]) -> Matrix:
    """The matrix of (driver, device) pairs: GPUs first, then NICs, CPUs and the rest, each in the order given."""
    placed = [(driver, device, kind(driver, device)) for driver, device in devices]
    placed.sort(key=lambda entry: _ORDER.index(entry[2]))
    places = [locality(driver, device) for driver, device, _ in placed]
    return Matrix(
        tuple(
            Row(driver, device.name, sort, place, _links(index, place, places))
            for index, ((driver, device, sort), place) in enumerate(
                zip(placed, places, strict=True)
            )
        )
    )


def _links(index: int, place: Locality, places: list[Locality]) -> tuple[Link, ...]:
    return tuple(
        Link(Distance.SELF) if index == column else link(place, other)
        for column, other in enumerate(places)
    )

"""Sets of devices as integers: bit i is the i-th device in search order. Intersection and counting are one operation each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_WIDE: Final = 1_024
"""Number of bits from which arithmetic on a set takes noticeably longer."""


def positions(devices: int) -> Iterable[int]:
    """The positions in a device set, in order."""
    # For a few devices close to each other among very many, only the part between the first and the last is scanned.
    start = (devices & -devices).bit_length() - 1 if devices >> _WIDE else 0
    devices >>= start
    while devices:
        low = devices & -devices
        yield start + low.bit_length() - 1
        devices ^= low


def bitset(members: Iterable[int], size: int) -> int:
    """The set of these positions, all of them below `size`. Linear even where adding bit by bit would be quadratic."""
    octets = bytearray((size >> 3) + 1)
    for position in members:
        octets[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(octets, "little")


def first(devices: int) -> int:
    """The lowest position in a device set. Raises ValueError if the set is empty."""
    if not devices:
        raise ValueError("an empty set has no first device")
    return (devices & -devices).bit_length() - 1

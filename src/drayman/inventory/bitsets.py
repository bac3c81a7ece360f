"""Sets of devices as integers: bit i is the i-th device in search order. Intersection and counting are one operation each."""

from __future__ import annotations

from collections.abc import Iterable


def positions(devices: int) -> Iterable[int]:
    """The positions in a device set, in order."""
    while devices:
        low = devices & -devices
        yield low.bit_length() - 1
        devices ^= low


def bitset(members: Iterable[int], size: int) -> int:
    """The set of these positions, all of them below `size`. Linear also where adding bit by bit would be quadratic."""
    octets = bytearray((size >> 3) + 1)
    for position in members:
        octets[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(octets, "little")

"""A profile: a name that stands for one kind of hardware, and how its nodes are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.machines import Spot


class ProfileError(Exception):
    """A profile cannot be used. The message is one line that names it, the file and the field where there are any, and what is allowed."""


def stand_alone(profile: str, unit: int) -> tuple[Spot, ...]:
    """Where one node per unit stands."""
    return (Spot.numbered(profile, unit),)


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of hardware. A unit of it is what `--profile NAME=1` makes: usually one node, for a rack-scale machine all of its nodes."""

    name: str
    summary: str
    build: Callable[[Spot], HardwareNode]
    spots: Callable[[str, int], tuple[Spot, ...]] = stand_alone
    """Names and places of the nodes of a unit."""

    def unit(self, number: int) -> tuple[HardwareNode, ...]:
        """The nodes of one unit."""
        return tuple(self.build(spot) for spot in self.spots(self.name, number))

    @property
    def nodes_per_unit(self) -> int:
        return len(self.spots(self.name, 0))

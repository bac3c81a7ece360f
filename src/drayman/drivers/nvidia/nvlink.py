"""Which GPUs of a machine NVLink joins, where their product name does not say so.

NVIDIA's driver publishes nothing about NVLink, and everybody who looks at its slices goes by the product: GPUs of a board with switches
are all joined. That is wrong for bridges between cards, for boards without switches, and for links that are down or were not passed to a
virtual machine. For such machines two attributes are added, which `drayman.topology` reads; for all others slices stay those of
NVIDIA's driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api.resource import DeviceAttribute
from drayman.drivers.describing import integer, string
from drayman.topology import product_nvlinks

SWITCH: Final = "switch"
"""What stands for all NVLink switches of a machine among the peers of a GPU."""
GROUP: Final = "drayman.dev/nvlinkGroup"
LINKS: Final = "drayman.dev/nvlinks"

Links = Mapping[str, int]
"""How many active links lead to each peer: the bus id of another GPU, or the switches."""


@dataclass(frozen=True, slots=True)
class Linked:
    """A GPU, and what it is linked to."""

    name: str
    product: str
    bus_id: str
    links: Links | None
    """None where NVML does not tell."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The GPUs that one GPU is joined with."""

    group: tuple[str, ...]
    """By name, itself included."""
    links: int
    """To each of those that it is linked to, or to the fewest."""

    def attributes(self) -> dict[str, DeviceAttribute]:
        """A group has the name of its first GPU."""
        if not self.links:
            return {LINKS: integer(0)}
        return {GROUP: string(self.group[0]), LINKS: integer(self.links)}


def attributes(gpus: Sequence[Linked]) -> dict[str, dict[str, DeviceAttribute]]:
    """What is to be added to the attributes of whole GPUs, by name: nothing where products say as much, or NVML does not tell."""
    known = [gpu for gpu in gpus if gpu.links is not None]
    found = joined(known)
    if found == _by_product(known):
        return {}
    return {name: each.attributes() for name, each in found.items()}


def joined(gpus: Sequence[Linked]) -> dict[str, Joined]:
    """Each GPU's group, by name. Groups are as large as possible: two GPUs may be joined by way of a third."""
    left = list(gpus)
    found = {}
    while left:
        group = [left.pop(0)]
        for one in group:
            near = [other for other in left if _between(one, other)]
            group += near
            left = [other for other in left if other not in near]
        names = tuple(sorted((each.name for each in group), key=_natural))
        for one in group:
            counts = [_between(one, other) for other in group if other is not one]
            found[one.name] = Joined(names, min(filter(None, counts), default=0))
    return found


def _between(one: Linked, other: Linked) -> int:
    to, back = one.links or {}, other.links or {}
    return max(min(to.get(SWITCH, 0), back.get(SWITCH, 0)), to.get(other.bus_id, 0))


def _by_product(gpus: Sequence[Linked]) -> dict[str, Joined]:
    """What everybody thinks who knows the products alone."""
    found = {}
    for gpu in gpus:
        links = product_nvlinks(gpu.product)
        alike = [each.name for each in gpus if each.product == gpu.product]
        group = tuple(sorted(alike, key=_natural)) if links else (gpu.name,)
        found[gpu.name] = Joined(group, links if links and len(group) > 1 else 0)
    return found


def _natural(name: str) -> tuple[int, str]:
    return len(name), name

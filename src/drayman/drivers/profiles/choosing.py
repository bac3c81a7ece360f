"""Which hardware a cluster is to have: `dgx-h100=4,./my-node.yaml=2`, and the nodes that result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count, islice
from types import MappingProxyType
from typing import Final

from drayman.api.near_names import did_you_mean
from drayman.api.resource import DeviceClass
from drayman.api.struct import Json
from drayman.drivers.profiles import (
    amd,
    aws,
    clouds,
    dgx,
    example,
    furiosa,
    intel,
    nvl72,
    own,
    processors,
    tpu,
)
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.profile import Profile, ProfileError

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for module in (dgx, nvl72, aws, clouds, amd, intel, tpu, furiosa, processors, example)
        for profile in module.PROFILES
    }
)
"""Every profile that comes with the package, by name."""

MOST_NODES: Final = 20_000
"""More is a typing error; nothing simulates so many in one process."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """So many units of a profile."""

    profile: Profile
    count: int


@dataclass(frozen=True, slots=True)
class HardwareCluster:
    """Nodes with their slices, and the objects that their drivers install once per cluster."""

    nodes: tuple[HardwareNode, ...]
    classes: tuple[DeviceClass, ...]
    definitions: tuple[dict[str, Json], ...]


def parse_profiles(texts: str | Iterable[str]) -> tuple[Wanted, ...]:
    """The profiles that `NAME[=COUNT],...` asks for; a NAME with a slash or a YAML ending is a file. Raises ProfileError.

    The counts of a profile named twice are added.
    """
    counts: dict[str, int] = {}
    for text in (texts,) if isinstance(texts, str) else texts:
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, count = _counted(item)
            counts[name] = counts.get(name, 0) + count
    wanted = tuple(Wanted(_found(name), count) for name, count in counts.items())
    total = sum(one.profile.nodes_per_unit * one.count for one in wanted)
    if total > MOST_NODES:
        raise ProfileError(f"--profile asks for {total} nodes; the most is {MOST_NODES}")
    _refuse_same_names(wanted)
    return wanted


def simulate(wanted: Sequence[Wanted], known: Set[str] = frozenset()) -> HardwareCluster:
    """The nodes of all profiles, with each class and definition once. Units are numbered from zero, without the nodes that are known."""
    nodes = tuple(node for one in wanted for node in _units(one, known))
    classes = {item.metadata.name: item for node in nodes for item in node.classes}
    definitions = {
        str(item["metadata"]["name"]): item for node in nodes for item in node.definitions
    }
    return HardwareCluster(nodes, tuple(classes.values()), tuple(definitions.values()))


def _units(wanted: Wanted, known: Set[str]) -> Iterator[HardwareNode]:
    """As many units as are wanted, those with the lowest numbers of which no node is known."""
    profile = wanted.profile
    free = (
        number
        for number in count()
        if known.isdisjoint(spot.name for spot in profile.spots(profile.name, number))
    )
    for number in islice(free, wanted.count):
        yield from profile.unit(number)


def _counted(item: str) -> tuple[str, int]:
    name, equals, number = item.rpartition("=")
    if not equals:
        return item, 1
    if not number.isascii() or not number.isdigit():
        raise ProfileError(f"--profile {item!r}: {number!r} is not a count; write NAME=COUNT")
    if not name:
        raise ProfileError(f"--profile {item!r}: which profile? write NAME=COUNT")
    if int(number) == 0:
        raise ProfileError(f"--profile {item!r}: the count must be at least 1")
    return name, int(number)


def _found(name: str) -> Profile:
    if own.is_path(name):
        return own.read_profile(name)
    profile = PROFILES.get(name)
    if profile is not None:
        return profile
    meant = did_you_mean(name, PROFILES, "`drayman profiles`")
    raise ProfileError(
        f"there is no profile {name!r}{meant}, and a file of your own is given by its path"
    )


def _refuse_same_names(wanted: Sequence[Wanted]) -> None:
    """Two files may hold profiles of one name, and their nodes would be the same."""
    seen: set[str] = set()
    for one in wanted:
        if one.profile.name in seen:
            raise ProfileError(
                f"two profiles are called {one.profile.name!r}; rename one in its metadata.name"
            )
        seen.add(one.profile.name)

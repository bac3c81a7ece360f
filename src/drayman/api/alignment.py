"""How close together a user wants devices: ladders of levels, stated in an annotation or in a device configuration.

    metadata:
      annotations:
        drayman.dev/align: "pcieRoot > numaNode > any"

A ladder names levels from near to far; the first that can be reached is wanted. With `any` at its end the ladder is a wish, without it
the last level is required. In front of the ladder may stand the requests it is about, and several such groups are separated by
semicolons: `gpu, nic: pcieRoot > any; gpu, cpu: numaNode`. In a pod's annotation `entry` stands for all requests of a claim and
`entry/request` for one of them.

`numaNode` means that every device has its partners of other kinds on its own NUMA node: each GPU a network card. Devices of a single kind
have no partners, so they all have to be on one. `one numaNode` means that all devices are on one NUMA node, whatever they are.

The same can be configuration of a claim or a class, for the driver `drayman.dev`, which other schedulers and drivers ignore:

    config:
    - requests: [gpu, nic]
      opaque:
        driver: drayman.dev
        parameters: {apiVersion: drayman.dev/v1alpha1, kind: AlignmentPolicy, levels: [pcieRoot, numaNode, any]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from drayman.api.near_names import did_you_mean
from drayman.api.struct import Json

ALIGN: Final = "drayman.dev/align"
"""Annotation of pods and claims: what is wanted."""
ALIGNMENT: Final = "drayman.dev/alignment"
"""Annotation of claims: what was reached. Written with the devices."""
DRIVER: Final = "drayman.dev"
"""The driver that device configuration for this scheduler is addressed to."""
API_VERSION: Final = "drayman.dev/v1alpha1"
KIND: Final = "AlignmentPolicy"

_ONE: Final = "one "
_LONGEST: Final = 1_024
"""Characters of an annotation."""
MOST_GROUPS: Final = 8
"""In one annotation: each is searched for."""
_MOST_KEPT: Final = 1_024


class AlignmentError(ValueError):
    """A ladder, or the statement it is part of, does not make sense. The text does not say where it stands."""


class AlignmentLevel(StrEnum):
    """What devices can have in common."""

    PCIE_ROOT = "pcieRoot"
    NUMA_NODE = "numaNode"
    SOCKET = "socket"
    NVLINK = "nvlink"
    """Of GPUs alone: one NVLink group, or the equivalent of another vendor."""
    ANY = "any"


_NESTED: Final = (AlignmentLevel.PCIE_ROOT, AlignmentLevel.NUMA_NODE, AlignmentLevel.SOCKET)
"""Each lies within the next."""


class Rung(Struct, frozen=True):
    """One step of a ladder."""

    level: AlignmentLevel
    is_one: bool = False
    """Whether all devices are to be in one place, instead of each with its partners."""

    def __str__(self) -> str:
        return f"{_ONE}{self.level}" if self.is_one else str(self.level)

    def implies(self, other: Rung) -> bool:
        """Whether devices that reach this one always reach the other too."""
        if other.level is AlignmentLevel.ANY:
            return True
        if other.is_one and not self.is_one:
            return False
        if self.level in _NESTED and other.level in _NESTED:
            return _NESTED.index(self.level) <= _NESTED.index(other.level)
        return self.level is other.level


class Ladder(Struct, frozen=True):
    """Levels in the order in which they are preferred."""

    rungs: tuple[Rung, ...]

    @property
    def is_required(self) -> bool:
        """Whether devices that reach none of the levels are refused."""
        return self.rungs[-1].level is not AlignmentLevel.ANY

    def score(self, reached: int) -> int:
        """From 100 for the first rung to 0 for the last one of a wish. The last one that is required still counts for something."""
        steps = len(self.rungs) if self.is_required else max(len(self.rungs) - 1, 1)
        return 100 * (steps - min(reached, steps)) // steps

    def __str__(self) -> str:
        return " > ".join(map(str, self.rungs))


class StatedGroup(Struct, frozen=True):
    """Requests that are to be aligned with each other, by name."""

    requests: tuple[str, ...]
    """Empty: all that there are."""
    ladder: Ladder


@lru_cache(maxsize=_MOST_KEPT)
def stated_groups(text: str) -> tuple[StatedGroup, ...]:
    """What an annotation states. Raises AlignmentError."""
    if len(text) > _LONGEST:
        raise AlignmentError(f"may not be longer than {_LONGEST} characters")
    parts = [part.strip() for part in text.split(";")]
    if len(parts) > MOST_GROUPS:
        raise AlignmentError(f"may not have more than {MOST_GROUPS} groups")
    return tuple(_group(part) for part in parts)


def ladder_of(levels: Sequence[str]) -> Ladder:
    """The ladder of these levels. Raises AlignmentError."""
    if not levels:
        raise AlignmentError("names no level")
    rungs: list[Rung] = []
    for text in levels:
        rung = _rung(text)
        for before in rungs:
            if before == rung:
                raise AlignmentError(f"names {rung} twice")
            if rung.implies(before):
                raise AlignmentError(
                    f"has {rung} after {before}: levels go from near to far, so it could never be reached first"
                )
        rungs.append(rung)
    return Ladder(tuple(rungs))


def ladder_of_parameters(parameters: Json) -> Ladder:
    """What the parameters of a configuration for `drayman.dev` state. Raises AlignmentError."""
    if not isinstance(parameters, Mapping):
        raise AlignmentError("is not an object")
    found = f"{parameters.get('apiVersion')}, {parameters.get('kind')}"
    if found != f"{API_VERSION}, {KIND}":
        raise AlignmentError(
            f"must have apiVersion {API_VERSION} and kind {KIND}: the driver {DRIVER} has no other parameters"
        )
    for name in parameters:
        if name not in ("apiVersion", "kind", "levels"):
            raise AlignmentError(f"has an unknown field {name}{did_you_mean(name, ['levels'])}")
    levels = parameters.get("levels")
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        raise AlignmentError("needs `levels`, a list of texts")
    return ladder_of([str(level) for level in levels])


def _group(text: str) -> StatedGroup:
    names, colon, ladder = text.rpartition(":")
    requests = tuple(name.strip() for name in names.split(",")) if colon else ()
    if "" in requests:
        raise AlignmentError(f"has an empty name before the colon in {text!r}")
    for name in requests:
        if requests.count(name) > 1:
            raise AlignmentError(f"names {name} twice in {text!r}")
    return StatedGroup(requests, ladder_of(ladder.split(">") if ladder.strip() else ()))


def _rung(text: str) -> Rung:
    name = " ".join(text.split())
    is_one = name.startswith(_ONE)
    try:
        level = AlignmentLevel(name.removeprefix(_ONE))
    except ValueError:
        known = [level.value for level in AlignmentLevel]
        raise AlignmentError(
            f"has {name!r}, which is not a level: there are {', '.join(known)}{did_you_mean(name, known)}"
        ) from None
    if is_one and level is AlignmentLevel.ANY:
        raise AlignmentError("has 'one any', which means nothing")
    # A fabric joins GPUs only, so there are no partners, and one is always meant.
    return Rung(level, is_one and level is not AlignmentLevel.NVLINK)

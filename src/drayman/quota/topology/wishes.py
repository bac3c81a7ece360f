"""What a pod set asks of a topology, with the levels as positions, or why that makes no sense.

Pods can be asked to be in one domain of a level (`required`), to be so if possible (`preferred`), or anywhere (`unconstrained`). Apart from
that they can come in slices: so many pods of each slice are in one domain of the slice's level. Slices nest, up to three layers deep. A
pod set without slices is one of slices of a single pod at the lowest level, so that there is only one case from here on.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from msgspec import Struct

from drayman.api.kueue_workload import SliceConstraint, TopologyRequest

MOST_LAYERS: Final = 3
"""Of slices within slices."""


class Mode(Enum):
    """How strictly pods keep together."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCONSTRAINED = "unconstrained"


class Layer(Struct, frozen=True):
    """Slices of so many pods, each in one domain of a level."""

    level: int
    size: int


class Wish(Struct, frozen=True):
    """What is asked of a topology."""

    mode: Mode
    level: int
    """Where the search for domains begins."""
    layers: tuple[Layer, ...]
    """From the outermost inwards; at least one."""

    @property
    def slices(self) -> Layer:
        """The outermost layer: what is placed as a whole."""
        return self.layers[0]

    def grain(self, level: int) -> int:
        """How many pods one unit has in which the room of a domain of this level is counted.

        It is the size of the outermost layer down to its level, then that of the layer below down to its level, and so on.
        """
        return next((layer.size for layer in self.layers if level <= layer.level), 1)


class Senseless(Struct, frozen=True):
    """A request that no topology with these levels could ever meet."""

    message: str


def wish_of(request: TopologyRequest | None, levels: Sequence[str], count: int) -> Wish | Senseless:
    """What a pod set of so many pods asks for. Without a request, as in a queue of which all flavors have topologies: anything."""
    asked = TopologyRequest(unconstrained=True) if request is None else request
    named = [
        key
        for key in (
            asked.required,
            asked.preferred,
            *(each.topology for each in _constraints(asked)),
        )
        if key is not None
    ]
    unknown = [key for key in named if key not in levels]
    if unknown:
        return Senseless(f"no level is called {unknown[0]!r}; the topology has {', '.join(levels)}")
    flaw = _flaw_of_slices(asked)
    if flaw:
        return Senseless(flaw)
    layers = tuple(
        Layer(list(levels).index(each.topology), each.size) for each in _constraints(asked)
    )
    mode, level = _main_level(asked, levels, has_slices=bool(layers))
    if not layers:
        return Wish(mode, level, (Layer(len(levels) - 1, 1),))
    flaw = _flaw_of_layers(layers, levels, level, count)
    return Senseless(flaw) if flaw else Wish(mode, level, layers)


def _main_level(
    asked: TopologyRequest, levels: Sequence[str], *, has_slices: bool
) -> tuple[Mode, int]:
    if asked.required is not None:
        return Mode.REQUIRED, list(levels).index(asked.required)
    if asked.preferred is not None:
        return Mode.PREFERRED, list(levels).index(asked.preferred)
    # Slices say by themselves what has to be together. Beyond that they may be anywhere.
    return Mode.UNCONSTRAINED, 0 if has_slices else len(levels) - 1


def _constraints(asked: TopologyRequest) -> tuple[SliceConstraint, ...]:
    if asked.podset_slice_required_topology_constraints:
        return asked.podset_slice_required_topology_constraints
    if asked.pod_set_slice_required_topology is None:
        return ()
    return (
        SliceConstraint(
            topology=asked.pod_set_slice_required_topology, size=asked.pod_set_slice_size or 0
        ),
    )


def _flaw_of_slices(asked: TopologyRequest) -> str:
    if asked.podset_slice_required_topology_constraints:
        if asked.pod_set_slice_required_topology is not None:
            return "slices are given twice: as one level with a size, and as a list of constraints"
        if len(asked.podset_slice_required_topology_constraints) > MOST_LAYERS:
            return f"slices have more than {MOST_LAYERS} layers"
    elif asked.pod_set_slice_required_topology is None:
        if asked.pod_set_slice_size is not None:
            return "slices have a size, but no level"
    elif asked.pod_set_slice_size is None:
        return "slices have a level, but no size"
    if any(each.size < 1 for each in _constraints(asked)):
        return "the size of a slice must be at least 1"
    return ""


def _flaw_of_layers(layers: Sequence[Layer], levels: Sequence[str], main: int, count: int) -> str:
    outer = layers[0]
    if outer.level < main:
        return (
            f"slices at level {levels[outer.level]!r} are wider than the level"
            f" {levels[main]!r} that the pods are in"
        )
    if count % outer.size:
        return f"{count} pods cannot be divided into slices of {outer.size}"
    for wide, narrow in pairwise(layers):
        if narrow.level <= wide.level:
            return (
                f"slices at level {levels[narrow.level]!r} are not below those of"
                f" level {levels[wide.level]!r} that they are part of"
            )
        if wide.size % narrow.size:
            return f"slices of {wide.size} pods cannot be divided into slices of {narrow.size}"
    return ""

"""What makes the devices of one node better than those of another, in words for people.

`allocator.policies.objective` has the rules and their order. The names here are those of `-o json`; titles and meanings are printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from drayman.allocator import Quality


class Criterion(Struct, frozen=True):
    """Something that is counted. Less is better."""

    name: str
    title: str
    meaning: str


ALTERNATIVE: Final = Criterion(
    "alternative", "choice", "which alternative of a firstAvailable list it gets; 0 is the first"
)
STATED: Final = Criterion(
    "alignment", "alignment", "how far below the first of the levels that it asks for"
)
_OF_COST: Final[Mapping[str, Criterion]] = {
    "fabrics": Criterion(
        "nvlinkGroups", "NVLink", "how many NVLink groups its GPUs are spread over"
    ),
    "far": Criterion(
        "farPairs",
        "far pairs",
        "pairs of different devices, such as GPU and network card, on different NUMA nodes",
    ),
    "near": Criterion(
        "nearPairs", "near pairs", "such pairs on one NUMA node, but at different PCIe roots"
    ),
    "numa_nodes": Criterion("numaNodes", "NUMA nodes", "how many its devices are spread over"),
    "roots": Criterion("pcieRoots", "PCIe roots", "how many its devices are spread over"),
    "spoiled": Criterion(
        "lostParts", "lost parts", "free partitions that could no longer be allocated"
    ),
    "opened": Criterion(
        "newlyShared", "newly shared", "devices of which it would be the first to have a share"
    ),
    "broken_fabrics": Criterion(
        "splitNvlinkGroups", "split NVLink", "NVLink groups with some GPUs taken and some left"
    ),
    "broken_numa_nodes": Criterion(
        "splitNumaNodes", "split NUMA", "NUMA nodes with some devices taken and some left"
    ),
    "broken_roots": Criterion(
        "splitPcieRoots", "split roots", "PCIe roots with some devices taken and some left"
    ),
}
_FOR_OTHERS: Final = frozenset(tuple(_OF_COST)[list(_OF_COST).index("spoiled") :])
LOST: Final = Criterion(
    "lostToOthers",
    "lost to others",
    "thousandths of a device that the mean pod with devices could no longer use there",
)
LEFT: Final = Criterion(
    "left",
    "left",
    "thousandths of devices that stay free: a node in use comes before an unused one",
)
CRITERIA: Final = {
    each.name: each for each in (ALTERNATIVE, STATED, *_OF_COST.values(), LOST, LEFT)
}


def quality_numbers(key: tuple[object, ...], lost: int, left: int) -> dict[str, int]:
    """What was counted for the devices of a node, by name, in the order in which it is compared: what matters to the pod itself, what later
    pods lose, what else matters to them, and what is left. Nothing for a pod without devices."""
    own: dict[str, int] = {}
    of_others: dict[str, int] = {}
    for part in key:
        if isinstance(part, Quality):
            if part.alternatives:
                own[ALTERNATIVE.name] = sum(part.alternatives)
            if part.cost.rungs:
                own[STATED.name] = sum(part.cost.rungs)
            costs = part.cost._asdict()
            for field, each in _OF_COST.items():
                numbers = of_others if field in _FOR_OTHERS else own
                numbers[each.name] = costs[field]
    return {**own, LOST.name: lost, **of_others, LEFT.name: left} if key else {}

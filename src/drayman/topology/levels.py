"""The levels of a cluster: which node labels and device attributes say where a node is, from wide to fine.

Every cloud, fabric and labeller has names of its own for the same few things. The table below maps them to a few kinds: the region, the
zone, the block (a group of racks, or a farther switch), the rack (or the closest switch), the NVLink domain, the TPU slice and the host.

Where a fabric publishes its place as an attribute of devices instead of a label of nodes, the attribute is a level just the same: a node
has the value that its devices state, if they agree (`stated`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

HOSTNAME: Final = "kubernetes.io/hostname"
_ATTRIBUTES: Final = "dra.net"  # DRANET's, and those it has for each cloud
_TPU: Final = "cloud.google.com/gke-tpu-topology"


class LevelKind(IntEnum):
    """What a level is, from near to far."""

    HOST = 0
    TPU_SLICE = 1
    NVLINK_DOMAIN = 2
    RACK = 3
    BLOCK = 4
    ZONE = 5
    REGION = 6

    @property
    def title(self) -> str:
        """As it is said in a sentence."""
        return _TITLES[self]


_TITLES: Final = {
    LevelKind.HOST: "host",
    LevelKind.TPU_SLICE: "TPU slice",
    LevelKind.NVLINK_DOMAIN: "NVLink domain",
    LevelKind.RACK: "rack",
    LevelKind.BLOCK: "block",
    LevelKind.ZONE: "zone",
    LevelKind.REGION: "region",
}


class Level(Struct, frozen=True):
    """A way to divide nodes: those with the same value are together there."""

    key: str
    """The name of a node label or of a device attribute."""
    title: str
    """What a place of this level is called."""
    kind: LevelKind | None = None
    """None for a key that is not in the table."""
    only_with: str = ""
    """A label that a node must have as well for the key to mean this."""

    @property
    def source(self) -> str:
        """What usually has a value for it: a label, or an attribute of devices."""
        return "attribute" if self.key.partition("/")[0].endswith(_ATTRIBUTES) else "label"


class Place(Struct, frozen=True):
    """One place that a node belongs to: nodes with an equal one are together there."""

    kind: LevelKind
    label: str
    value: str


def _levels(kind: LevelKind, *keys: str) -> tuple[Level, ...]:
    return tuple(Level(key, kind.title, kind) for key in keys)


_LAYERS: Final = tuple(f"topology.k8s.aws/network-node-layer-{n}" for n in range(1, 10))
_TIERS: Final = tuple(f"fabric.topograph.run/tier-{n}" for n in range(10))

KNOWN: Final = (
    *_levels(LevelKind.REGION, "topology.kubernetes.io/region"),
    *_levels(LevelKind.ZONE, "topology.kubernetes.io/zone", "topology.k8s.aws/zone-id"),
    *_levels(LevelKind.BLOCK, "network.topology.nvidia.com/datacenter"),
    # Topograph counts its tiers from the node, Amazon its layers from the top.
    *_levels(LevelKind.BLOCK, *reversed(_TIERS[1:])),
    *_levels(LevelKind.BLOCK, "network.topology.nvidia.com/core"),
    *_levels(LevelKind.BLOCK, "oke.dra.net/hpcIslandId", "oke.dra.net/networkBlockId"),
    *_levels(LevelKind.BLOCK, "oke.dra.net/localBlockId", "azure.dra.net/placementGroupId"),
    *_levels(LevelKind.BLOCK, *_LAYERS[:2]),
    *_levels(LevelKind.BLOCK, "cloud.google.com/gce-topology-block", "gce.dra.net/block"),
    *_levels(LevelKind.BLOCK, "network.topology.nvidia.com/spine"),
    *_levels(LevelKind.BLOCK, "network.topology.nvidia.com/block"),
    *_levels(LevelKind.RACK, *_LAYERS[2:]),
    *_levels(LevelKind.RACK, "network.topology.nvidia.com/leaf", _TIERS[0]),
    *_levels(LevelKind.RACK, "azure.dra.net/interconnectGroupId"),
    *_levels(LevelKind.RACK, "azure.dra.net/interconnectSubgroupId"),
    *_levels(LevelKind.RACK, "cloud.google.com/gce-topology-subblock", "gce.dra.net/subBlock"),
    *_levels(LevelKind.RACK, "topology.kubernetes.io/rack", "oke.dra.net/rackId"),
    *_levels(LevelKind.NVLINK_DOMAIN, "accelerator.topograph.run/domain"),
    *_levels(LevelKind.NVLINK_DOMAIN, "network.topology.nvidia.com/accelerator"),
    *_levels(LevelKind.NVLINK_DOMAIN, "topology.k8s.aws/ultraserver-id"),
    *_levels(LevelKind.NVLINK_DOMAIN, "ds.coreweave.com/nvlink.domain"),
    *_levels(LevelKind.NVLINK_DOMAIN, "oke.dra.net/gpuMemoryFabricId"),
    *_levels(LevelKind.NVLINK_DOMAIN, "nvidia.com/gpu.clique"),
    *_levels(LevelKind.NVLINK_DOMAIN, "accelerator.topograph.run/sub-domain"),
    # A TPU slice of several hosts is one node pool; other node pools are not a place.
    Level("cloud.google.com/gke-nodepool", LevelKind.TPU_SLICE.title, LevelKind.TPU_SLICE, _TPU),
    *_levels(LevelKind.HOST, "cloud.google.com/gce-topology-host", "gce.dra.net/host", HOSTNAME),
)
"""Every key that is recognised, from wide to fine."""

KNOWN_KEYS: Final[Mapping[str, Level]] = {level.key: level for level in KNOWN}
_NEAR_TO_FAR: Final = tuple(reversed(KNOWN))


def places(labels: Mapping[str, str]) -> tuple[Place, ...]:
    """The places that a node's labels name, from near to far. An empty label names nothing."""
    return tuple(
        Place(level.kind, level.key, labels[level.key])
        for level in _NEAR_TO_FAR
        if level.kind is not None
        and labels.get(level.key)
        and (not level.only_with or level.only_with in labels)
    )


def level_of(key: str, title: str = "") -> Level:
    """The level that a label or attribute names, in the table or not. Where it is asked for by its key, only its own value counts."""
    known = KNOWN_KEYS.get(key)
    if known is None:
        return Level(key, title or key.rpartition("/")[2] or key)
    return Level(key, title or known.title, known.kind)

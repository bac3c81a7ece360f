"""Where a node is in the cluster: the levels that its labels name, from near to far.

Every cloud and every labeller has names of its own for the same few things. The table below maps them to four: the NVLink
domain, the rack (or the closest switch), the block (a group of racks, or a farther switch) and the zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct


class LevelKind(IntEnum):
    """What a level is, from near to far."""

    HOST = 0
    NVLINK_DOMAIN = 1
    RACK = 2
    BLOCK = 3
    ZONE = 4
    REGION = 5


class Level(Struct, frozen=True):
    """One place a node belongs to: nodes with an equal level are together there."""

    kind: LevelKind
    label: str
    value: str


LABELS: Final = (
    ("kubernetes.io/hostname", LevelKind.HOST),
    ("nvidia.com/gpu.clique", LevelKind.NVLINK_DOMAIN),
    ("ds.coreweave.com/nvlink.domain", LevelKind.NVLINK_DOMAIN),
    ("topology.k8s.aws/ultraserver-id", LevelKind.NVLINK_DOMAIN),
    ("network.topology.nvidia.com/accelerator", LevelKind.NVLINK_DOMAIN),
    ("accelerator.topograph.run/sub-domain", LevelKind.NVLINK_DOMAIN),
    ("accelerator.topograph.run/domain", LevelKind.NVLINK_DOMAIN),
    ("topology.kubernetes.io/rack", LevelKind.RACK),
    ("cloud.google.com/gce-topology-subblock", LevelKind.RACK),
    ("fabric.topograph.run/tier-0", LevelKind.RACK),
    ("network.topology.nvidia.com/leaf", LevelKind.RACK),
    # Amazon counts its network layers from the top; the last one that is there is the closest.
    ("topology.k8s.aws/network-node-layer-4", LevelKind.RACK),
    ("topology.k8s.aws/network-node-layer-3", LevelKind.RACK),
    ("fabric.topograph.run/tier-1", LevelKind.BLOCK),
    ("network.topology.nvidia.com/block", LevelKind.BLOCK),
    ("network.topology.nvidia.com/spine", LevelKind.BLOCK),
    ("cloud.google.com/gce-topology-block", LevelKind.BLOCK),
    ("topology.k8s.aws/network-node-layer-2", LevelKind.BLOCK),
    ("fabric.topograph.run/tier-2", LevelKind.BLOCK),
    ("network.topology.nvidia.com/core", LevelKind.BLOCK),
    ("topology.k8s.aws/network-node-layer-1", LevelKind.BLOCK),
    ("topology.kubernetes.io/zone", LevelKind.ZONE),
    ("topology.kubernetes.io/region", LevelKind.REGION),
)
"""Every label that is read, from near to far."""


def levels(labels: Mapping[str, str]) -> tuple[Level, ...]:
    """The levels that a node's labels name, from near to far. An empty label names nothing."""
    return tuple(Level(kind, label, labels[label]) for label, kind in LABELS if labels.get(label))

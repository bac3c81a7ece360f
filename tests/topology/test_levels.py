"""Levels of the cluster that node labels name."""

from __future__ import annotations

from drayman.topology import LevelKind, levels

RACK = {
    "kubernetes.io/hostname": "n1",
    "nvidia.com/gpu.clique": "c0ffee.7",
    "topology.kubernetes.io/rack": "r1",
    "topology.kubernetes.io/zone": "z",
    "unrelated": "label",
}


def test_levels_come_from_near_to_far() -> None:
    """Known labels become levels in order, whatever the order of the labels; others are left out."""
    found = levels(dict(reversed(RACK.items())))
    assert [level.kind for level in found] == [
        LevelKind.HOST,
        LevelKind.NVLINK_DOMAIN,
        LevelKind.RACK,
        LevelKind.ZONE,
    ]
    assert [level.value for level in found] == ["n1", "c0ffee.7", "r1", "z"]


def test_equal_values_of_different_labels_are_different_places() -> None:
    """A block and a rack that happen to have one name are not the same place."""
    one = {"topology.kubernetes.io/rack": "7"}
    other = {"cloud.google.com/gce-topology-block": "7"}
    assert levels(one) != levels(other)


def test_nothing_is_known_of_unlabelled_nodes() -> None:
    """No labels, or empty ones, give no levels."""
    assert levels({}) == levels({"topology.kubernetes.io/zone": ""}) == ()

"""Levels of the cluster that node labels name."""

from __future__ import annotations

from drayman.topology import LevelKind, closest_common, levels

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


def test_closest_common_level_is_the_nearest_one_shared() -> None:
    """Two nodes of one rack but different NVLink domains meet in the rack."""
    other = {**RACK, "kubernetes.io/hostname": "n2", "nvidia.com/gpu.clique": "c0ffee.8"}
    common = closest_common(RACK, other)
    assert common is not None
    assert (common.kind, common.value) == (LevelKind.RACK, "r1")


def test_equal_values_of_different_labels_are_different_places() -> None:
    """A block and a rack that happen to have one name are not the same place."""
    one = {"topology.kubernetes.io/rack": "7"}
    other = {"cloud.google.com/gce-topology-block": "7"}
    assert closest_common(one, other) is None


def test_nothing_is_known_of_unlabelled_nodes() -> None:
    """No labels, or empty ones, give no levels and nothing in common."""
    assert levels({"topology.kubernetes.io/zone": ""}) == ()
    assert closest_common({}, RACK) is None

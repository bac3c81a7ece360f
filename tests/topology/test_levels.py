"""Levels of the cluster that node labels name."""

from __future__ import annotations

import pytest

from drayman.topology import LevelKind, level_of, places

RACK = {
    "kubernetes.io/hostname": "n1",
    "nvidia.com/gpu.clique": "c0ffee.7",
    "topology.kubernetes.io/rack": "r1",
    "topology.kubernetes.io/zone": "z",
    "unrelated": "label",
}


def test_places_come_from_near_to_far() -> None:
    """Known labels become places in order, whatever the order of the labels; others are left out."""
    found = places(dict(reversed(RACK.items())))
    assert [place.kind for place in found] == [
        LevelKind.HOST,
        LevelKind.NVLINK_DOMAIN,
        LevelKind.RACK,
        LevelKind.ZONE,
    ]
    assert [place.value for place in found] == ["n1", "c0ffee.7", "r1", "z"]


def test_equal_values_of_different_labels_are_different_places() -> None:
    """A block and a rack that happen to have one name are not the same place."""
    one = {"topology.kubernetes.io/rack": "7"}
    other = {"cloud.google.com/gce-topology-block": "7"}
    assert places(one) != places(other)


def test_nothing_is_known_of_unlabelled_nodes() -> None:
    """No labels, or empty ones, name no places."""
    assert places({}) == places({"topology.kubernetes.io/zone": ""}) == ()


FABRICS = {
    "Topograph 1.x, tiers from the node": (
        [
            "fabric.topograph.run/tier-0",
            "fabric.topograph.run/tier-1",
            "fabric.topograph.run/tier-2",
        ],
        ["rack", "block", "block"],
    ),
    "Amazon, layers from the top": (
        [f"topology.k8s.aws/network-node-layer-{layer}" for layer in (4, 3, 2, 1)],
        ["rack", "rack", "block", "block"],
    ),
    "Google, dense reservations": (
        [f"cloud.google.com/gce-topology-{name}" for name in ("host", "subblock", "block")],
        ["host", "rack", "block"],
    ),
    "Topograph 0.x": (
        [
            f"network.topology.nvidia.com/{name}"
            for name in ("accelerator", "leaf", "spine", "core")
        ],
        ["NVLink domain", "rack", "block", "block"],
    ),
}


@pytest.mark.parametrize("name", FABRICS)
def test_known_fabrics(name: str) -> None:
    """Each fabric's own names, from near to far."""
    keys, titles = FABRICS[name]
    found = places(dict.fromkeys(sorted(keys), "v"))
    assert [(place.label, place.kind.title) for place in found] == list(
        zip(keys, titles, strict=True)
    )


def test_a_node_pool_is_a_place_only_for_tpus() -> None:
    """A TPU slice of several hosts is one node pool. By its own name, any pool can be asked for."""
    pool = {"cloud.google.com/gke-nodepool": "p"}
    assert places(pool) == ()
    assert [p.kind for p in places({**pool, "cloud.google.com/gke-tpu-topology": "4x4"})] == [
        LevelKind.TPU_SLICE
    ]
    assert not level_of("cloud.google.com/gke-nodepool").only_with


def test_keys_that_are_not_known_have_a_title_too() -> None:
    """It is the last part of the key, unless another one is given."""
    assert level_of("example.com/row").title == "row"
    assert level_of("example.com/row", "aisle").title == "aisle"

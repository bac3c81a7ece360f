"""How far apart two devices are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.topology import Distance, Link, Locality
from drayman.topology.distance import link

GPU = Locality("pci0000:15", 0, "0000:1b:00.0", nvlinks=18)

CASES = {
    "a device and itself": (GPU, GPU, "X"),
    "two partitions of one GPU": (
        Locality("pci0000:15", 0, "0000:1b:00.0"),
        Locality("pci0000:15", 0, "0000:1b:00.0"),
        "X",
    ),
    "GPUs of different NVLink groups": (
        Locality("pci0000:15", 0, "0000:1b:00.0", nvlinks=18, fabric="left"),
        Locality("pci0000:97", 1, "0000:9d:00.0", nvlinks=18, fabric="right"),
        "SYS",
    ),
    "two GPUs on NVLink": (GPU, Locality("pci0000:97", 1, "0000:9d:00.0", nvlinks=18), "NV18"),
    "unequal NVLinks count the fewer": (
        GPU,
        Locality("pci0000:97", 1, "0000:9d:00.0", nvlinks=12),
        "NV12",
    ),
    "a GPU on NVLink and a NIC": (GPU, Locality("pci0000:15", 0, "0000:18:00.0"), "PXB"),
    "two ports of one card": (
        Locality("pci0000:15", 0, "0000:18:00.0"),
        Locality("pci0000:15", 0, "0000:18:00.1"),
        "PIX",
    ),
    "one root, one device on the root bus": (
        Locality("pci0000:00", 0, "0000:00:06.0"),
        Locality("pci0000:00", 0, "0000:03:00.0"),
        "PHB",
    ),
    "one root, no bus known": (Locality("pci0000:15", 0), Locality("pci0000:15", 0), "PXB"),
    "one root wins over contradicting NUMA nodes": (
        Locality("pci0000:15", 0),
        Locality("pci0000:15", 1),
        "PXB",
    ),
    "other roots of one NUMA node": (
        Locality("pci0000:15", 0),
        Locality("pci0000:37", 0),
        "NODE",
    ),
    "one NUMA node, a root unknown": (Locality("pci0000:15", 0), Locality(None, 0), "NODE"),
    "two NUMA nodes": (Locality("pci0000:15", 0), Locality("pci0000:97", 1), "SYS"),
    "other roots, a NUMA node unknown": (
        Locality("pci0000:15", 0),
        Locality("pci0000:37", None),
        "?",
    ),
    "nothing known": (Locality(), Locality(), "?"),
    "same bus number in two PCI domains": (
        Locality("pci0008:00", 0, "0008:06:00.0"),
        Locality("pci0009:00", 0, "0009:06:00.0"),
        "NODE",
    ),
}


@pytest.mark.parametrize(("one", "other", "code"), CASES.values(), ids=CASES)
def test_link_gives_the_code_of_nvidia_smi(one: Locality, other: Locality, code: str) -> None:
    """The code is what the attributes prove, and `?` where they prove nothing."""
    assert link(one, other).code == code


localities = st.builds(
    Locality,
    pcie_root=st.sampled_from([None, "pci0000:15", "pci0000:37"]),
    numa=st.sampled_from([None, 0, 1]),
    bus_id=st.sampled_from([None, "0000:15:01.0", "0000:18:00.0", "0000:18:00.1", "0000:40:00.0"]),
    nvlinks=st.sampled_from([None, 12, 18]),
)


@given(localities, localities)
def test_links_are_symmetric(one: Locality, other: Locality) -> None:
    """It is as far there as back."""
    assert link(one, other) == link(other, one)


@given(localities, localities)
def test_learning_more_never_loosens_a_known_distance_to_unknown(
    one: Locality, other: Locality
) -> None:
    """With root and NUMA node of both known, the distance is known."""
    known = all(place.numa is not None and place.pcie_root is not None for place in (one, other))
    if known:
        assert link(one, other).distance is not Distance.UNKNOWN


def test_distances_are_ordered_from_near_to_far() -> None:
    """Unknown counts as farther than anything known, so that no policy prefers it."""
    codes = [Link(distance, 4).code for distance in sorted(Distance)]
    assert codes == ["X", "NV4", "PIX", "PXB", "PHB", "NODE", "SYS", "?"]
    assert all(Link(distance).meaning for distance in Distance)

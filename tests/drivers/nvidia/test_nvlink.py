"""What the NVIDIA driver says about NVLink, and what others make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.drivers.describing import Slot
from drayman.drivers.nvidia import devices
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.nvidia.discovery import clique, discover
from drayman.drivers.nvidia.nvlink import SWITCH, Linked, joined
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles.nvidia_products import H100_SXM
from drayman.testing import FakeGpu, FakeMachine, FakeNvml
from drayman.testing.nvml import FakeLink
from drayman.topology import locality
from drayman.topology.distance import link

SXM = H100_SXM.product
CARD = "NVIDIA H100 PCIe"
UP, DOWN = FakeLink(), None


def bus(number: int) -> str:
    return f"0000:{number:02x}:00.0"


def to(number: int) -> FakeLink:
    return FakeLink(0, bus(number))


def unknown() -> FakeLink:
    return FakeLink(255)


def machine(product: str, links: Sequence[tuple[FakeLink | None, ...] | None]) -> FakeNvml:
    model = replace(H100_SXM, product=product)
    return FakeNvml(
        FakeGpu(
            Gpu(model, index, f"GPU-{index}", Slot(bus(index), f"pci{index:04x}:00", 0)),
            links=each,
        )
        for index, each in enumerate(links)
    )


def gpus_of(fake: FakeNvml, root: FakeMachine) -> list[Gpu]:
    return [each.gpu for each in discover(Nvml(fake), root.root)]


def codes(fake: FakeNvml, root: FakeMachine) -> str:
    """Each GPU beside each later one, as the attributes have it."""
    gpus = [devices.whole(gpu) for gpu in gpus_of(fake, root)]
    places = [locality(devices.DRIVER, each) for each in gpus]
    pairs = [(i, j) for i in range(len(places)) for j in range(i + 1, len(places))]
    return " ".join(link(places[i], places[j]).code for i, j in pairs)


CASES = {
    "a board with switches": (SXM, [(UP,) * 18] * 3, "NV18 NV18 NV18", False),
    "nothing is told": (SXM, [(), ()], "NV18", False),
    "what is at the other end is not told": (SXM, [(unknown(),) * 18] * 2, "NV18", False),
    "one GPU alone": (SXM, [(DOWN,) * 18], "", False),
    "cards without bridges": (CARD, [(), ()], "?", False),
    "a link is down": (SXM, [(UP,) * 17 + (DOWN,), (UP,) * 18], "NV17", True),
    "all links of one are down": (SXM, [(UP,) * 18, (UP,) * 18, (DOWN,) * 18], "NV18 ? ?", True),
    "no links in a virtual machine": (SXM, [(DOWN,) * 18] * 2, "?", True),
    "cards bridged in pairs": (
        CARD,
        [(to(1),) * 12, (to(0),) * 12, (to(3),) * 12, (to(2),) * 12],
        "NV12 ? ? ? ? NV12",
        True,
    ),
    "four GPUs without switches": (
        SXM,
        [
            tuple(to(other) for other in range(4) if other != own for _ in range(6))
            for own in range(4)
        ],
        "NV6 NV6 NV6 NV6 NV6 NV6",
        True,
    ),
    "a peer that the machine does not have": (CARD, [(to(9),), (to(9),)], "?", False),
}


@pytest.mark.parametrize(
    ("product", "links", "shown", "is_said"), list(CASES.values()), ids=list(CASES)
)
def test_links_are_as_nvml_has_them(
    product: str,
    links: Sequence[tuple[FakeLink | None, ...]],
    shown: str,
    is_said: bool,
    machine_root: FakeMachine,
) -> None:
    """Attributes are added only where the product would say something else."""
    fake = machine(product, links)
    assert codes(fake, machine_root) == shown
    assert any(gpu.nvlink for gpu in gpus_of(fake, machine_root)) is is_said


@given(
    st.lists(
        st.dictionaries(st.sampled_from([SWITCH, *map(bus, range(5))]), st.integers(1, 18)),
        max_size=5,
    )
)
def test_groups_divide_the_gpus(links: list[dict[str, int]]) -> None:
    """Every GPU is in one group, the same for all of its members, and has links exactly if it is not alone."""
    gpus = [Linked(f"gpu-{n}", CARD, bus(n), symmetric(links, n)) for n in range(len(links))]
    found = joined(gpus)
    assert sorted(found) == [each.name for each in gpus]
    for name, each in found.items():
        assert name in each.group
        assert all(found[other].group == each.group for other in each.group)
        assert bool(each.links) is (len(each.group) > 1)


def symmetric(links: list[dict[str, int]], own: int) -> dict[str, int]:
    """A link has two ends."""
    back = {bus(n): each.get(bus(own), 0) for n, each in enumerate(links) if n < own}
    kept = {
        name: many for name, many in links[own].items() if name not in back and name != bus(own)
    }
    return kept | {name: many for name, many in back.items() if many}


def test_partitions_say_nothing_of_links(machine_root: FakeMachine) -> None:
    """They have none."""
    fake = machine(SXM, [(UP,) * 17, (UP,) * 17])
    for device in devices.dividable(gpus_of(fake, machine_root)).devices:
        is_whole = device.name in ("gpu-0", "gpu-1")
        assert ("drayman.dev/nvlinks" in device.attributes) is is_whole


def test_a_machine_is_in_the_clique_of_its_gpus(machine_root: FakeMachine) -> None:
    """If all of them are in one: cluster and number. Others are in none, or are not registered yet."""
    fake = machine(SXM, [(UP,) * 18] * 2)
    cluster, nothing = bytes(range(16)), bytes(16)
    cliques = {
        (None, None): None,
        ((cluster, 7), None): None,
        ((cluster, 7), (cluster, 7)): "00010203-0405-0607-0809-0a0b0c0d0e0f.7",
        ((cluster, 7), (cluster, 8)): None,
        ((nothing, 7), (nothing, 7)): None,
    }
    for said, wanted in cliques.items():
        for gpu, each in zip(fake.gpus, said, strict=True):
            gpu.clique = each
        assert clique(discover(Nvml(fake), machine_root.root)) == wanted
    assert clique([]) is None


@pytest.fixture
def machine_root(tmp_path_factory: pytest.TempPathFactory) -> FakeMachine:
    return FakeMachine(tmp_path_factory.mktemp("root"))

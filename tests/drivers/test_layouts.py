"""GPUs and network cards of simulated machines: how close together they can be had, and how many at once."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.allocator import Plan, Refusal, search
from drayman.api.alignment import ALIGN
from drayman.api.codec import convert
from drayman.api.resource import ResourceClaim
from drayman.drivers.profiles.choosing import PROFILES
from drayman.inventory import Features, Inventory, Ledger
from oracle.build import exactly

SOFT = "pcieRoot > numaNode > any"


class Machine:
    """One simulated node, and what was taken from it."""

    def __init__(self, profile: str) -> None:
        made = PROFILES[profile].unit(0)[0]
        self._node = made.node
        self._inventory, self._ledger = Inventory(Features()), Ledger()
        for each in made.classes:
            self._inventory.apply_class(each)
        for item in made.slices:
            self._inventory.apply_slice(item)
        self._gpu = "gpu.amd.com" if profile.startswith("mi") else "gpu.nvidia.com"
        self._number = 0

    def ask(self, gpus: int, nics: int, align: str = SOFT) -> Any:
        self._number += 1
        name = f"c{self._number}"
        requests = [exactly("gpu", gpus, self._gpu)]
        if nics:
            requests.append(exactly("nic", nics, "dranet"))
        metadata = {"name": name, "namespace": "d", "uid": name, "annotations": {ALIGN: align}}
        value = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
        view = self._inventory.view(self._node, self._ledger)
        return search(view, [convert(ResourceClaim, value)])

    def level(self, gpus: int, nics: int, align: str = SOFT) -> str:
        """The level that so many of each reach."""
        plan = self.ask(gpus, nics, align)
        assert isinstance(plan, Plan)
        return plan.levels[0].level

    def take(self, gpus: int, nics: int, align: str = SOFT) -> str:
        """The same, and they are taken."""
        plan = self.ask(gpus, nics, align)
        assert isinstance(plan, Plan)
        self._ledger.commit(plan)
        return plan.levels[0].level


@pytest.mark.parametrize("profile", ["dgx-h100", "dgx-h200", "dgx-b200", "mi300x"])
def test_a_card_beside_each_gpu(profile: str) -> None:
    """Any number of pairs has a root each; half of them fit into one NUMA node, and all GPUs are joined."""
    for number in (1, 2, 4, 8):
        assert Machine(profile).level(number, number) == "pcieRoot"
    assert Machine(profile).level(4, 4, "one numaNode > any") == "one numaNode"
    assert Machine(profile).level(5, 5, "one numaNode > numaNode") == "numaNode"
    assert Machine(profile).level(8, 0, "nvlink") == "nvlink"
    machine = Machine(profile)
    assert [machine.take(1, 1) for _ in range(8)] == ["pcieRoot"] * 8


def test_p4d_has_half_as_many_cards() -> None:
    """One card beside two GPUs: four pairs have a root of their own, and so have four pairs of GPUs with a card each."""
    assert Machine("p4d").level(2, 1) == "pcieRoot"
    assert Machine("p4d").level(4, 4) == "pcieRoot"
    assert Machine("p4d").level(8, 4) == "pcieRoot"
    assert Machine("p4d").level(2, 1, "one pcieRoot") == "one pcieRoot"
    machine = Machine("p4d")
    assert [machine.take(1, 1) for _ in range(4)] == ["pcieRoot"] * 4
    assert isinstance(machine.ask(1, 1), Refusal)
    assert machine.take(4, 0, "any") == "any"


def test_gb200_aligns_by_numa_node_alone() -> None:
    """Its GPUs never share a root with a card, so that requiring one is refused for good."""
    for number in (1, 2, 4):
        assert Machine("gb200-nvl72").level(number, number) == "numaNode"
    assert Machine("gb200-nvl72").level(2, 4, "one numaNode > any") == "one numaNode"
    refusal = Machine("gb200-nvl72").ask(1, 1, "pcieRoot")
    assert isinstance(refusal, Refusal)
    assert refusal.kind.value == "never"


@pytest.mark.parametrize(("profile", "half"), [("nd-h100-v5", 4), ("nd-a100-v4", 2)])
def test_azure_hides_the_roots(profile: str, half: int) -> None:
    """Only NUMA nodes align: pairs up to what one of them has stay on it."""
    for number in (1, half, 8):
        assert Machine(profile).level(number, number) == "numaNode"
    assert Machine(profile).level(half, half, "one numaNode") == "one numaNode"
    assert Machine(profile).level(half + 1, half + 1, "one numaNode > any") == "any"

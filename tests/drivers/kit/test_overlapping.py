"""Devices that share hardware are not prepared for two claims at once."""

from __future__ import annotations

import pytest

from drayman.api.quantity import Quantity
from drayman.api.resource import Counter, CounterSet, Device, DeviceCounterConsumption
from drayman.cluster import merge_patch
from drayman.cluster.resources import NAMESPACES
from drayman.drivers.kit import Hardware
from drayman.drivers.kit.overlapping import Overlap, overlap
from drayman.plugins.model import Failed, Ready
from drivers.kit.probing import NAME, NODE, Probe, world


def counters(**amounts: int) -> dict[str, Counter]:
    return {name: Counter(value=Quantity.parse(str(amount))) for name, amount in amounts.items()}


def device(name: str, counter_set: str = "card", **amounts: int) -> Device:
    consumed = DeviceCounterConsumption(counter_set=counter_set, counters=counters(**amounts))
    return Device(name=name, consumes_counters=(consumed,))


CARD = CounterSet(name="card", counters=counters(left=1, right=1, memory=8, fans=0))
WHOLE = device("whole", left=1, right=1, memory=8, fans=0)
LEFT, RIGHT = device("left", left=1, memory=4, fans=0), device("right", right=1, memory=4, fans=0)
LARGE = device("large", right=1, memory=5)
OTHER = device("other", counter_set="gone", left=1)

CASES = {
    "nothing is prepared": ([WHOLE], {}, None),
    "the other half": ([LEFT], {"a": [RIGHT]}, None),
    "a part of what a claim has": ([LEFT], {"a": [WHOLE]}, Overlap("left", ("a",))),
    "what claims have parts of": (
        [WHOLE],
        {"a": [LEFT], "b": [RIGHT]},
        Overlap("whole", ("a", "b")),
    ),
    "of several, those who have what is lacking": (
        [LARGE],
        {"a": [LEFT], "b": [OTHER]},
        Overlap("large", ("a",)),
    ),
    "both halves": ([LEFT, RIGHT], {}, None),
    "a claim with a device and a part of it": ([WHOLE, LEFT], {}, Overlap("left", ())),
    "one more share of what is shared": ([WHOLE], {"a": [WHOLE], "b": [WHOLE]}, None),
    "beside what is shared": ([RIGHT], {"a": [LEFT], "b": [LEFT]}, None),
    "counters that are not there any more": ([OTHER], {"a": [OTHER, WHOLE]}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_overlaps_is_found_by_counters(name: str) -> None:
    """With the claims that have what is lacking."""
    wanted, held, found = CASES[name]
    assert (
        overlap(
            {("pool", each.name): each for each in wanted},
            {uid: {("pool", each.name): each for each in has} for uid, has in held.items()},
            [CARD],
        )
        == found
    )


class Card(Probe):
    """A card that can be had as a whole or in halves."""

    def discover(self) -> Hardware:
        return Hardware(groups=((WHOLE, LEFT, RIGHT),), counters=(CARD,))


async def test_a_part_of_a_device_in_use_is_not_prepared_for_another_claim() -> None:
    """Nor the whole of one in parts, by another instance either; whoever only looks may."""
    async with world() as w:
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await w.cluster.client.patch(NAMESPACES, "default", merge_patch(label))
        whole, half = await w.claim("whole", "whole"), await w.claim("half", "left")
        looking = await w.cluster.allocate(
            "admin", NAME, NODE, {"a": {"device": "right", "adminAccess": True}}
        )
        async with w.plugin(Card(), instance="old"):
            assert isinstance(await w.kubelet.prepare(NAME, whole), Ready)
        await w.kubelet.deregistered(NAME)
        async with w.plugin(Card(), instance="new"):
            refused = "device left overlaps with what is still prepared for claim default/whole"
            assert await w.kubelet.prepare(NAME, half) == Failed(refused)
            assert isinstance(await w.kubelet.prepare(NAME, looking), Ready)
            assert await w.kubelet.unprepare(NAME, whole) is None
            assert isinstance(await w.kubelet.prepare(NAME, half), Ready)
            refused = "device whole overlaps with what is still prepared for claim default/half"
            assert await w.kubelet.prepare(NAME, whole) == Failed(refused)

"""What is held of a node, put together from its parts, is what a look at the node as a whole would find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event, given

from drayman.inventory import NodeView, hardware
from drayman.inventory.usage import Usage, UsageTracker
from oracle.nodes import JsonObject
from oracle.strategies_split import split_problems
from oracle.subject import inventory_of, ledger_of, node_of


@pytest.fixture(autouse=True, scope="module")
def two_pools_are_many() -> Iterator[None]:
    """Pools are grouped by their use as if there were thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "_MANY_POOLS", 2)
        yield


def numbers(usage: Usage) -> dict[str, Any]:
    """Everything in a usage, but for the order of groups and which pools are known to be used alike."""
    found = {name: getattr(usage, name) for name in Usage.__struct_fields__}
    found["capacity_groups"] = set(usage.capacity_groups)
    found["pools_alike"] = None
    return {**found, "paid": usage.paid, "overcommitted": usage.overcommitted}


def view_of(asked: JsonObject) -> NodeView:
    return inventory_of(asked).view(node_of(asked), ledger_of(asked))


@given(asked=split_problems())
def test_parts_add_up_to_the_whole(asked: JsonObject) -> None:
    """Sets, amounts and counters are those that a tracker of the whole hardware reads from the ledger."""
    view = view_of(asked)
    event(f"{len(view.parts)} parts")
    counted = UsageTracker(view.hardware).usage(ledger_of(asked))
    assert numbers(view.usage) == numbers(counted)


@given(asked=split_problems())
def test_pools_said_to_be_used_alike_are_used_alike(asked: JsonObject) -> None:
    """Each pool is in one group, and each group within one that a tracker of the whole hardware knows."""
    view = view_of(asked)
    counted = UsageTracker(view.hardware).usage(ledger_of(asked))
    groups = view.usage.pools_alike
    assert sum(groups) == sum(counted.pools_alike)
    assert all(any(group & ~known == 0 for known in counted.pools_alike) for group in groups)


@given(asked=split_problems())
def test_a_part_has_the_devices_of_its_pools_in_search_order(asked: JsonObject) -> None:
    """Leaving out the devices of the other part, the whole lists the devices of a part as the part does."""
    view = view_of(asked)
    whole = [record.id for record in view.hardware.records]
    for part in view.parts:
        own = [record.id for record in part.hardware.records]
        assert [device for device in whole if device in set(own)] == own
    assert sum(len(part.hardware.records) for part in view.parts) == len(whole)

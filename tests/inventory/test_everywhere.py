"""All devices of a cluster at once, whichever nodes they are for."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.resource import ResourceSlice
from drayman.inventory.inventory import Inventory
from oracle.build import device, label_selector, partitioned, piece

JsonObject = dict[str, Any]


def inventory(*slices: JsonObject) -> Inventory:
    made = Inventory()
    for each in slices:
        made.apply_slice(convert(ResourceSlice, each))
    return made


def names(of: Inventory) -> set[str]:
    return {record.id.device for record in of.everywhere.records}


def test_devices_of_all_nodes_and_of_none_in_particular() -> None:
    """By name, by selector, and for every node; devices with places of their own count too."""
    own = [device("own-0", nodeName="a"), device("own-1", allNodes=True)]
    found = inventory(
        piece(["a0"], pool="a", nodeName="a"),
        piece(["b0"], pool="b", nodeName="b"),
        piece(["f0"], pool="fabric", nodeSelector=label_selector("zone", "x")),
        piece(["e0"], pool="everywhere", allNodes=True),
        piece(own, pool="own", perDeviceNodeSelection=True),
    )
    assert names(found) == {"a0", "b0", "f0", "e0", "own-0", "own-1"}


def test_only_pools_that_are_usable_as_a_whole() -> None:
    """Those of which slices are missing, or contradict each other, have problems instead of devices."""
    found = inventory(
        piece(["old"], pool="p", name="p-1", generation=1),
        piece(["new"], pool="p", name="p-2", generation=2),
        piece(["half"], pool="partial", of=2),
        piece([device("d", spends={"none": {"c": 1}})], pool="wrong"),
    )
    assert names(found) == {"new"}
    assert {pool.id.pool for pool in found.everywhere.problems} == {"partial", "wrong"}


def test_it_changes_with_slices_and_with_nothing_else() -> None:
    """The same object as long as no slice changes, so that what was derived from it is kept."""
    parts = partitioned([device("p", spends={"c": {"m": 1}})], {"c": {"m": 1}})
    found = inventory(piece(["a"], pool="a"), *parts)
    before = found.everywhere
    assert found.everywhere is before
    found.apply_slice(convert(ResourceSlice, piece(["a", "b"], pool="a")))
    assert names(found) == {"a", "b", "p"}
    found.remove_slice(parts[0]["metadata"]["name"])
    assert names(found) == {"a", "b"}

"""Devices that are looked at before a pod wants them look the same as if they had not been."""

from __future__ import annotations

import asyncio
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.scheduler.foresight import Foresight
from oracle.build import device, device_class, piece

FOREVER = float("inf")


class Cluster:
    """A state with node `n0`, and somebody who looks ahead."""

    def __init__(self) -> None:
        self.state = ClusterState(Features(), lambda _: None)
        self.foresight = Foresight(self.state)
        self.state.set_class(convert(DeviceClass, device_class("gpu")))
        self.state.set_node(convert(Node, {"metadata": {"name": "n0"}}))

    def publish(self, *names: str, **fields: Any) -> None:
        made = piece([device(name) for name in names], **fields)
        slice_ = convert(ResourceSlice, made)
        self.state.set_slice(slice_)
        self.foresight.note(slice_)

    def devices(self, node: str = "n0") -> list[str]:
        view = self.state.view(self.state.nodes[node])
        return [record.id.device for record in view.hardware.records]


def test_what_was_foreseen_is_what_is_seen() -> None:
    """The first view of a node finds its devices described."""
    cluster = Cluster()
    cluster.publish("d0", "d1", nodeName="n0")
    cluster.foresight.look(FOREVER)
    kept = cluster.state.inventory.foresee(cluster.state.nodes["n0"].node)
    assert kept is not None
    view = cluster.state.view(cluster.state.nodes["n0"])
    assert view.hardware is kept
    assert [record.id.device for record in kept.records] == ["d0", "d1"]


def test_what_changed_since_is_seen() -> None:
    """A slice that comes after the look is in the next view, with or without another look."""
    for looks_again in (False, True):
        cluster = Cluster()
        cluster.publish("d0", nodeName="n0")
        cluster.foresight.look(FOREVER)
        cluster.publish("d0", "d1", nodeName="n0")
        if looks_again:
            cluster.foresight.look(FOREVER)
        assert cluster.devices() == ["d0", "d1"]


def test_shared_devices_are_seen_too() -> None:
    """Only what is a node's own is looked at ahead; the view has everything."""
    cluster = Cluster()
    cluster.publish("d0", nodeName="n0")
    cluster.publish("d1", pool="shared", allNodes=True)
    cluster.foresight.look(FOREVER)
    assert sorted(cluster.devices()) == ["d0", "d1"]


def test_nodes_that_are_not_there() -> None:
    """They are nobody's business."""
    cluster = Cluster()
    cluster.publish("d0", nodeName="gone")
    cluster.foresight.look(FOREVER)
    assert cluster.devices() == []


async def test_whoever_is_busy_does_not_look() -> None:
    """Once there is nothing else to do, all nodes are looked at."""
    cluster = Cluster()
    cluster.publish("d0", nodeName="n0")
    is_busy, asked = True, asyncio.Event()

    def busy() -> bool:
        asked.set()
        return is_busy

    running = asyncio.create_task(cluster.foresight.run(busy))
    await asked.wait()
    assert not cluster.foresight.is_done
    is_busy = False
    while not cluster.foresight.is_done:
        await asyncio.sleep(0)
    running.cancel()
    assert cluster.devices() == ["d0"]

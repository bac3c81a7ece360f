"""Volumes that pods get together with their node, on a cluster where others complete the bindings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controllers.world import NAMESPACE, POD_VALUES
from drayman.cluster import HttpClient
from drayman.cluster.errors import UnreachableError
from scheduler.behaviour.stage import NODE_VALUES, message_of
from scheduler.behaviour.storage import VOLUME_CLAIM_VALUES, VOLUME_VALUES, Storage, elsewhere

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


async def test_a_volume_is_provisioned_for_the_node(tmp_path: Path) -> None:
    """The claim names the node, the pod waits for its volume, and is bound when it has it. Others do not wait."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.lazy_class("fast")
        await stage.wants("fast")
        await stage.start_user("p", "data")
        assert await stage.selected() == "node-a"
        await stage.start_pod("another")
        await stage.bound("another")
        await stage.keeps_waiting("p")
        await stage.provision(node="node-a")
        assert await stage.bound("p") == "node-a"


async def test_what_a_waiting_pod_was_promised_stays_its_own(tmp_path: Path) -> None:
    """While its volume is made, nobody else gets the room of a pod; a pod that waits for longer is told so by an event."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a", allocatable={"cpu": "1"})
        await stage.lazy_class("fast")
        await stage.wants("fast")
        await stage.start_user("p", "data", requests={"cpu": "1"})
        await stage.selected()
        await stage.start_pod("late", requests={"cpu": "1"})
        await stage.refused("late", "Insufficient cpu")
        told = await stage.event("p", "VolumeBindingPending")
        assert told["note"] == "Volume claim data has yet to get a volume for node node-a."
        await stage.provision()
        await stage.bound("p")


async def test_a_disk_is_reserved_where_it_is(tmp_path: Path) -> None:
    """Of two nodes the one with a disk is chosen, and the claim entered in the disk as the volume controller expects it."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.node("node-b")
        await stage.disks("node-b")
        await stage.wants("local")
        await stage.start_user("p", "data")
        disk = await stage.reserved("disk-node-b")
        claim = await stage.until_volume_claim(lambda _: True)
        assert disk.spec.claim_ref is not None
        assert disk.spec.claim_ref.uid == claim.metadata.uid
        assert (disk.spec.claim_ref.kind, disk.spec.claim_ref.namespace) == (
            "PersistentVolumeClaim",
            NAMESPACE,
        )
        assert disk.metadata.annotations[BOUND_BY_CONTROLLER] == "yes"
        assert not claim.metadata.annotations
        await stage.keeps_waiting("p")
        await stage.complete("disk-node-b")
        assert await stage.bound("p") == "node-b"


async def test_devices_and_disk_are_found_together(tmp_path: Path) -> None:
    """A pod goes to the node that has both; its devices are its own while the disk is bound."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.node("node-b", "gpu-0")
        await stage.node("node-c")
        await stage.disks("node-b", "node-c")
        await stage.make_claim("gpu")
        await stage.wants("local")
        await stage.start_user("p", "data", entries=("gpu",))
        await stage.reserved("disk-node-b")
        await stage.allocated("gpu")
        await stage.complete("disk-node-b")
        assert await stage.bound("p") == "node-b"


async def test_a_disk_that_somebody_takes_away(tmp_path: Path) -> None:
    """A pod that waits for a disk which is given to another claim gets the next one that there is."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.disks("node-a")
        await stage.wants("local")
        await stage.start_user("p", "data")
        await stage.reserved("disk-node-a")
        other = {"namespace": NAMESPACE, "name": "other", "uid": "of-the-other"}
        await stage.patch(VOLUME_VALUES, "disk-node-a", {"spec": {"claimRef": other}})
        await stage.until_pod(
            "p",
            lambda pod: "disk-node-a is no longer meant for volume claim data" in message_of(pod),
        )
        await stage.disk("next", "node-a")
        await stage.reserved("next")
        await stage.complete("next")
        assert await stage.bound("p") == "node-a"


async def test_two_pods_do_not_get_one_disk(tmp_path: Path) -> None:
    """Of two pods with a claim each, one gets the only disk; the other is told that it is taken, and gets the next one."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.disks("node-a")
        for name in ("one", "two"):
            await stage.wants("local", name)
        for name in ("one", "two"):
            await stage.start_user(name, name)
        disk = await stage.reserved("disk-node-a")
        assert disk.spec.claim_ref is not None
        first = disk.spec.claim_ref.name
        (second,) = {"one", "two"} - {first}
        await stage.refused(second, "VolumeLacking", "1 volume of class local, 1 taken")
        await stage.complete("disk-node-a", first)
        assert await stage.bound(first) == "node-a"
        await stage.disk("another", "node-a")
        await stage.reserved("another")
        await stage.complete("another", second)
        assert await stage.bound(second) == "node-a"


async def test_pods_that_share_a_claim_go_together(tmp_path: Path) -> None:
    """The second pod follows the first to the node for which their volume is made, and waits for the same."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.node("node-b")
        await stage.lazy_class("fast")
        await stage.wants("fast", accessModes=["ReadWriteMany"])
        for name in ("one", "two"):
            await stage.start_user(name, "data")
        node = await stage.selected()
        await stage.keeps_waiting("two")
        await stage.provision()
        assert {await stage.bound("one"), await stage.bound("two")} == {node}


async def test_a_class_that_allows_one_zone(tmp_path: Path) -> None:
    """A volume is only provisioned for a node in a place that the class allows."""
    zone = "topology.kubernetes.io/zone"
    allowed = [{"matchLabelExpressions": [{"key": zone, "values": ["b"]}]}]
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a", labels={zone: "a"})
        await stage.lazy_class("fast", allowedTopologies=allowed)
        await stage.wants("fast")
        await stage.start_user("p", "data")
        await stage.refused(
            "p", "VolumeLacking", "class fast does not allow one to be created there"
        )
        await stage.node("node-b", labels={zone: "b"})
        assert await stage.selected() == "node-b"


async def test_a_provisioner_that_turns_it_down(tmp_path: Path) -> None:
    """The pod is told, and gets another node if there is one that will do."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.lazy_class("fast")
        await stage.wants("fast")
        await stage.start_user("p", "data")
        assert await stage.selected() == "node-a"
        await stage.patch(NODE_VALUES, "node-a", {"spec": {"unschedulable": True}})
        await stage.turn_down()
        await stage.until_pod("p", lambda pod: "no volume could be provisioned" in message_of(pod))
        await stage.node("node-b")
        assert await stage.selected() == "node-b"
        await stage.provision(node="node-b")
        assert await stage.bound("p") == "node-b"


async def test_nobody_makes_the_volume_in_time(tmp_path: Path) -> None:
    """The pod is told in its condition and by an event, tried again, and bound when the volume comes after all."""
    async with elsewhere(tmp_path, binding_timeout_s=1.0) as (stage, _):
        await stage.node("node-a")
        await stage.lazy_class("fast")
        await stage.wants("fast")
        await stage.start_user("p", "data")
        text = "volume binding timeout: waiting for data"
        await stage.until_pod("p", lambda pod: message_of(pod) == text)
        assert (await stage.event("p", "FailedScheduling"))["note"] == text
        await stage.provision()
        assert await stage.bound("p") == "node-a"


async def test_a_volume_in_the_wrong_place(tmp_path: Path) -> None:
    """A pod is not bound to a node that does not reach the volume it was given; it goes where the volume is."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.lazy_class("fast")
        await stage.wants("fast")
        await stage.start_user("p", "data")
        assert await stage.selected() == "node-a"
        await stage.node("node-b")
        await stage.provision(node="node-b")
        assert await stage.bound("p") == "node-b"


async def test_a_pod_that_is_deleted_while_it_waits(tmp_path: Path) -> None:
    """What it was promised is free at once; its claim keeps what was begun, for the next pod that uses it."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a", allocatable={"cpu": "1"})
        await stage.disks("node-a")
        await stage.wants("local")
        await stage.start_user("p", "data", requests={"cpu": "1"})
        await stage.reserved("disk-node-a")
        await stage.start_pod("late", requests={"cpu": "1"})
        await stage.refused("late", "Insufficient cpu")
        await stage.delete(POD_VALUES, "p")
        assert await stage.bound("late") == "node-a"
        await stage.start_user("next", "data")
        await stage.complete("disk-node-a")
        assert await stage.bound("next") == "node-a"


async def test_a_claim_that_is_deleted_while_a_pod_waits(tmp_path: Path) -> None:
    """The pod is placed anew when there is a claim of that name again."""
    async with elsewhere(tmp_path) as (stage, _):
        await stage.node("node-a")
        await stage.lazy_class("fast")
        await stage.wants("fast")
        await stage.start_user("p", "data")
        await stage.selected()
        await stage.patch(VOLUME_CLAIM_VALUES, "data", {"metadata": {"finalizers": None}})
        await stage.delete(VOLUME_CLAIM_VALUES, "data")
        await stage.refused("p", "data")
        await stage.wants("fast")
        assert await stage.selected() == "node-a"
        await stage.provision()
        await stage.bound("p")


async def test_a_scheduler_that_ends_between_the_two(tmp_path: Path) -> None:
    """The next one takes up what was begun: the same disk, the same node."""
    async with elsewhere(tmp_path) as (stage, process):
        for node in ("node-a", "node-b"):
            await stage.node(node)
        await stage.disks("node-a")
        await stage.wants("local")
        await stage.start_user("p", "data")
        begun = await stage.reserved("disk-node-a")
        await process.stop()
        await stage.disk("smaller", "node-b", size="10Gi")
        await process.start()
        await stage.keeps_waiting("p")
        assert (await stage.reserved("disk-node-a")).spec == begun.spec
        assert (await stage.until_volume("smaller", lambda _: True)).spec.claim_ref is None
        await stage.complete("disk-node-a")
        assert await stage.bound("p") == "node-a"


class BadWire(HttpClient):
    """Loses what is said of the first write to a volume or to a volume claim."""

    arriving = True
    """Whether what is lost is the answer, not the request."""
    lost = 0

    async def _patch(self, target: Any, *rest: Any) -> Any:
        request = super()._patch(target, *rest)
        if self.lost or target.resource not in ("persistentvolumes", "persistentvolumeclaims"):
            return await request
        self.lost += 1
        if self.arriving:
            await request
        else:
            request.close()
        raise UnreachableError("nobody knows", outcome_unknown=True)


class DeafWire(BadWire):
    arriving = False


@pytest.mark.parametrize("wire", [BadWire, DeafWire], ids=["the answer", "the request"])
@pytest.mark.parametrize("storage_class", ["local", "fast"])
async def test_a_write_that_gets_no_answer(
    tmp_path: Path, wire: type[BadWire], storage_class: str
) -> None:
    """Whether it was done or not, the pod comes to one node, with one volume."""
    async with elsewhere(tmp_path, wire) as (stage, _):
        for node in ("node-a", "node-b"):
            await stage.node(node)
        await stage.disks("node-a", "node-b")
        await stage.lazy_class("fast")
        await stage.wants(storage_class)
        await stage.start_user("p", "data")
        node, volume = await _begun(stage, storage_class)
        if storage_class == "local":
            await stage.complete(volume)
        else:
            await stage.provision(node=node)
        assert await stage.bound("p") == node
        disks = [
            await stage.until_volume(f"disk-{n}", lambda _: True) for n in ("node-a", "node-b")
        ]
        taken = [disk for disk in disks if disk.spec.claim_ref is not None]
        assert len(taken) == (storage_class == "local")


async def _begun(stage: Storage, storage_class: str) -> tuple[str, str]:
    """The node that was chosen, and the disk if it was one."""
    if storage_class == "fast":
        return await stage.selected(), ""
    # Both nodes are alike, so it is the first that came.
    await stage.reserved("disk-node-a")
    return "node-a", "disk-node-a"

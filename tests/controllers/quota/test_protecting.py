"""Queues and flavors in use stay until they are not, and nobody waits for ever."""

from __future__ import annotations

from typing import Any

from controllers.quota.waiting_room import (
    CLUSTER_QUEUES,
    FLAVORS,
    LOCAL_QUEUES,
    admitted,
    waiting,
    waiting_room,
)
from drayman.api.times import timestamp_at
from drayman.cluster.resources import LEASES, NAMESPACES
from drayman.controllers.quota.protecting import KUEUE_LEASE, Unprotecting
from drayman.quota.settings import KUEUE_NAMESPACE
from drayman.workloads.queued.names import IN_USE


def is_kept(value: Any) -> bool:
    return IN_USE in value.metadata.finalizers


def is_leaving(value: Any) -> bool:
    return value.metadata.deletion_timestamp is not None


def active(reason: str) -> Any:
    def holds(value: Any) -> bool:
        conditions = (value.status or {}).get("conditions") or ()
        return any(each["reason"] == reason for each in conditions)

    return holds


async def test_a_queue_stays_while_workloads_hold_its_quota_and_a_flavor_while_queues_have_it() -> (
    None
):
    """Nobody else is admitted meanwhile, and both go by themselves with the last that needs them."""
    async with waiting_room() as room:
        place = room.place
        await room.queue(cpu=2)
        await place.until_one(FLAVORS, "standard", is_kept)
        await room.job("first")
        await room.workload(admitted, "first")
        await place.until_one(CLUSTER_QUEUES, "q", is_kept)
        await place.client.delete(FLAVORS, "standard")
        await place.client.delete(CLUSTER_QUEUES, "q")
        await place.until_one(FLAVORS, "standard", is_leaving)
        await place.until_one(CLUSTER_QUEUES, "q", active("Terminating"))
        await room.job("second")
        await room.workload(waiting("Suspended"), "second")
        await room.finish("first")
        await place.until(CLUSTER_QUEUES, lambda queues: not queues)
        await place.until(FLAVORS, lambda flavors: not flavors)
        await place.until(LOCAL_QUEUES, lambda queues: len(queues) == 1)


async def test_what_nobody_uses_goes_at_once() -> None:
    """Also a queue after its last workload: the finalizer is there only while it is needed."""
    async with waiting_room() as room:
        place = room.place
        await room.queue(cpu=2)
        await room.job("first")
        await place.until_one(CLUSTER_QUEUES, "q", is_kept)
        await room.finish("first")
        await place.until_one(CLUSTER_QUEUES, "q", lambda queue: not is_kept(queue))
        await place.client.delete(CLUSTER_QUEUES, "q")
        await place.until(CLUSTER_QUEUES, lambda queues: not queues)


async def test_without_queues_nothing_waits_for_ever() -> None:
    """Unless a Kueue is at work, which has the same finalizer: then it is asked again when its lease has ended."""
    async with waiting_room() as room:
        place = room.place
        await place.crash()
        for name in ("one", "two"):
            metadata = {"name": name, "finalizers": [IN_USE]}
            await place.create(FLAVORS, {"metadata": metadata, "spec": {}})
        await place.start(Unprotecting)
        await place.client.delete(FLAVORS, "one")
        await place.until(FLAVORS, lambda flavors: "one" not in {f.metadata.name for f in flavors})
        await place.create(NAMESPACES, {"metadata": {"name": KUEUE_NAMESPACE}})
        now = timestamp_at(place.clock()).replace("Z", ".000000Z")
        lease = {"metadata": {"name": KUEUE_LEASE}, "spec": {"renewTime": now}}
        await place.client.create(LEASES, lease, KUEUE_NAMESPACE)
        await place.client.delete(FLAVORS, "two")
        (controller,) = place.running.controllers
        await controller.attend(("flavor", "two"))
        await place.until_one(FLAVORS, "two", is_kept)
        place.clock.ahead += 3600
        await controller.attend(("flavor", "two"))
        await place.until(FLAVORS, lambda flavors: "two" not in {f.metadata.name for f in flavors})

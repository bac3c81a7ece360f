"""When an instance says that it is ready: the hardware is there, it can be used, and the scheduler knows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from drayman.apiserver.describing.system import HEALTH_PATHS, Health
from drayman.apiserver.instance import Folder, Instance, Options, Record, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.apiserver.instance.starting import CHECK, Start
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import Client, InProcessClient, WatchOptions, merge_patch
from drayman.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES
from drayman.cluster.watching import Change
from drayman.drivers.profiles import HardwareCluster, parse_profiles, simulate
from drayman.node.reporting import MANAGER
from drayman.node.simulated.model import FAILED
from patience import PATIENCE_S

COUNT: Final = 120
"""Nodes: more than fit into a transaction or two."""


@pytest.fixture
def hardware() -> HardwareCluster:
    return simulate(parse_profiles([f"example={COUNT}"]))


@pytest.fixture
def options(tmp_path: Path, hardware: HardwareCluster) -> Options:
    return Options(Folder(tmp_path / "data"), control_plane=ControlPlane(hardware=hardware))


@asynccontextmanager
async def started(options: Options) -> AsyncIterator[tuple[Instance, Client]]:
    instance = await start(options)
    try:
        async with InProcessClient(ServerBackend(instance.server.core)) as client:
            yield instance, client
    finally:
        await instance.stop()


async def test_a_cluster_that_is_ready_can_be_used(
    options: Options, hardware: HardwareCluster
) -> None:
    """Every node, slice and class is there, and no node is tainted any more."""
    async with started(options) as (_, client):
        nodes = (await client.list_all(NODES)).items
        assert len(nodes) == COUNT
        assert [node.metadata.name for node in nodes if node.spec.taints] == []
        slices = (await client.list_all(RESOURCE_SLICES)).items
        assert len(slices) == sum(len(node.slices) for node in hardware.nodes)
        classes = {each.metadata.name for each in (await client.list_all(DEVICE_CLASSES)).items}
        assert {each.metadata.name for each in hardware.classes} <= classes


async def test_the_scheduler_of_a_cluster_that_is_ready_knows_its_nodes(options: Options) -> None:
    """A pod for the node that was published last is bound without ever being refused."""
    async with started(options) as (_, client):
        last = f"example-{COUNT - 1}"
        pod = {
            "metadata": {"name": "first"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": last},
                "containers": [{"name": "c", "image": "none"}],
            },
        }
        await client.create(PODS.as_values(), pod, "default")
        async with client.watch(PODS, "default", options=WatchOptions()) as events:
            async for event in events:
                if isinstance(event, Change):
                    refused = [c for c in event.object.status.conditions if c.status == "False"]
                    assert [c.message for c in refused if c.type_ == "PodScheduled"] == []
                    if event.object.spec.node_name == last:
                        return


async def test_whoever_waits_is_told_how_far_it_is(options: Options) -> None:
    """The record says that it is not ready until the start is over; the reports grow, up to all there is to do."""
    reports: list[tuple[int, int]] = []
    records: list[Record | None] = []

    def report(done: int, total: int) -> None:
        reports.append((done, total))
        records.append(options.folder.running())

    instance = await start(options, report)
    try:
        record = options.folder.running()
        assert record is not None
        assert (record.ready, record.percent) == (True, 100)
    finally:
        await instance.stop()
    assert len({total for _, total in reports}) == 1
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1][0] == reports[-1][1]
    assert all(found is not None and not found.ready for found in records)


@pytest.mark.parametrize("parts", [ControlPlane(), ControlPlane(scheduler=None), None])
async def test_without_hardware_there_is_nothing_to_wait_for(
    options: Options, parts: ControlPlane | None
) -> None:
    """With or without a scheduler, and for the API alone."""
    async with started(replace(options, control_plane=parts)):
        record = options.folder.running()
        assert record is not None
        assert record.ready


async def test_nodes_that_fail_are_not_waited_for(options: Options) -> None:
    """One that was told to be silent stays tainted, and the others are accepted again."""
    async with started(options) as (_, client):
        silent = {"metadata": {"annotations": {FAILED: "true"}}}
        taints = {
            "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}
        }
        await client.patch(NODES, "example-0", merge_patch({**silent, **taints}))
    async with started(replace(options, control_plane=ControlPlane())) as (_, client):
        assert (await client.get(NODES, "example-1")).spec.taints == ()
        record = options.folder.running()
        assert record is not None
        assert record.ready


@pytest.mark.parametrize("path", HEALTH_PATHS)
def test_only_readiness_waits_for_the_cluster(tmp_path: Path, path: str) -> None:
    """A server that is still starting is alive and healthy; /readyz says what it waits for, and ok in the end."""
    folder = Folder(tmp_path)
    begun = Start(folder, Record(1, "https://127.0.0.1:1", "config", "now", False))
    begun.advance(41, 100)
    health = Health({"ping": lambda: None}, {CHECK: begun.problem})
    answer = health.answer(Request("GET", f"/{path}"), path, "")
    assert answer is not None
    if path == "readyz":
        assert answer.status == 500
        assert f"[-]{CHECK} failed: 41% of the simulated hardware is there".encode() in answer.body
        one = health.answer(Request("GET", f"/{path}/{CHECK}"), path, CHECK)
        assert one is not None
        assert one.status == 500
    else:
        assert (answer.status, answer.body) == (200, b"ok")
        assert health.answer(Request("GET", f"/{path}/{CHECK}"), path, CHECK) is None
    begun.finish()
    answer = health.answer(Request("GET", f"/{path}"), path, "")
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"ok")


def test_an_instance_without_any_scheduler_at_work_is_not_ready(tmp_path: Path) -> None:
    """Unless scheduling is left to others from the start. Who schedules is in the record."""
    folder = Folder(tmp_path)
    folder.prepare()
    begun = Start(folder, Record(1, "https://127.0.0.1:1", "config", "now", False))
    assert begun.scheduler_problem() is None
    begun.scheduled_by({"a": "drayman-up", "b": "drayman-up"})
    begun.finish()
    recorded = json.loads((tmp_path / "instance.json").read_bytes())
    assert (recorded["scheduler"], begun.scheduler_problem()) == ("the embedded one", None)
    begun.scheduled_by({"a": "", "b": ""})
    assert begun.scheduler_problem() == "no scheduler holds the lease of a, b"
    begun.scheduled_by({"a": "", "b": "host_1"})
    recorded = json.loads((tmp_path / "instance.json").read_bytes())
    assert recorded["scheduler"] == "a: none; b: host_1"
    assert begun.scheduler_problem() == "no scheduler holds the lease of a"
    begun.scheduled_by({"a": "host_1", "b": "host_1"})
    recorded = json.loads((tmp_path / "instance.json").read_bytes())
    assert recorded["scheduler"] == "host_1 (the embedded one stands by)"
    assert begun.scheduler_problem() is None


async def test_a_start_that_is_given_up_leaves_nothing_under_way(tmp_path: Path) -> None:
    """Not even the recorder of nodes that had only just begun."""
    # One whose drivers bring a kind, which the nodes have to follow before they are at work.
    hardware = simulate(parse_profiles("gb200-nvl72=1"))
    options = Options(Folder(tmp_path), control_plane=ControlPlane(hardware=hardware))
    before = asyncio.all_tasks()
    starting = asyncio.create_task(start(options))
    async with asyncio.timeout(PATIENCE_S):
        while f"events of {MANAGER}" not in {each.get_name() for each in asyncio.all_tasks()}:
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait((starting,))
    assert starting.cancelled()
    assert asyncio.all_tasks() == before

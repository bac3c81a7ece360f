"""`drayman defrag --apply` on a cluster that runs: what waits runs in the end, what moves runs elsewhere, and nobody else is touched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner, Result

from apiserver.e2e.driving import Server, running
from drayman.api.core import Pod
from drayman.cli.defrag.applying import Applying
from drayman.cli.main import cli
from drayman.cluster import HttpClient, WatchOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import (
    DISRUPTION_BUDGETS,
    NODES,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
)
from drayman.cluster.watching import Change
from drayman.placement.kept_room import CONDITION
from drayman.questions.defrag import defrag as propose
from drayman.questions.defrag import read_for_moves
from drayman.questions.followed_world import followed
from drayman.simulate.moving.report import Application
from patience import PATIENCE_S

T = TypeVar("T")
NODES_OF_THE_CLUSTER = tuple(f"example-{number}" for number in range(4))


def template(devices: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu.example.com", "count": devices}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"metadata": {"name": f"gpus-{devices}"}, "spec": {"spec": spec}}


def pod_spec(devices: int) -> dict[str, Any]:
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "example.com/image:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{devices}"}],
    }


def replicas(name: str, devices: int) -> dict[str, Any]:
    labels = {"app": name}
    made = {"metadata": {"labels": labels}, "spec": pod_spec(devices)}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": made}
    return {"metadata": {"name": name}, "spec": spec}


async def seen(client: HttpClient, holds: Callable[[dict[str, Pod]], T | None]) -> T:
    """What holds of the pods, by name, once it does."""
    page = await client.list_all(PODS, "default")
    pods = {pod.metadata.name: pod for pod in page.items}
    async with asyncio.timeout(PATIENCE_S):
        if (found := holds(pods)) is not None:
            return found
        options = WatchOptions(resource_version=page.resource_version)
        async with client.watch(PODS, "default", options=options) as events:
            async for event in events:
                if not isinstance(event, Change):
                    continue
                name = event.object.metadata.name
                if event.type == "DELETED":
                    pods.pop(name, None)
                else:
                    pods[name] = event.object
                if (found := holds(pods)) is not None:
                    return found
    raise AssertionError("the watch has ended")


def of(pods: dict[str, Pod], owner: str) -> list[Pod]:
    """The pods of a set that have a node."""
    return [p for p in pods.values() if p.metadata.labels.get("app") == owner and p.spec.node_name]


async def scatter(client: HttpClient, sizes: dict[str, tuple[str, int]]) -> None:
    """Pods with so many devices, each of a set of its own, on certain nodes."""
    for name, (where, devices) in sizes.items():
        for node in NODES_OF_THE_CLUSTER:
            spec = {"spec": {"unschedulable": True if node != where else None}}
            await client.patch(NODES, node, merge_patch(spec))
        await client.create(REPLICA_SETS.as_values(), replicas(name, devices), "default")
        await seen(client, lambda pods, name=name: of(pods, name) or None)  # type: ignore[misc]
    for node in NODES_OF_THE_CLUSTER:
        await client.patch(NODES, node, merge_patch({"spec": {"unschedulable": None}}))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "config", "--ephemeral", "--profile", "example=4") as server:
        on(server, prepare)
        yield server


async def prepare(client: HttpClient) -> None:
    for devices in (1, 2, 3, 4, 8):
        await client.create(RESOURCE_CLAIM_TEMPLATES.as_values(), template(devices), "default")


def on(server: Server, work: Callable[[HttpClient], Awaitable[T]]) -> T:
    async def connected() -> T:
        async with HttpClient.from_environment(server.kubeconfig) as client:
            return await work(client)

    return asyncio.run(connected())


def defrag(server: Server, *words: str) -> Result:
    options = ["defrag", *words, "--kubeconfig", str(server.kubeconfig)]
    return CliRunner().invoke(cli, options, prog_name="drayman")


SCATTERED = {
    "a": ("example-0", 3),
    "c": ("example-2", 4),
    "d": ("example-3", 2),
    "b": ("example-1", 1),
}
"""What has the fewest devices comes last, so that it loses the least work however long the others took to start."""


def test_room_for_a_pod(server: Server) -> None:
    """A pod that wants a whole node gets one. The cheapest pod has moved, the others are as before, and nothing is kept any more."""

    async def arrange(client: HttpClient) -> dict[str, str]:
        await scatter(client, SCATTERED)
        big = {"metadata": {"name": "big"}, "spec": pod_spec(8)}
        await client.create(PODS.as_values(), big, "default")
        pods = (await client.list_all(PODS, "default")).items
        return {p.metadata.labels.get("app", ""): p.metadata.uid for p in pods}

    before = on(server, arrange)
    result = defrag(server, "--for", "pod/big", "--apply", "--yes", "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["applied"] == {"moved": 1, "started": ["pod default/big"]}

    async def check(client: HttpClient) -> dict[str, Pod]:
        return await seen(client, lambda pods: pods if pods["big"].spec.node_name else None)

    pods = on(server, check)
    after = {p.metadata.labels.get("app", ""): p for p in pods.values()}
    assert pods["big"].spec.node_name == "example-1"
    assert after["b"].metadata.uid != before["b"]
    assert after["b"].spec.node_name not in ("", "example-1")
    assert {name for name in "acd" if after[name].metadata.uid == before[name]} == {*"acd"}
    assert all(c.type_ != CONDITION for c in pods["big"].status.conditions)


def test_room_for_a_gang(server: Server) -> None:
    """A gang of two pods that want a node each gets both, in text with each eviction and a summary."""

    async def arrange(client: HttpClient) -> None:
        await scatter(client, SCATTERED)
        group = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        ring = {"metadata": {"name": "ring"}, "spec": group}
        await client.create(POD_GROUPS.as_values(), ring, "default")
        for number in range(2):
            spec = {**pod_spec(8), "schedulingGroup": {"podGroupName": "ring"}}
            member = {"metadata": {"name": f"ring-{number}"}, "spec": spec}
            await client.create(PODS.as_values(), member, "default")

    on(server, arrange)
    result = defrag(server, "--apply", "--yes")
    assert result.exit_code == 0, result.output
    assert "2 pods moved; pod group default/ring started" in result.output
    assert result.output.count("evicted from node") == 2

    async def check(client: HttpClient) -> set[str]:
        return await seen(
            client,
            lambda pods: (
                {pods[f"ring-{n}"].spec.node_name for n in range(2)}
                if all(pods[f"ring-{n}"].spec.node_name for n in range(2))
                else None
            ),
        )

    assert on(server, check) == {"example-1", "example-3"}


def test_a_budget_that_allows_nothing_stops_it(server: Server) -> None:
    """Evictions ask disruption budgets: a pod that may not go is not moved, and everything stays as it was."""

    async def arrange(client: HttpClient) -> None:
        await scatter(client, {"a": ("example-0", 1)})
        for number in range(1, 4):
            await client.patch(
                NODES, f"example-{number}", merge_patch({"spec": {"unschedulable": True}})
            )
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        await client.create(
            DISRUPTION_BUDGETS.as_values(), {"metadata": {"name": "a"}, "spec": spec}, "default"
        )
        await client.create(
            PODS.as_values(), {"metadata": {"name": "big"}, "spec": pod_spec(8)}, "default"
        )

    on(server, arrange)
    result = defrag(server, "--for", "pod/big", "--apply", "--yes")
    assert result.exit_code == 1
    assert "evicted" not in result.output


async def room_wanted(client: HttpClient) -> None:
    """One pod is in the way of another on a node, with a single other place."""
    await scatter(client, {"a": ("example-0", 1), "b": ("example-1", 4)})
    for number in range(2, 4):
        cordoned = merge_patch({"spec": {"unschedulable": True}})
        await client.patch(NODES, f"example-{number}", cordoned)
    await client.create(
        PODS.as_values(), {"metadata": {"name": "big"}, "spec": pod_spec(8)}, "default"
    )


async def carried_out(
    client: HttpClient, between: Callable[[HttpClient], Awaitable[None]], stopping: asyncio.Event
) -> tuple[Application, set[str]]:
    """A proposal, carried out after something has happened; and which pods there are then."""
    world = await read_for_moves(client, None, "default")
    report = propose(world, None, "default")
    assert report.steps
    before = {each.uid for step in report.steps for each in step.pods}
    await between(client)
    async with followed(client, world, "default") as now:
        applying = Applying(client, now, at_once=8, timeout_s=PATIENCE_S, stopping=stopping)
        applied = await applying.carry_out(report.rooms)
    pods = (await client.list_all(PODS, "default")).items
    return applied, before - {pod.metadata.uid for pod in pods}


def test_it_ends_when_the_cluster_has_changed(server: Server) -> None:
    """If the only other places are gone meanwhile, nothing is evicted, and it is said why."""

    async def work(client: HttpClient) -> tuple[Application, set[str]]:
        await room_wanted(client)

        async def cordon(client: HttpClient) -> None:
            for node in NODES_OF_THE_CLUSTER:
                await client.patch(NODES, node, merge_patch({"spec": {"unschedulable": True}}))

        return await carried_out(client, cordon, asyncio.Event())

    applied, gone = on(server, work)
    assert applied.stopped.startswith("the cluster has changed: ")
    assert (applied.moved, applied.started, gone) == (0, (), set())


def test_it_ends_when_it_is_interrupted(server: Server) -> None:
    """Somebody who wants it to end is heard before the next step."""

    async def work(client: HttpClient) -> tuple[Application, set[str]]:
        await room_wanted(client)
        stopping = asyncio.Event()

        async def interrupt(_: HttpClient) -> None:
            stopping.set()

        return await carried_out(client, interrupt, stopping)

    applied, gone = on(server, work)
    assert (applied.stopped, applied.moved, gone) == ("interrupted", 0, set())


def test_what_makes_no_sense(tmp_path: Path) -> None:
    """A cluster in a file is not changed, and where nobody can be asked, it has to be said that nobody is."""
    (tmp_path / "cluster.yaml").write_text("")
    file = str(tmp_path / "cluster.yaml")
    for words, said in (
        (("--apply", "--yes", "--snapshot", file), "not one in a file"),
        (("--apply",), "add --yes"),
    ):
        result = CliRunner().invoke(cli, ["defrag", *words])
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())

"""Status, scale, binding, eviction, several writes at once, leases."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from cluster.contract.conftest import Open
from cluster.contract.objects import DEPLOYMENTS, POD_VALUES, claim, config_map, deployment, pod
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaimConsumerReference
from drayman.cluster import (
    BindWrite,
    CreateWrite,
    DeleteWrite,
    Election,
    LeaderElector,
    PartsWrite,
    PatchWrite,
    merge_patch,
)
from drayman.cluster.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    PartialWriteError,
)
from drayman.cluster.resources import CONFIG_MAPS, LEASES, PODS, RESOURCE_CLAIMS

replace = msgspec.structs.replace


async def test_status_is_written_apart(open_cluster: Open) -> None:
    """The main path leaves the status alone and the status path everything else."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        made = await client.create(POD_VALUES, pod("p"), namespace)
        status = {"phase": "Running", "message": "here"}
        await client.update(POD_VALUES, made | {"status": status})
        read = await client.get(POD_VALUES, "p", namespace)
        assert read["status"]["phase"] == "Pending"
        changed = read | {"status": read["status"] | status}
        changed["metadata"] = read["metadata"] | {"labels": {"a": "b"}}
        written = await client.update(POD_VALUES, changed, subresource="status")
        assert written["status"]["message"] == "here"
        patch = merge_patch({"status": {"message": "there"}})
        patched = await client.patch(POD_VALUES, "p", patch, namespace, subresource="status")
        assert patched["status"]["message"] == "there"
        assert patched["spec"] == made["spec"]


async def test_typed_status_updates_are_conditional(open_cluster: Open) -> None:
    """A claim's status is written for the version that was read."""
    async with open_cluster() as cluster:
        client = cluster.client
        made = await client.create(RESOURCE_CLAIMS, claim("c", cluster.namespace))
        await client.patch(
            RESOURCE_CLAIMS,
            "c",
            merge_patch({"metadata": {"labels": {"a": "b"}}}),
            cluster.namespace,
        )
        consumer = ResourceClaimConsumerReference(resource="pods", name="p", uid="u")
        wanted = replace(made, status=replace(made.status, reserved_for=(consumer,)))
        with pytest.raises(ConflictError):
            await client.update(RESOURCE_CLAIMS, wanted, subresource="status")


async def test_scale(open_cluster: Open) -> None:
    """The number of replicas is written without the rest of the workload."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(DEPLOYMENTS, deployment("d", 2), namespace)
        for replicas in (5, 0):
            change = merge_patch({"spec": {"replicas": replicas}})
            scale = await client.patch(DEPLOYMENTS, "d", change, namespace, subresource="scale")
            assert scale["kind"] == "Scale"
            assert scale["spec"].get("replicas", 0) == replicas
            assert scale["status"]["selector"] == "app=d"
            read = await client.get(DEPLOYMENTS, "d", namespace)
            assert read["spec"]["replicas"] == replicas


async def test_binding_places_a_pod_once(open_cluster: Open) -> None:
    """A bound pod has its node, and cannot be bound elsewhere."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        made = await client.create(POD_VALUES, pod("p"), namespace)
        with pytest.raises(ConflictError):
            await client.bind("p", namespace, "node-1", uid="another")
        await client.bind("p", namespace, "node-1", uid=made["metadata"]["uid"])
        bound = await client.get(PODS, "p", namespace)
        assert isinstance(bound, Pod)
        assert bound.spec.node_name == "node-1"
        with pytest.raises(ConflictError):
            await client.bind("p", namespace, "node-2")
        with pytest.raises(NotFoundError):
            await client.bind("missing", namespace, "node-1")


async def test_eviction_deletes_a_pod(open_cluster: Open) -> None:
    """A pod without a budget can be evicted."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(POD_VALUES, pod("p"), namespace)
        await client.evict("p", namespace)
        with pytest.raises(NotFoundError):
            await client.get(POD_VALUES, "p", namespace)
        with pytest.raises(NotFoundError):
            await client.evict("missing", namespace)


async def test_several_writes_at_once(open_cluster: Open) -> None:
    """Every kind of write goes into a batch, and each answers as it would alone."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(POD_VALUES, pod("p"), namespace)
        old = await client.create(CONFIG_MAPS, config_map("old", x="1"), namespace)
        await client.create(CONFIG_MAPS, config_map("patched"), namespace)
        await client.create(CONFIG_MAPS, config_map("gone"), namespace)
        results = await client.write_many(
            [
                CreateWrite(CONFIG_MAPS, config_map("new", x="1"), namespace),
                CreateWrite(RESOURCE_CLAIMS, claim("c", namespace)),
                PartsWrite.of(CONFIG_MAPS, old, {("data",): {"x": "2"}}),
                PatchWrite(CONFIG_MAPS, "patched", merge_patch({"data": {"x": "3"}}), namespace),
                DeleteWrite(CONFIG_MAPS, "gone", namespace),
                BindWrite("p", namespace, "node-1"),
            ]
        )
        assert len(results) == 6
        assert results[4:] == (None, None)
        new, made, updated, patched = results[:4]
        for name, result in (("new", new), ("old", updated), ("patched", patched)):
            assert await client.get(CONFIG_MAPS, name, namespace) == result
        assert await client.get(RESOURCE_CLAIMS, "c", namespace) == made
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAPS, "gone", namespace)
        assert (await client.get(PODS, "p", namespace)).spec.node_name == "node-1"


async def test_a_refused_batch_leaves_no_new_objects(open_cluster: Open) -> None:
    """What was created before the refusal is gone again, whether by transaction or by clean-up."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(CONFIG_MAPS, config_map("taken"), namespace)
        with pytest.raises(AlreadyExistsError):
            await client.write_many(
                [
                    CreateWrite(CONFIG_MAPS, config_map("one"), namespace),
                    CreateWrite(RESOURCE_CLAIMS, claim("two", namespace)),
                    CreateWrite(CONFIG_MAPS, config_map("taken"), namespace),
                    CreateWrite(CONFIG_MAPS, config_map("never"), namespace),
                ]
            )
        for name in ("one", "never"):
            with pytest.raises(NotFoundError):
                await client.get(CONFIG_MAPS, name, namespace)
        with pytest.raises(NotFoundError):
            await client.get(RESOURCE_CLAIMS, "two", namespace)


async def test_a_batch_is_all_or_nothing_or_says_what_it_left(open_cluster: Open) -> None:
    """A transaction takes an update back; without one, the update that stays is named."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        old = await client.create(CONFIG_MAPS, config_map("old", x="1"), namespace)
        writes = [
            PartsWrite.of(CONFIG_MAPS, old, {("data",): {"x": "2"}}),
            DeleteWrite(CONFIG_MAPS, "missing", namespace),
        ]
        with pytest.raises(NotFoundError if cluster.atomic else PartialWriteError) as refusal:
            await client.write_many(writes)
        found = await client.get(CONFIG_MAPS, "old", namespace)
        assert found["data"]["x"] == ("1" if cluster.atomic else "2")
        if isinstance(refusal.value, PartialWriteError):
            assert refusal.value.left_behind == ("write of parts of configmaps 'old'",)
            assert isinstance(refusal.value.__cause__, NotFoundError)


async def test_a_batch_of_nonsense_is_refused_before_anything_is_written(
    open_cluster: Open,
) -> None:
    """A write without a name, which would be one of everything, is a mistake of the caller."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        for nonsense in (
            DeleteWrite(CONFIG_MAPS, "", namespace),
            PatchWrite(CONFIG_MAPS, "", merge_patch({}), namespace),
            CreateWrite(CONFIG_MAPS, config_map("b")),
        ):
            with pytest.raises(ValueError, match="which"):
                await client.write_many(
                    [CreateWrite(CONFIG_MAPS, config_map("a"), namespace), nonsense]
                )
            with pytest.raises(NotFoundError):
                await client.get(CONFIG_MAPS, "a", namespace)


async def test_an_empty_batch_is_fine(open_cluster: Open) -> None:
    """Nothing to do is done."""
    async with open_cluster() as cluster:
        assert await cluster.client.write_many([]) == ()


async def test_requests_run_side_by_side(open_cluster: Open) -> None:
    """A hundred writes at once all take place, each once."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        made = await asyncio.gather(
            *(client.create(CONFIG_MAPS, config_map(f"m{n:03}"), namespace) for n in range(100))
        )
        versions = {value["metadata"]["resourceVersion"] for value in made}
        assert len(versions) == 100


async def test_one_candidate_leads_and_then_the_next(open_cluster: Open) -> None:
    """While one works the other waits; when it ends, the other leads at once."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        log: list[str] = []
        working = asyncio.Event()
        finish = asyncio.Event()

        def elector(identity: str) -> LeaderElector:
            return LeaderElector(
                client,
                Election(
                    names=("lead",), namespace=namespace, identity=identity, retry_period=0.02
                ),
            )

        async def first(_: object) -> None:
            log.append("first begins")
            working.set()
            await finish.wait()
            log.append("first ends")

        async def second(_: object) -> None:
            log.append("second")

        leading = asyncio.create_task(elector("one").lead(first))
        await working.wait()
        waiting = elector("two")
        candidate = asyncio.create_task(waiting.lead(second))
        while waiting.holders["lead"] != "one":
            await asyncio.sleep(0.01)
        finish.set()
        await asyncio.gather(leading, candidate)
        assert log == ["first begins", "first ends", "second"]
        lease = await client.get(LEASES, "lead", namespace)
        assert not lease["spec"].get("holderIdentity")
        assert lease["spec"]["leaseTransitions"] == 2

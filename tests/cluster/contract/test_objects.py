"""Single objects: create, read, update, patch, delete, and what is refused."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import msgspec
import pytest

from cluster.contract.conftest import Open
from cluster.contract.objects import POD_VALUES, claim, config_map, device_class, pod
from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.cluster import (
    DeleteOptions,
    GetOptions,
    PartsWrite,
    WriteOptions,
    apply_patch,
    generic,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from drayman.cluster.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from drayman.cluster.resources import CONFIG_MAPS, DEVICE_CLASSES, RESOURCE_CLAIMS, JsonObject

replace = msgspec.structs.replace


async def test_create_gives_the_object_an_identity(open_cluster: Open) -> None:
    """A created object has a uid, a version and a time, and reads back the same."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CONFIG_MAPS, config_map("a", x="1"), cluster.namespace)
        assert made["kind"] == "ConfigMap"
        assert made["apiVersion"] == "v1"
        assert made["data"] == {"x": "1"}
        assert made["metadata"]["namespace"] == cluster.namespace
        assert all(
            made["metadata"][name] for name in ("uid", "resourceVersion", "creationTimestamp")
        )
        assert await cluster.client.get(CONFIG_MAPS, "a", cluster.namespace) == made


async def test_typed_objects_come_and_go_as_they_are(open_cluster: Open) -> None:
    """A struct goes in and a struct comes out, with what the server added."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(RESOURCE_CLAIMS, claim("c", cluster.namespace))
        assert isinstance(made, ResourceClaim)
        assert made.metadata.uid
        assert await cluster.client.get(RESOURCE_CLAIMS, "c", cluster.namespace) == made


async def test_cluster_wide_objects_have_no_namespace(open_cluster: Open) -> None:
    """A device class is found by its name alone."""
    async with open_cluster() as cluster:
        name = cluster.cluster_wide_name("gpu")
        try:
            made = await cluster.client.create(DEVICE_CLASSES, device_class(name))
            assert isinstance(made, DeviceClass)
            assert made.metadata.namespace == ""
            assert await cluster.client.get(DEVICE_CLASSES, name) == made
        finally:
            await cluster.remove(DEVICE_CLASSES, name)


async def test_a_generated_name_begins_as_asked(open_cluster: Open) -> None:
    """The server completes generateName."""
    async with open_cluster() as cluster:
        value = {"metadata": {"generateName": "made-"}}
        names = {
            (await cluster.client.create(CONFIG_MAPS, value, cluster.namespace))["metadata"]["name"]
            for _ in range(3)
        }
        assert len(names) == 3
        assert all(name.startswith("made-") and len(name) > 5 for name in names)


async def test_creating_twice_is_refused(open_cluster: Open) -> None:
    """A name is taken once."""
    async with open_cluster() as cluster:
        await cluster.client.create(CONFIG_MAPS, config_map("a"), cluster.namespace)
        with pytest.raises(AlreadyExistsError) as refusal:
            await cluster.client.create(CONFIG_MAPS, config_map("a"), cluster.namespace)
        assert refusal.value.code == 409
        assert refusal.value.status.details.name == "a"
        assert refusal.value.status.details.kind == "configmaps"


async def test_what_does_not_exist_is_not_found(open_cluster: Open) -> None:
    """Reading, changing and deleting need the object, and a create its namespace."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        missing = config_map("missing") | {"metadata": {"name": "missing", "namespace": namespace}}
        for attempt in (
            client.get(CONFIG_MAPS, "missing", namespace),
            client.update(CONFIG_MAPS, missing),
            client.patch(CONFIG_MAPS, "missing", merge_patch({}), namespace),
            client.delete(CONFIG_MAPS, "missing", namespace),
            client.create(CONFIG_MAPS, config_map("a"), f"{namespace}-missing"),
            client.get(generic("example.com/v1", "widgets", "Widget"), "a", namespace),
        ):
            with pytest.raises(NotFoundError) as refusal:
                await attempt
            assert refusal.value.code == 404


async def test_invalid_objects_are_refused_with_their_fields(open_cluster: Open) -> None:
    """The refusal names each field that is wrong."""
    async with open_cluster() as cluster:
        value = pod("p")
        del value["spec"]["containers"][0]["name"]
        with pytest.raises(InvalidError) as refusal:
            await cluster.client.create(POD_VALUES, value, cluster.namespace)
        assert refusal.value.code == 422
        found = {(cause.field, cause.reason) for cause in refusal.value.causes}
        assert ("spec.containers[0].name", "FieldValueRequired") in found


async def test_unknown_fields_are_refused_when_asked(open_cluster: Open) -> None:
    """Strict field validation is the server's to do."""
    async with open_cluster() as cluster:
        value = config_map("a") | {"colour": "red"}
        strict = WriteOptions(field_validation="Strict")
        with pytest.raises(BadRequestError, match='unknown field "colour"'):
            await cluster.client.create(CONFIG_MAPS, value, cluster.namespace, options=strict)
        await cluster.client.create(CONFIG_MAPS, value, cluster.namespace)


async def test_a_dry_run_changes_nothing(open_cluster: Open) -> None:
    """The answer is that of the write, and the write does not take place."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        dry = WriteOptions(dry_run=True)
        made = await client.create(CONFIG_MAPS, config_map("a"), namespace, options=dry)
        assert made["metadata"]["uid"]
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAPS, "a", namespace)
        await client.create(CONFIG_MAPS, config_map("a"), namespace)
        await client.delete(CONFIG_MAPS, "a", namespace, options=DeleteOptions(dry_run=True))
        assert await client.get(CONFIG_MAPS, "a", namespace)


async def test_an_update_needs_the_version_it_was_made_for(open_cluster: Open) -> None:
    """Of two updates of one version the second is refused; without a version the last one wins."""
    async with open_cluster() as cluster:
        client = cluster.client
        first = await client.create(CONFIG_MAPS, config_map("a", x="1"), cluster.namespace)
        second = await client.update(CONFIG_MAPS, first | {"data": {"x": "2"}})
        assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        with pytest.raises(ConflictError):
            await client.update(CONFIG_MAPS, first | {"data": {"x": "3"}})
        blind = {"name": "a", "namespace": cluster.namespace}
        third = await client.update(CONFIG_MAPS, {"metadata": blind, "data": {"x": "4"}})
        assert third["data"] == {"x": "4"}


async def test_an_update_without_a_change_keeps_the_version(open_cluster: Open) -> None:
    """Writing what is there already is no event."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CONFIG_MAPS, config_map("a", x="1"), cluster.namespace)
        same = await cluster.client.update(CONFIG_MAPS, made)
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


PATCHES = [
    ("merge", merge_patch({"data": {"x": None, "y": "2"}}), {"y": "2"}),
    ("strategic", strategic_merge_patch({"data": {"x": None, "y": "2"}}), {"y": "2"}),
    (
        "json",
        json_patch(
            [
                {"op": "test", "path": "/data/x", "value": "1"},
                {"op": "remove", "path": "/data/x"},
                {"op": "add", "path": "/data/y", "value": "2"},
            ]
        ),
        {"y": "2"},
    ),
    (
        "apply",
        apply_patch(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"y": "2"}}
        ),
        {"x": "1", "y": "2"},
    ),
]


@pytest.mark.parametrize(("name", "patch", "data"), PATCHES, ids=[case[0] for case in PATCHES])
async def test_patches_change_a_part(open_cluster: Open, name: str, patch, data: dict) -> None:
    """Each kind of patch does what its standard says."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
        options = WriteOptions(field_manager="contract")
        patched = await client.patch(CONFIG_MAPS, "a", patch, namespace, options=options)
        assert patched["data"] == data
        assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == data


async def test_apply_creates_and_respects_owners(open_cluster: Open) -> None:
    """Applying makes the object; another manager's fields need force."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace

        def value(x: str) -> JsonObject:
            named = {"name": "a", "namespace": namespace}
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"x": x}}

        async def apply(x: str, manager: str, force: bool = False) -> JsonObject:
            options = WriteOptions(field_manager=manager, force=force)
            return await client.patch(
                CONFIG_MAPS, "a", apply_patch(value(x)), namespace, options=options
            )

        await apply("1", "one")
        with pytest.raises(ConflictError) as refusal:
            await apply("2", "two")
        assert [cause.field for cause in refusal.value.causes] == [".data.x"]
        assert (await apply("2", "two", force=True))["data"] == {"x": "2"}


async def test_a_patch_whose_test_fails_is_refused(open_cluster: Open) -> None:
    """A condition in a JSON patch holds, or nothing happens."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
        patch = json_patch(
            [
                {"op": "test", "path": "/data/x", "value": "other"},
                {"op": "replace", "path": "/data/x", "value": "2"},
            ]
        )
        with pytest.raises(InvalidError):
            await client.patch(CONFIG_MAPS, "a", patch, namespace)
        assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"x": "1"}


async def test_a_patch_may_name_the_version_it_is_for(open_cluster: Open) -> None:
    """A resourceVersion inside a patch makes it conditional."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
        version = made["metadata"]["resourceVersion"]
        conditional = {"metadata": {"resourceVersion": version}, "data": {"x": "1"}}
        await client.patch(CONFIG_MAPS, "a", merge_patch(conditional), namespace)
        with pytest.raises(ConflictError):
            await client.patch(
                CONFIG_MAPS, "a", merge_patch(conditional | {"data": {"x": "2"}}), namespace
            )


async def test_delete_removes(open_cluster: Open) -> None:
    """A deleted object is gone, and some kinds are shown a last time."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(CONFIG_MAPS, config_map("a"), namespace)
        assert await client.delete(CONFIG_MAPS, "a", namespace) is None
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAPS, "a", namespace)
        made = await client.create(RESOURCE_CLAIMS, claim("c", namespace))
        deleted = await client.delete(RESOURCE_CLAIMS, "c", namespace)
        assert deleted is not None
        assert deleted.metadata.uid == made.metadata.uid


async def test_delete_takes_preconditions(open_cluster: Open) -> None:
    """An object that is not the one meant stays."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
        for wrong in (DeleteOptions(uid="another"), DeleteOptions(resource_version="1")):
            with pytest.raises(ConflictError):
                await client.delete(CONFIG_MAPS, "a", namespace, options=wrong)
        right = DeleteOptions(
            uid=made["metadata"]["uid"], resource_version=made["metadata"]["resourceVersion"]
        )
        assert await client.delete(CONFIG_MAPS, "a", namespace, options=right) is None


async def test_finalizers_hold_an_object(open_cluster: Open) -> None:
    """An object with a finalizer is marked, and goes when the last finalizer does."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        value = config_map("a")
        value["metadata"]["finalizers"] = ["example.com/hold"]
        await client.create(CONFIG_MAPS, value, namespace)
        marked = await client.delete(CONFIG_MAPS, "a", namespace)
        assert marked is not None
        assert marked["metadata"]["deletionTimestamp"]
        await client.patch(
            CONFIG_MAPS, "a", merge_patch({"metadata": {"finalizers": None}}), namespace
        )
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAPS, "a", namespace)


async def test_reading_at_a_version_not_older(open_cluster: Open) -> None:
    """A read that may be stale still shows what its version had."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CONFIG_MAPS, config_map("a"), cluster.namespace)
        at = GetOptions(resource_version=made["metadata"]["resourceVersion"])
        assert await cluster.client.get(CONFIG_MAPS, "a", cluster.namespace, options=at) == made


async def test_what_goes_in_is_left_alone(open_cluster: Open) -> None:
    """Defaults and identity appear in the answer, not in the caller's own object."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        value, change = pod("p"), {"metadata": {"labels": {"a": "b"}}}
        before = deepcopy((value, change))
        made = await client.create(POD_VALUES, value, namespace)
        await client.patch(POD_VALUES, "p", merge_patch(change), namespace)
        assert (value, change) == before
        made["spec"]["containers"].clear()
        change["metadata"]["labels"]["a"] = "c"
        found = await client.get(POD_VALUES, "p", namespace)
        assert len(found["spec"]["containers"]) == 1
        assert found["metadata"]["labels"] == {"a": "b"}


async def test_of_updates_of_one_version_one_wins(open_cluster: Open) -> None:
    """However many write at once, one of them is in time, and the others are told."""
    async with open_cluster() as cluster:
        client = cluster.client
        made = await client.create(CONFIG_MAPS, config_map("a", x="0"), cluster.namespace)
        outcomes = await asyncio.gather(
            *(client.update(CONFIG_MAPS, made | {"data": {"x": str(n)}}) for n in range(1, 11)),
            *(
                client.write_many([PartsWrite.of(CONFIG_MAPS, made, {("data",): {"x": str(n)}})])
                for n in range(11, 21)
            ),
            return_exceptions=True,
        )
        lost = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert [type(error) for error in lost] == [ConflictError] * 19

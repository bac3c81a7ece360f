"""Lists, pages, selectors and watches."""

from __future__ import annotations

import asyncio

import pytest

from cluster.contract.clusters import Cluster, working_in
from cluster.contract.conftest import Open
from cluster.contract.objects import POD_VALUES, config_map, pod
from cluster.following import Follower
from drayman.api.core import Pod
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import (
    Change,
    Informer,
    InProcessClient,
    ListOptions,
    Selection,
    WatchOptions,
)
from drayman.cluster.embedded import Store
from drayman.cluster.errors import BadRequestError, ExpiredError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import CONFIG_MAPS, PODS, JsonObject


async def make(cluster: Cluster, *names: str, **labels: str) -> None:
    for name in names:
        await cluster.client.create(CONFIG_MAPS, config_map(name, labels), cluster.namespace)


def mine(items: tuple[JsonObject, ...]) -> list[str]:
    """Names, without the config map that a cluster with controllers puts into every namespace."""
    names = [item["metadata"]["name"] for item in items]
    return [name for name in names if name != "kube-root-ca.crt"]


async def test_lists_are_in_order_and_whole(open_cluster: Open) -> None:
    """Items come by name, each as complete as if it were read alone."""
    async with open_cluster() as cluster:
        await make(cluster, "b", "a", "c")
        page = await cluster.client.list(CONFIG_MAPS, cluster.namespace)
        assert mine(page.items) == ["a", "b", "c"]
        first = await cluster.client.get(CONFIG_MAPS, "a", cluster.namespace)
        assert page.items[0] == first
        assert int(page.resource_version) >= int(first["metadata"]["resourceVersion"])


async def test_typed_lists(open_cluster: Open) -> None:
    """The items of a typed list are structs."""
    async with open_cluster() as cluster:
        await cluster.client.create(POD_VALUES, pod("p"), cluster.namespace)
        page = await cluster.client.list(PODS, cluster.namespace)
        assert [type(item) for item in page.items] == [Pod]
        assert page.items[0] == await cluster.client.get(PODS, "p", cluster.namespace)


async def test_a_list_over_all_namespaces(open_cluster: Open) -> None:
    """Without a namespace, all of them are listed."""
    async with open_cluster() as cluster:
        await make(cluster, "a")
        page = await cluster.client.list(CONFIG_MAPS)
        where = [item["metadata"]["namespace"] for item in page.items]
        assert cluster.namespace in where


async def test_a_namespace_that_does_not_exist_is_empty(open_cluster: Open) -> None:
    """Listing nothing is no error."""
    async with open_cluster() as cluster:
        page = await cluster.client.list(CONFIG_MAPS, f"{cluster.namespace}-missing")
        assert page.items == ()


async def test_pages_are_of_one_version(open_cluster: Open) -> None:
    """What is written after the first page does not appear in the later ones."""
    async with open_cluster() as cluster:
        await make(cluster, *(f"m{index}" for index in range(7)), of="seven")
        names: list[str] = []
        versions: set[str] = set()
        options = ListOptions(limit=3)
        async for page in cluster.client.pages(CONFIG_MAPS, cluster.namespace, options=options):
            if not names:
                await make(cluster, "z-late")
            names += mine(page.items)
            versions.add(page.resource_version)
        assert names == [f"m{index}" for index in range(7)]
        assert len(versions) == 1


async def test_a_page_says_how_much_is_left(open_cluster: Open) -> None:
    """A limited list counts what it did not show."""
    async with open_cluster() as cluster:
        await make(cluster, "a", "b", "c", "d")
        page = await cluster.client.list(
            CONFIG_MAPS, cluster.namespace, options=ListOptions(limit=3)
        )
        assert len(page.items) == 3
        assert page.continue_
        assert page.remaining is not None
        assert page.remaining >= 1


async def test_a_token_that_is_none_is_refused(open_cluster: Open) -> None:
    """A continue token comes from the server or not at all."""
    async with open_cluster() as cluster:
        with pytest.raises(BadRequestError):
            await cluster.client.list(
                CONFIG_MAPS, cluster.namespace, options=ListOptions(limit=1, continue_="nonsense")
            )


SELECTORS = [
    ("equal", ListOptions(label_selector="colour=red"), ["a", "b"]),
    ("set", ListOptions(label_selector="colour in (blue, green)"), ["c"]),
    ("absent", ListOptions(label_selector="!colour"), ["d"]),
    ("name", ListOptions(field_selector="metadata.name=b"), ["b"]),
    ("both", ListOptions(label_selector="colour", field_selector="metadata.name!=b"), ["a", "c"]),
]


@pytest.mark.parametrize(
    ("name", "options", "found"), SELECTORS, ids=[case[0] for case in SELECTORS]
)
async def test_selectors(
    open_cluster: Open, name: str, options: ListOptions, found: list[str]
) -> None:
    """Lists are narrowed by labels and fields."""
    async with open_cluster() as cluster:
        await make(cluster, "a", "b", colour="red")
        await make(cluster, "c", colour="blue")
        await make(cluster, "d")
        page = await cluster.client.list(CONFIG_MAPS, cluster.namespace, options=options)
        assert mine(page.items) == found


@pytest.mark.parametrize(
    "options", [ListOptions(label_selector="a in"), ListOptions(field_selector="spec.colour=red")]
)
async def test_bad_selectors_are_refused(open_cluster: Open, options: ListOptions) -> None:
    """A selector that cannot be understood selects nothing and says so."""
    async with open_cluster() as cluster:
        with pytest.raises(BadRequestError):
            await cluster.client.list(CONFIG_MAPS, cluster.namespace, options=options)


async def test_delete_collection_takes_what_it_selects(open_cluster: Open) -> None:
    """Deleting by label leaves the others."""
    async with open_cluster() as cluster:
        await make(cluster, "a", "b", colour="red")
        await make(cluster, "c", colour="blue")
        gone = await cluster.client.delete_collection(
            CONFIG_MAPS, cluster.namespace, selection=ListOptions(label_selector="colour=red")
        )
        assert mine(gone) == ["a", "b"]
        left = await cluster.client.list(CONFIG_MAPS, cluster.namespace)
        assert mine(left.items) == ["c"]


async def changes(cluster: Cluster, options: WatchOptions, most: int) -> list[tuple[str, str]]:
    """The first changes of a watch, by type and name."""
    found: list[tuple[str, str]] = []
    async with cluster.client.watch(CONFIG_MAPS, cluster.namespace, options=options) as events:
        async for event in events:
            if isinstance(event, Change) and event.object["metadata"]["name"] != "kube-root-ca.crt":
                assert event.resource_version == event.object["metadata"]["resourceVersion"]
                found.append((event.type, event.object["metadata"]["name"]))
                if len(found) == most:
                    break
    return found


async def test_a_watch_replays_what_came_after_its_version(open_cluster: Open) -> None:
    """Every change after a list is seen once and in order, also those made before the watch began."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await make(cluster, "before")
        since = (await client.list(CONFIG_MAPS, namespace)).resource_version
        await make(cluster, "a")
        await client.patch(CONFIG_MAPS, "a", merge_patch({"data": {"x": "1"}}), namespace)
        await client.delete(CONFIG_MAPS, "a", namespace)
        await make(cluster, "b")
        assert await changes(cluster, WatchOptions(resource_version=since), 4) == [
            ("ADDED", "a"),
            ("MODIFIED", "a"),
            ("DELETED", "a"),
            ("ADDED", "b"),
        ]


async def test_a_watch_sees_what_happens_while_it_is_open(open_cluster: Open) -> None:
    """A write reaches a watch that was waiting for it."""
    async with open_cluster() as cluster:
        since = (await cluster.client.list(CONFIG_MAPS, cluster.namespace)).resource_version
        watching = asyncio.create_task(changes(cluster, WatchOptions(resource_version=since), 3))
        await make(cluster, "a", "b", "c")
        assert await watching == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_a_watch_without_a_version_begins_with_what_there_is(open_cluster: Open) -> None:
    """What exists comes as added."""
    async with open_cluster() as cluster:
        await make(cluster, "a", "b")
        found = await changes(cluster, WatchOptions(), 2)
        assert sorted(found) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_deleted_object_has_the_version_of_its_deletion(open_cluster: Open) -> None:
    """A watch resumed from a deletion does not see it again."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        made = await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
        version = made["metadata"]["resourceVersion"]
        await client.delete(CONFIG_MAPS, "a", namespace)
        options = WatchOptions(resource_version=version)
        async with client.watch(CONFIG_MAPS, namespace, options=options) as events:
            async for event in events:
                if isinstance(event, Change) and event.object["metadata"]["name"] == "a":
                    break
        assert isinstance(event, Change)
        assert event.type == "DELETED"
        assert event.object["data"] == {"x": "1"}
        assert int(event.resource_version) > int(version)


async def test_a_selector_turns_changes_into_arrivals_and_departures(open_cluster: Open) -> None:
    """An object that begins to match is added, one that ceases to is deleted."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        since = (await client.list(CONFIG_MAPS, namespace)).resource_version
        await make(cluster, "a")
        for colour in ("red", "blue", "red"):
            await client.patch(
                CONFIG_MAPS,
                "a",
                merge_patch({"metadata": {"labels": {"colour": colour}}}),
                namespace,
            )
        options = WatchOptions(resource_version=since, label_selector="colour=red")
        assert await changes(cluster, options, 3) == [
            ("ADDED", "a"),
            ("DELETED", "a"),
            ("ADDED", "a"),
        ]


async def test_a_watch_ends_when_it_was_told_to(open_cluster: Open) -> None:
    """A watch with a timeout just ends."""
    async with open_cluster() as cluster:
        since = (await cluster.client.list(CONFIG_MAPS, cluster.namespace)).resource_version
        options = WatchOptions(resource_version=since, timeout_seconds=1)
        assert await changes(cluster, options, 99) == []


async def test_a_version_from_long_ago_is_expired(open_cluster: Open) -> None:
    """A watch cannot begin where history is no longer kept. Where all of it still is, the watch has all of it."""
    async with open_cluster() as cluster:
        await check_first_version(cluster)


async def test_a_fresh_server_still_has_its_first_version() -> None:
    """A watch from there tells everything that has happened."""
    store = Store.open(None)
    try:
        server = make_server(store)
        await create_first_objects(server.core)
        async with (
            InProcessClient(ServerBackend(server.core)) as client,
            working_in(client, forgets=False) as cluster,
        ):
            assert not await check_first_version(cluster)
    finally:
        store.close()


async def check_first_version(cluster: Cluster) -> bool:
    """Whether a watch from the first version is refused as expired. One that is not must be whole."""
    await make(cluster, "a", "b")
    await cluster.client.delete(CONFIG_MAPS, "a", cluster.namespace)
    options = WatchOptions(resource_version="1", timeout_seconds=5)
    try:
        found = await changes(cluster, options, 3)
    except ExpiredError:
        return True
    assert not cluster.forgets, "the server has forgotten its first versions, and does not say so"
    assert found == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    return False


async def test_an_informer_follows_a_selection(open_cluster: Open) -> None:
    """List, watch, cache and handlers work on every implementation."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await make(cluster, "a", "b", "c", of="mine")
        selection = Selection(CONFIG_MAPS, namespace, label_selector="of=mine")
        informer = Informer(client, selection, page_size=2)
        follower = Follower()
        informer.add_handler(follower)
        async with informer:
            await informer.wait_synced()
            await make(cluster, "d", of="mine")
            await make(cluster, "other")
            await client.delete(CONFIG_MAPS, "a", namespace)
            await client.patch(CONFIG_MAPS, "b", merge_patch({"data": {"x": "1"}}), namespace)
            await follower.until(lambda: len(follower.told) == 6)
        assert follower.told == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("ADDED", "c"),
            ("ADDED", "d"),
            ("DELETED", "a"),
            ("MODIFIED", "b"),
        ]


async def test_informers_of_many_writers_miss_nothing(open_cluster: Open) -> None:
    """Concurrent writers and two informers: both end up with what the server has."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        selection = Selection(CONFIG_MAPS, namespace, label_selector="of=many")
        first, second = Follower(), Follower()
        one, two = Informer(client, selection), Informer(client, selection)
        one.add_handler(first)
        two.add_handler(second)

        async def write(name: str) -> None:
            await make(cluster, name, of="many")
            for index in range(3):
                patch = merge_patch({"data": {"n": str(index)}})
                await client.patch(CONFIG_MAPS, name, patch, namespace)
            if name.endswith("0"):
                await client.delete(CONFIG_MAPS, name, namespace, options=DeleteOptions())

        async with one, two:
            await asyncio.gather(*(write(f"m{index}") for index in range(20)))
            page = await client.list(
                CONFIG_MAPS, namespace, options=ListOptions(label_selector="of=many")
            )
            truth = {
                f"{namespace}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
                for item in page.items
            }
            for follower in (first, second):
                await follower.until(lambda follower=follower: follower.versions() == truth)
        assert len(truth) == 18

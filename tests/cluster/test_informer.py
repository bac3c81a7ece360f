"""Informers keep up with a server that restarts, forgets, stutters and lies about the time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.fake_apiserver import Answer, CutWatch, Drop, FakeApiServer, status
from cluster.following import Follower
from drayman.cluster import Backoff, HttpClient, Informer, Selection
from drayman.cluster.errors import NotFoundError, Status
from drayman.cluster.informer import Notice
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import CONFIG_MAPS, JsonObject
from patience import PATIENCE_S

IN_NS = Selection(CONFIG_MAPS, "ns")


def quick() -> Backoff:
    return Backoff(0.001, 0.002, random.Random(1))


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[FakeApiServer, HttpClient]]:
    async with (
        FakeApiServer().running() as server,
        HttpClient(Connection(server.url), retries=NO_RETRIES) as client,
    ):
        yield server, client


def informer(client: HttpClient, **options) -> tuple[Informer[JsonObject], Follower]:
    made = Informer(client, IN_NS, backoff=quick(), **options)
    follower = Follower()
    made.add_handler(follower)
    return made, follower


def present(server: FakeApiServer) -> dict[str, str]:
    return {
        f"{namespace}/{name}": value["metadata"]["resourceVersion"]
        for (_, namespace, name), value in server.objects.items()
        if namespace == "ns"
    }


async def test_lists_then_follows() -> None:
    """What exists is told as added, then every change in order; the cache is what was told."""
    async with pair() as (server, client):
        for index in range(5):
            await server.put("configmaps", "ns", f"m{index}")
        await server.put("configmaps", "other", "elsewhere")
        following, follower = informer(client, page_size=2)
        async with following:
            await following.wait_synced()
            assert [name for _, name in follower.told] == [f"m{index}" for index in range(5)]
            await server.put("configmaps", "ns", "m1", data={"a": "b"})
            await server.remove("configmaps", "ns", "m0")
            await server.put("configmaps", "ns", "new")
            await follower.until(lambda: len(follower.told) == 8)
            assert follower.told[5:] == [("MODIFIED", "m1"), ("DELETED", "m0"), ("ADDED", "new")]
            assert following.cache.get("m1", "ns") == server.objects["configmaps", "ns", "m1"]
            assert following.cache.get("m0", "ns") is None
            assert len(following.cache) == 5
        lists = [seen for seen in server.seen if not seen.is_watch]
        assert len(lists) == 3


async def test_a_version_that_was_written_can_be_waited_for() -> None:
    """Whoever waits for it goes on when the handlers have been told of it, also if that was long ago; an end is raised."""
    async with pair() as (server, client):
        following, follower = informer(client)
        async with following:
            await following.wait_synced()
            for index in range(20):
                await server.put("configmaps", "ns", f"m{index}")
            version = server.objects["configmaps", "ns", "m19"]["metadata"]["resourceVersion"]
            for _ in range(2):
                await following.wait_seen(version)
                assert follower.told[-1] == ("ADDED", "m19")
            waiting = asyncio.create_task(following.wait_seen(str(int(version) + 1)))
            await asyncio.sleep(0)
            await following.stop()
            with pytest.raises(asyncio.CancelledError):
                await waiting


async def test_a_handler_that_was_removed_is_told_nothing_more() -> None:
    """The others are."""
    async with pair() as (server, client):
        following, follower = informer(client)
        other = Follower()
        following.add_handler(other)
        async with following:
            await following.wait_synced()
            following.remove_handler(other)
            await server.put("configmaps", "ns", "a")
            await follower.until(lambda: follower.told == [("ADDED", "a")])
        assert other.told == []


@pytest.mark.parametrize(
    "how", ["drop", "truncate", "end", '{"type":"ERROR","object":{"code":500}}']
)
async def test_a_broken_watch_is_resumed(how: str) -> None:
    """However a watch ends, the next one goes on where it ended, without a list."""
    async with pair() as (server, client):
        server.inject(CutWatch(1, how), when=lambda seen: seen.is_watch, times=3)
        following, follower = informer(client)
        async with following:
            await following.wait_synced()
            for index in range(10):
                await server.put("configmaps", "ns", f"m{index}")
            await follower.until(lambda: len(follower.told) == 10)
            assert follower.told == [("ADDED", f"m{index}") for index in range(10)]
        listed = [seen for seen in server.seen if not seen.is_watch and "limit" in seen.query]
        assert len([seen for seen in listed if seen.query["limit"] != "1"]) == 1


async def test_history_that_is_gone_is_made_up_for_by_a_list() -> None:
    """After a 410 the handlers are told what happened meanwhile: added, modified, deleted, made anew."""
    async with pair() as (server, client):
        for name in ("same", "changed", "gone", "anew"):
            await server.put("configmaps", "ns", name)
        following, follower = informer(client)
        async with following:
            await following.wait_synced()
            await server.stop()
            await server.put("configmaps", "ns", "changed", data={"a": "b"})
            await server.remove("configmaps", "ns", "gone")
            await server.remove("configmaps", "ns", "anew")
            await server.put("configmaps", "ns", "anew")
            await server.put("configmaps", "ns", "new")
            await server.compact()
            await server.start()
            await follower.until(lambda: follower.versions() == present(server))
            assert follower.told[4:] == [
                ("DELETED", "anew"),
                ("ADDED", "anew"),
                ("MODIFIED", "changed"),
                ("ADDED", "new"),
                ("DELETED", "gone"),
            ]


async def test_bookmarks_move_the_place_to_resume_from() -> None:
    """A watch of a quiet selection is not expired by what happens elsewhere."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        following, follower = informer(client)
        async with following:
            await following.wait_synced()
            await server.put("configmaps", "other", "busy")
            await server.put("configmaps", "ns", "b")
            await follower.until(lambda: len(follower.told) == 2)
            await server.put("configmaps", "other", "busy", data={"a": "b"})
            while following.resource_version != str(server.revision):
                await asyncio.sleep(0)
            before = len([seen for seen in server.seen if not seen.is_watch])
            await server.compact()
            await server.restart()
            await server.put("configmaps", "ns", "c")
            await follower.until(lambda: len(follower.told) == 3)
            later = [seen for seen in server.seen if not seen.is_watch][before:]
            assert all(seen.query.get("limit") == "1" for seen in later), "it listed again"


async def test_a_server_that_lost_its_data_is_listed_again() -> None:
    """A server that counts from the beginning again is not waited for until it catches up."""
    async with pair() as (server, client):
        for index in range(9):
            await server.put("configmaps", "ns", f"m{index}")
        following, follower = informer(client)
        async with following:
            await following.wait_synced()
            await server.stop()
            server.lose_everything()
            await server.put("configmaps", "ns", "fresh")
            await server.start()
            await follower.until(lambda: set(follower.state) == {"ns/fresh"})


async def test_a_list_that_keeps_expiring_is_asked_for_in_one_piece() -> None:
    """A list too long for the server's history comes to an end all the same."""
    async with pair() as (server, client):
        for index in range(5):
            await server.put("configmaps", "ns", f"m{index}")
        gone = Answer(410, status(410, "Expired"))
        server.inject(gone, when=lambda seen: "continue" in seen.query, times=99)
        following, follower = informer(client, page_size=2)
        async with following:
            await following.wait_synced()
            assert follower.versions() == present(server)


@pytest.mark.parametrize(
    "fault",
    [Answer(500, "oops"), Answer(403, status(403, "Forbidden")), Answer(200, "<html>"), Drop()],
)
async def test_trouble_at_the_start_delays_it_only(fault: Answer | Drop) -> None:
    """An informer that cannot list yet tries until it can."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        server.inject(fault, times=4)
        following, follower = informer(client)
        async with following:
            await following.wait_synced()
            assert follower.told == [("ADDED", "a")]


async def test_a_late_handler_is_told_what_there_is() -> None:
    """A handler that comes later knows as much as the others."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        following, _ = informer(client)
        async with following:
            await following.wait_synced()
            late = Follower()
            following.add_handler(late)
            assert late.told == [("ADDED", "a")]
            await server.put("configmaps", "ns", "b")
            await late.until(lambda: len(late.told) == 2)


async def test_what_a_handler_raises_ends_the_informer() -> None:
    """A handler that failed has missed a change, so nothing goes on as if it had not."""

    def fail(notice: Notice[JsonObject]) -> None:
        raise NotFoundError(Status(message="mine"))

    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        following = Informer(client, IN_NS, backoff=quick())
        following.add_handler(fail)
        following.start()
        with pytest.raises(RuntimeError, match="a handler of configmaps in ns failed"):
            await following.wait_synced()
        with pytest.raises(RuntimeError):
            await following.stop()


async def test_stopping_leaves_nothing_open() -> None:
    """A stopped informer has no task and no watch, and waiting for it ends."""
    async with pair() as (server, client):
        following, _ = informer(client)
        with pytest.raises(RuntimeError, match="not been started"):
            await following.wait_synced()
        async with following:
            await following.wait_synced()
            while not server.watching:
                await asyncio.sleep(0)
        await server.unwatched.wait()
        await following.stop()
        with pytest.raises(RuntimeError, match="already"):
            following.start()


async def test_indexes_follow_the_objects() -> None:
    """An index finds objects by what they say now."""

    def owners(value: JsonObject) -> list[str]:
        return (value.get("data") or {}).get("owners", "").split()

    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a", data={"owners": "x y"})
        following, follower = informer(client, indexers={"owner": owners})
        async with following:
            await following.wait_synced()
            assert len(following.cache.by_index("owner", "x")) == 1
            await server.put("configmaps", "ns", "a", data={"owners": "y z"})
            await server.put("configmaps", "ns", "b", data={"owners": "y"})
            await follower.until(lambda: len(follower.told) == 3)
            found = {value: len(following.cache.by_index("owner", value)) for value in "xyz"}
            assert found == {"x": 0, "y": 2, "z": 1}
            with pytest.raises(KeyError):
                following.cache.by_index("colour", "red")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 3)),
        st.tuples(st.just("remove"), st.integers(0, 3)),
        st.tuples(
            st.sampled_from(["restart", "compact", "settle", "drop", "truncate", "end"]), st.just(0)
        ),
    ),
    max_size=25,
)


async def carry_out(steps: list[tuple[str, int]]) -> None:
    async with pair() as (server, client):
        following, follower = informer(client, page_size=2)
        async with following:
            for step, which in steps:
                name = f"m{which}"
                if step == "put":
                    await server.put("configmaps", "ns", name, data={"n": str(server.revision)})
                elif step == "remove" and ("configmaps", "ns", name) in server.objects:
                    await server.remove("configmaps", "ns", name)
                elif step == "restart":
                    await server.restart()
                elif step == "compact":
                    await server.compact()
                elif step == "settle":
                    await follower.until(lambda: follower.versions() == present(server))
                elif step in ("drop", "truncate", "end"):
                    server.inject(CutWatch(0, step), when=lambda seen: seen.is_watch)
            await follower.until(lambda: follower.versions() == present(server))
            known = {
                f"{value['metadata']['namespace']}/{value['metadata']['name']}": value
                for value in following.cache
            }
            assert known == follower.state


@given(steps=STEPS)
def test_whatever_happens_the_handlers_end_up_with_the_truth(steps: list[tuple[str, int]]) -> None:
    """Writes, restarts, lost history and cut streams in any order: no change is missed, none told twice."""
    asyncio.run(asyncio.wait_for(carry_out(steps), PATIENCE_S))


async def test_trouble_that_lasts_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """And its end, for who reads the log of a node while its server is away."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        server.inject(Drop(), times=4)
        server.inject(Answer(403, status(403, "Forbidden")), times=4)
        following, _ = informer(client)
        async with following:
            await following.wait_synced()
        assert [record.getMessage() for record in caplog.records] == [
            "configmaps in ns: GET /api/v1/namespaces/ns/configmaps: Server disconnected",
            "configmaps in ns: Forbidden",
            "configmaps in ns: the server answers again",
        ]


async def test_a_resource_that_not_every_cluster_has_is_done_without() -> None:
    """Where it is not served there is none of it; once it is, it is followed."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        served = asyncio.Event()
        server.inject(
            Answer(404, status(404, "NotFound")), when=lambda _: not served.is_set(), times=10_000
        )
        optional = Selection(replace(CONFIG_MAPS, optional=True), "ns")
        following, follower = Informer(client, optional, backoff=quick()), Follower()
        following.add_handler(follower)
        async with following:
            await following.wait_synced()
            assert len(following.cache) == 0
            served.set()
            await follower.until(lambda: follower.told == [("ADDED", "a")])


async def test_a_resource_is_followed_in_the_version_that_a_cluster_has() -> None:
    """One of those with the same fields, whether or not it is the first; and in another one after an upgrade."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        served = {"v1beta1"}
        server.inject(
            Answer(404, status(404, "NotFound")),
            when=lambda seen: seen.path.split("/")[2] not in served,
            times=10_000,
        )
        several = replace(
            CONFIG_MAPS, version="v2", optional=True, other_versions=("v1beta1", "v1alpha1")
        )
        following = Informer(client, Selection(several, "ns"), backoff=quick())
        follower = Follower()
        following.add_handler(follower)
        async with following:
            await following.wait_synced()
            assert follower.told == [("ADDED", "a")]
            served.clear()
            served.add("v2")
            await server.put("configmaps", "ns", "b")
            await server.restart()
            await follower.until(lambda: follower.told == [("ADDED", "a"), ("ADDED", "b")])

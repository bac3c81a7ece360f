"""Several writes over HTTP: in order, and taken back where that is safe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cluster.fake_apiserver import Answer, Drop, FakeApiServer, Seen, status
from drayman.cluster import (
    CreateWrite,
    DeleteWrite,
    HttpClient,
    PatchWrite,
    WriteOptions,
    merge_patch,
)
from drayman.cluster.errors import ForbiddenError, PartialWriteError, UnreachableError
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import CONFIG_MAPS, JsonObject

FORBIDDEN = Answer(403, status(403, "Forbidden"))


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[FakeApiServer, HttpClient]]:
    async with (
        FakeApiServer().running() as server,
        HttpClient(Connection(server.url), retries=NO_RETRIES) as client,
    ):
        yield server, client


def create(name: str, **options) -> CreateWrite[JsonObject]:
    return CreateWrite(CONFIG_MAPS, {"metadata": {"name": name}}, "ns", WriteOptions(**options))


def third_create(seen: Seen) -> bool:
    return seen.method == "POST" and b'"c"' in seen.body


async def test_what_was_created_is_deleted_again_the_latest_first() -> None:
    """A refusal undoes the creates before it, by uid and version."""
    async with pair() as (server, client):
        server.inject(FORBIDDEN, when=third_create)
        with pytest.raises(ForbiddenError):
            await client.write_many([create("a"), create("b"), create("c"), create("d")])
        assert server.objects == {}
        assert [(seen.method, seen.path.rsplit("/", 1)[1]) for seen in server.seen] == [
            ("POST", "configmaps"),
            ("POST", "configmaps"),
            ("POST", "configmaps"),
            ("DELETE", "b"),
            ("DELETE", "a"),
        ]
        assert all(b"preconditions" in seen.body for seen in server.seen[3:])


async def test_what_somebody_else_touched_stays_and_is_named() -> None:
    """An object that has changed since is no longer ours to delete."""
    async with pair() as (server, client):
        server.inject(FORBIDDEN, when=third_create)
        create_again = server._create

        async def touched(body, where):
            answer = await create_again(body, where)
            if body["metadata"]["name"] == "a":
                await server.put("configmaps", "ns", "a", data={"by": "another"})
            return answer

        server._create = touched
        with pytest.raises(PartialWriteError) as partial:
            await client.write_many([create("a"), create("b"), create("c")])
        assert partial.value.left_behind == ("create of configmaps 'a'",)
        assert isinstance(partial.value.__cause__, ForbiddenError)
        assert set(server.objects) == {("configmaps", "ns", "a")}


async def test_what_is_gone_already_needs_no_clean_up() -> None:
    """An object that somebody deleted meanwhile is as good as taken back."""
    async with pair() as (server, client):
        server.inject(FORBIDDEN, when=third_create)
        missing = Answer(404, status(404, "NotFound"))
        server.inject(missing, when=lambda seen: seen.method == "DELETE", times=2)
        with pytest.raises(ForbiddenError):
            await client.write_many([create("a"), create("b"), create("c")])


async def test_deletes_and_patches_cannot_be_taken_back() -> None:
    """They are named instead; dry runs left nothing."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "old")
        await server.put("configmaps", "ns", "gone")
        server.inject(FORBIDDEN, when=third_create)
        change = PatchWrite(CONFIG_MAPS, "old", merge_patch({"data": {"x": "1"}}), "ns")
        with pytest.raises(PartialWriteError) as partial:
            await client.write_many(
                [
                    change,
                    DeleteWrite(CONFIG_MAPS, "gone", "ns"),
                    create("b", dry_run=True),
                    create("c"),
                ]
            )
        assert partial.value.left_behind == (
            "delete of configmaps 'gone'",
            "patch of configmaps 'old'",
        )


async def test_a_lost_answer_is_told_as_such() -> None:
    """Where the fate of the last write is unknown, the earlier ones are still taken back."""
    async with pair() as (server, client):
        server.inject(Drop(after=True), when=third_create)
        with pytest.raises(UnreachableError) as lost:
            await client.write_many([create("a"), create("c")])
        assert lost.value.outcome_unknown
        assert set(server.objects) == {("configmaps", "ns", "c")}

"""The informers of a process are shared, and its loops do not hurt each other."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from cluster.contract.clusters import cluster
from cluster.contract.objects import config_map
from drayman.cluster import Informers, InProcessClient, Notice
from drayman.cluster.resources import (
    CONFIG_MAPS,
    PODS,
    RESOURCE_CLAIMS,
    JsonObject,
    Resource,
    generic,
)


def by_colour(value: JsonObject) -> list[str]:
    return [(value.get("data") or {}).get("colour", "")]


def by_length(value: JsonObject) -> list[str]:
    return [str(len(value.get("data") or {}))]


async def test_one_informer_for_each_resource(tmp_path: Path) -> None:
    """Whoever asks for a resource gets the same cache; the same resource in another form is another one."""
    async with cluster("in-process", tmp_path) as place:
        informers = Informers(place.client)
        assert informers.informer(PODS) is informers.informer(PODS)
        assert informers.informer(PODS) is not informers.informer(PODS.as_values())
        claims: object = informers.informer(RESOURCE_CLAIMS)
        assert claims is not informers.informer(RESOURCE_CLAIMS.as_values())
        await informers.stop()


async def test_informers_asked_for_later_are_started_later(tmp_path: Path) -> None:
    """A second start brings in what was asked for since, and leaves the rest running."""
    async with cluster("in-process", tmp_path) as place:
        await place.client.create(CONFIG_MAPS, config_map("a"), place.namespace)
        informers = Informers(place.client)
        first = informers.informer(CONFIG_MAPS)
        await informers.start()
        await informers.wait_synced()
        assert first.cache.get("a", place.namespace) is not None
        later = informers.informer(PODS)
        assert not later.is_synced
        await informers.start()
        await informers.wait_synced()
        assert later.is_synced
        await informers.stop()


async def test_indexes_can_be_asked_for_later(tmp_path: Path) -> None:
    """An index covers what was there before it. Two different ones cannot have one name."""
    async with cluster("in-process", tmp_path) as place:
        await place.client.create(CONFIG_MAPS, config_map("a", colour="red"), place.namespace)
        informers = Informers(place.client)
        informers.informer(CONFIG_MAPS, indexers={"length": by_length})
        await informers.start()
        await informers.wait_synced()
        again = informers.informer(CONFIG_MAPS, indexers={"colour": by_colour})
        (found,) = again.cache.by_index("colour", "red")
        assert found["metadata"]["name"] == "a"
        with pytest.raises(ValueError, match="another index 'colour'"):
            informers.informer(CONFIG_MAPS, indexers={"colour": by_length})
        await informers.stop()


async def test_what_a_cluster_does_not_have_is_told_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However often somebody waits; what is asked for later is told then."""
    caplog.set_level(logging.INFO, "drayman.cluster")

    def absent(plural: str) -> Resource[JsonObject]:
        return replace(generic("x.example/v1", plural, "Absent"), optional=True)

    async with cluster("in-process", tmp_path) as place:
        informers = Informers(place.client)
        for resource in (absent("b"), CONFIG_MAPS, absent("a")):
            informers.informer(resource)
        await informers.start()
        await informers.wait_synced()
        await informers.wait_synced()
        assert caplog.messages == ["the cluster has no a.x.example, b.x.example; doing without"]
        informers.informer(absent("c"))
        await informers.start()
        await informers.wait_synced()
        assert caplog.messages[1:] == ["the cluster has no c.x.example; doing without"]
        await informers.stop()


async def test_a_handler_that_fails_is_alone_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure is reported; other handlers are told everything, before and after."""
    told: list[str] = []
    enough = asyncio.Event()

    def fail(notice: Notice[JsonObject]) -> None:
        raise LookupError("mine")

    def listen(notice: Notice[JsonObject]) -> None:
        told.append(notice.object["metadata"]["name"])
        if len(told) == 2:
            enough.set()

    async with cluster("in-process", tmp_path) as place:
        informers = Informers(place.client)
        informer = informers.informer(CONFIG_MAPS)
        informer.add_handler(fail)
        informer.add_handler(listen)
        await informers.start()
        with caplog.at_level(logging.ERROR):
            for name in "ab":
                await place.client.create(CONFIG_MAPS, config_map(name), place.namespace)
            await enough.wait()
        assert told == ["a", "b"]
        failures = [record for record in caplog.records if record.exc_info is not None]
        assert len(failures) == 2
        assert "configmaps" in failures[0].getMessage()
        await informers.stop()


async def test_all_end_even_where_one_has_failed(tmp_path: Path) -> None:
    """Stopping raises what ended an informer before, and no failure of another is left behind."""
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    async with cluster("in-process", tmp_path) as place:

        class Broken(InProcessClient):
            async def _list(self, *_: object) -> NoReturn:
                raise LookupError("a bug")

        assert isinstance(place.client, InProcessClient)
        informers = Informers(Broken(place.client._backend))
        informers.informer(PODS)
        informers.informer(CONFIG_MAPS)
        await informers.start()
        await asyncio.sleep(0.01)
        with pytest.raises(LookupError, match="a bug"):
            await informers.stop()
    del informers
    gc.collect()
    assert lost == []

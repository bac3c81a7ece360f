"""Stored objects follow their definition, while other requests are answered."""

from __future__ import annotations

import asyncio
import threading
from copy import deepcopy
from functools import partial

import pytest

from drayman.apiserver.extensions import migration
from drayman.apiserver.requests.beside import ON_BEHALF_OF
from drayman.cluster.breaks import Breaks

MERGE = "application/merge-patch+json"


def with_default(definition, replicas):
    """A change of the definition: `replicas` has this default."""
    versions = deepcopy(definition["spec"]["versions"])
    spec = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["replicas"]["default"] = replicas
    return {"spec": {"versions": versions}}


async def make(api, definition, widget, paths, names):
    await api("POST", paths[0], definition)
    for name in names:
        made = widget(size=1)
        made["metadata"]["name"] = name
        assert (await api("POST", paths[1], made)).status == 201


async def replicas_of(api, paths, names):
    return {(await api("GET", f"{paths[1]}/{name}")).body["spec"].get("replicas") for name in names}


def test_others_have_their_turn_after_each_object(play, definition, widget, paths, monkeypatch):
    """Where a break is due after each object, one is taken after each object."""
    monkeypatch.setattr(migration, "Breaks", partial(Breaks, iter(range(10**6)).__next__))
    names = [f"w{number}" for number in range(50)]

    async def scenario(api):
        await make(api, definition, widget, paths, names)
        turns = 0

        async def others():
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        path = f"{paths[0]}/widgets.example.com"
        await api("PATCH", path, with_default(definition, 3), MERGE)
        beside = asyncio.create_task(others())
        await api.server.core.resources.settled()
        beside.cancel()
        assert turns >= len(names)
        assert await replicas_of(api, paths, names) == {3}

    play(scenario)


def test_large_objects_are_converted_in_another_thread(
    play, definition, widget, paths, monkeypatch
):
    """And on behalf of no user, whichever request comes first."""
    seen = []
    as_stored = migration.as_stored

    def noting(obj, schema):
        seen.append((threading.current_thread(), len(obj["spec"]["color"])))
        as_stored(obj, schema)

    monkeypatch.setattr(migration, "as_stored", noting)

    async def scenario(api):
        await api("POST", paths[0], definition)
        for name, color in (("small", "red"), ("large", "r" * 100_000)):
            made = widget(color=color)
            made["metadata"]["name"] = name
            await api("POST", paths[1], made)
        ON_BEHALF_OF.set("a user")
        path = f"{paths[0]}/widgets.example.com"
        await api("PATCH", path, with_default(definition, 3), MERGE)
        await api.server.core.resources.settled()
        main = threading.main_thread()
        assert {(thread is main, length) for thread, length in seen} == {
            (True, 3),
            (False, 100_000),
        }
        assert await replicas_of(api, paths, ["small", "large"]) == {3}

    play(scenario)


@pytest.mark.parametrize("count", [1, 19, 20, 21, 45])
def test_all_objects_are_converted(play, definition, widget, paths, count):
    """However many there are."""
    names = [f"w{number}" for number in range(count)]

    async def scenario(api):
        await make(api, definition, widget, paths, names)
        path = f"{paths[0]}/widgets.example.com"
        await api("PATCH", path, with_default(definition, 3), MERGE)
        await api.server.core.resources.settled()
        assert await replicas_of(api, paths, names) == {3}

    play(scenario)


def test_a_migration_ends_when_the_definition_changes_again(
    play, definition, widget, paths, monkeypatch
):
    """What the next one has converted, the first does not convert back."""
    may_go_on = asyncio.Event()

    class Waiting(Breaks):
        async def between(self):
            await may_go_on.wait()

    monkeypatch.setattr(migration, "Breaks", Waiting)
    converted = []
    as_stored = migration.as_stored

    def noting(obj, schema):
        converted.append(schema["properties"]["spec"]["properties"]["replicas"].get("default"))
        as_stored(obj, schema)

    monkeypatch.setattr(migration, "as_stored", noting)
    names = [f"w{number}" for number in range(50)]

    async def scenario(api):
        await make(api, definition, widget, paths, names)
        path = f"{paths[0]}/widgets.example.com"
        for replicas in (3, 4):
            await api("PATCH", path, with_default(definition, replicas), MERGE)
            await api("GET", f"{paths[1]}/w0")
            await asyncio.sleep(0)  # it begins, and takes a break after the first object
        may_go_on.set()
        await api.server.core.resources.settled()
        assert (converted.count(3), converted.count(4)) == (1, len(names))
        assert await replicas_of(api, paths, names) == {4}

    play(scenario)

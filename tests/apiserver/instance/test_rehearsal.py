"""What is done ahead of the first user leaves no traces."""

from __future__ import annotations

import asyncio

import pytest

from drayman.allocator import Policy
from drayman.apiserver.instance import rehearsal
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.instance.rehearsal import POD_COUNT, rehearse
from drayman.apiserver.serving.assembly import make_server
from drayman.cluster.embedded import Store
from drayman.scheduler.running import SchedulerOptions


@pytest.mark.parametrize(
    "options",
    [
        SchedulerOptions(),
        SchedulerOptions(names=frozenset({"another"}), policy=Policy.FIRST_FIT),
    ],
    ids=["as delivered", "another name and policy"],
)
async def test_every_pod_is_placed_and_nothing_is_left(
    options: SchedulerOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the store of the real cluster, nor on the event loop, nor in the log."""
    caplog.set_level("INFO")
    store = Store.open(None)
    try:
        core = make_server(store).core
        await create_first_objects(core)
        before, tasks = store.revision, asyncio.all_tasks()
        assert await rehearse(core.resources, options) == POD_COUNT
        assert store.revision == before
        assert asyncio.all_tasks() == tasks
        assert not caplog.messages
    finally:
        store.close()


async def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pods cannot be placed, the rehearsal ends as well."""
    monkeypatch.setattr(rehearsal, "PATIENCE_S", 0.05)
    monkeypatch.setattr(rehearsal, "_SCENERY", rehearsal._SCENERY[:2])
    store = Store.open(None)
    try:
        assert await rehearse(make_server(store).core.resources, SchedulerOptions()) == 0
    finally:
        store.close()


async def test_being_interrupted_leaves_nothing() -> None:
    """The server may stop before it is over."""
    store = Store.open(None)
    try:
        before = asyncio.all_tasks()
        core = make_server(store).core
        task = asyncio.create_task(rehearse(core.resources, SchedulerOptions()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        assert asyncio.all_tasks() == before
    finally:
        store.close()

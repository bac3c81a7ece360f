"""What is done ahead of the first user leaves no traces."""

from __future__ import annotations

import pytest

from drayman.apiserver.assembly import make_server
from drayman.apiserver.backend import ServerBackend
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.instance.warming import warm_up
from drayman.cluster.embedded import Store
from drayman.cluster.inprocess import InProcessClient
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS


async def test_warming_up_creates_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A pod and a claim go through all that a creation does, and no version of the store is spent on them."""
    caplog.set_level("INFO")
    store = Store.open(None)
    try:
        core = make_server(store).core
        await create_first_objects(core)
        client = InProcessClient(ServerBackend(core))
        before = store.revision
        await warm_up(client)
        assert store.revision == before
        assert not (await client.list_all(PODS)).items
        assert not (await client.list_all(RESOURCE_CLAIMS)).items
        assert not caplog.messages
    finally:
        store.close()


async def test_a_namespace_that_takes_no_pods_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without the namespace both are refused; that is noted and nothing else."""
    caplog.set_level("INFO")
    store = Store.open(None)
    try:
        await warm_up(InProcessClient(ServerBackend(make_server(store).core)))
        assert "nothing could be created for show" in caplog.text
    finally:
        store.close()

"""What is asked after a write was refused, and what was shown in the meantime."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import InProcessClient
from drayman.cluster.embedded import Store
from drayman.cluster.errors import HELD_BY, ConflictError, Status, StatusCause, StatusDetails
from drayman.cluster.resources import RESOURCE_CLAIMS, JsonObject
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.scheduler.aftermath import learn_holders

NAMESPACE = "default"
CLAIM: JsonObject = {
    "metadata": {"name": "c", "namespace": NAMESPACE},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}
HELD = ConflictError(
    Status(details=StatusDetails(causes=(StatusCause(reason=HELD_BY, message=f"{NAMESPACE}/c"),)))
)


class Overtaken(InProcessClient):
    """If it has a state, the watch shows that a claim is gone before the answer about it is read."""

    state: ClusterState | None = None

    async def get(self, *args: Any, **options: Any) -> Any:
        found = await super().get(*args, **options)
        if self.state is not None:
            self.state.set_claim(found)
            self.state.remove_claim(found)
        return found


@pytest.mark.parametrize("is_overtaken", [True, False])
async def test_a_holder_that_is_gone_by_the_time_of_the_answer_is_gone(is_overtaken: bool) -> None:
    """Otherwise nothing would ever free its devices."""
    state = ClusterState(Features(), lambda _: None)
    with closing(Store.open(None)) as store:
        server = make_server(store)
        await create_first_objects(server.core)
        async with Overtaken(ServerBackend(server.core)) as client:
            await client.create(RESOURCE_CLAIMS.as_values(), CLAIM)
            client.state = state if is_overtaken else None
            assert await learn_holders(client, state, HELD)
    assert (state.find_claim(NAMESPACE, "c") is None) == is_overtaken

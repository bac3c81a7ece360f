"""Kueue's visibility API: who waits in a queue, from the engine that decides."""

from __future__ import annotations

import json

import pytest

from drayman.apiserver.instance.visibility import GROUP, Visibility
from drayman.apiserver.protocol.exchange import Query, Request, Response
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded import Store
from drayman.explain.queues.engine import queues_of
from drayman.quota.state import QuotaState
from explain.hall import Hall


def engine() -> QuotaState:
    hall = Hall().flavor("f").queue("q", f=1).local("lq-other", "q")
    hall.workload("first", "q", 2).workload("second", "lq-other", 2)
    hall.workload("urgent", "q", 2, priority=9).workload("last", "q", 2)
    return queues_of(hall.world()).state


@pytest.fixture
def server() -> ApiServer:
    made, state = make_server(Store.open(None)), engine()
    for resource in Visibility(lambda: state).resources():
        made.core.resources.add(resource)
    return made


async def ask(server: ApiServer, path: str, version: str = "v1beta2", **query: str) -> Response:
    request = Request("GET", f"/apis/{GROUP}/{version}/{path}", Query(tuple(query.items())))
    answer = await server.handle(request)
    assert isinstance(answer, Response)
    return answer


def rows(answer: Response) -> list[tuple[str, str, int, int, int]]:
    return [
        (
            each["metadata"]["name"],
            each["localQueueName"],
            each["priority"],
            each["positionInClusterQueue"],
            each["positionInLocalQueue"],
        )
        for each in json.loads(answer.body)["items"]
    ]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_a_cluster_queue_is_listed_in_its_order(server: ApiServer, version: str) -> None:
    """By priority, then by age; positions begin with 0, also in each local queue."""
    answer = await ask(server, "clusterqueues/q/pendingworkloads", version)
    assert json.loads(answer.body)["apiVersion"] == f"{GROUP}/{version}"
    assert rows(answer) == [
        ("urgent", "lq-q", 9, 0, 0),
        ("first", "lq-q", 0, 1, 1),
        ("second", "lq-other", 0, 2, 0),
        ("last", "lq-q", 0, 3, 2),
    ]


async def test_a_local_queue_has_its_own(server: ApiServer) -> None:
    """With their positions in both queues."""
    path = "namespaces/default/localqueues/lq-other/pendingworkloads"
    assert rows(await ask(server, path)) == [("second", "lq-other", 0, 2, 0)]


async def test_a_part_of_the_list(server: ApiServer) -> None:
    """From an offset, at most so many."""
    answer = await ask(server, "clusterqueues/q/pendingworkloads", offset="1", limit="2")
    assert [name for name, *_ in rows(answer)] == ["first", "second"]


REFUSED = {
    "no such cluster queue": ("clusterqueues/none/pendingworkloads", {}, 404),
    "no such local queue": ("namespaces/default/localqueues/q/pendingworkloads", {}, 404),
    "a limit that is no number": ("clusterqueues/q/pendingworkloads", {"limit": "x"}, 400),
    "an offset below nothing": ("clusterqueues/q/pendingworkloads", {"offset": "-1"}, 400),
    "queues themselves are not here": ("clusterqueues/q", {}, 405),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_refused(server: ApiServer, case: str) -> None:
    """With a status that clients know."""
    path, query, code = REFUSED[case]
    assert (await ask(server, path, **query)).status == code

"""Kueue's visibility API: who waits in a queue, from the engine that decides."""

from __future__ import annotations

import json

import pytest

from drayman.api.codec import convert
from drayman.api.kueue_workload import Workload
from drayman.apiserver.instance.visibility import GROUP, Visibility
from drayman.apiserver.protocol.exchange import Query, Request, Response
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded import Store
from drayman.explain.queues.engine import queues_of
from drayman.quota.state import QuotaState
from explain.hall import Hall
from quota.queues import Story, queue, workload


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


async def test_an_answer_is_no_longer_than_so_many(server: ApiServer) -> None:
    """Whatever limit is asked for: the server has nothing else to do while it writes one."""
    crowded = Story(queue("q", 1)).run.state
    for number in range(10_001):
        crowded.set_workload(convert(Workload, workload(f"w{number}", "q", 2)), 0.0)
    for resource in Visibility(lambda: crowded).resources():
        server.core.resources.add(resource)
    path, limit = "clusterqueues/q/pendingworkloads", str(2**63 - 1)
    assert len(rows(await ask(server, path, limit=limit))) == 10_000
    assert [row[0] for row in rows(await ask(server, path, limit=limit, offset="10000"))] == [
        "w10000"
    ]
    assert rows(await ask(server, path, offset=limit)) == []


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

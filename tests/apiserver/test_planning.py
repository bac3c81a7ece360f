"""Large writes are planned in another thread: others are answered meanwhile, and no write is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from building import Harness, config, decoded
from drayman.apiserver.answers.forms import answer_page
from drayman.apiserver.protocol.exchange import Query, Request
from drayman.apiserver.protocol.limits import LARGE_WORK
from drayman.apiserver.requests.beside import beside
from drayman.apiserver.serving import dispatch
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.cluster.embedded.model import Key, Put
from drayman.cluster.embedded.store import Store
from patience import PATIENCE_S

LARGE = {"filler": "x" * LARGE_WORK}
MERGE = {"content-type": "application/merge-patch+json"}


class Meanwhile(AdmissionPlugin):
    """Does something in the middle of the first plan, and waits until it is done."""

    def __init__(self, act: Callable[[threading.Event], None]) -> None:
        self._act: Callable[[threading.Event], None] | None = act
        self.threads: list[str] = []

    def validate(self, write: Admitted) -> None:
        if write.resource.plural != "configmaps" or write.name != "large":
            return
        self.threads.append(threading.current_thread().name)
        act, self._act = self._act, None
        if act is not None:
            done = threading.Event()
            act(done)
            assert done.wait(PATIENCE_S), "the event loop does not answer"


def meanwhile(harness: Harness, work: Callable[[], Any]) -> Meanwhile:
    """Have the event loop do some work while a write of the map `large` is planned."""
    loop = asyncio.get_running_loop()

    def act(done: threading.Event) -> None:
        async def run() -> None:
            await work()
            done.set()

        asyncio.run_coroutine_threadsafe(run(), loop)

    plugin = Meanwhile(act)
    harness.server.core.admission.plugins.append(plugin)
    return plugin


async def test_others_are_answered_while_a_large_write_is_planned() -> None:
    """The plan waits for a request of somebody else, which could not be answered if it were planned in the event loop."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("small"))
    plugin = meanwhile(harness, lambda: harness.json("GET", f"{base}/configmaps/small"))
    made = await harness.send("POST", f"{base}/configmaps", config("large", **LARGE))
    assert made.status == 201
    assert plugin.threads != [threading.main_thread().name]


async def test_small_writes_are_planned_at_once() -> None:
    """They are not worth another thread."""
    harness = Harness()
    base = await harness.namespace()
    plugin = Meanwhile(threading.Event.set)
    harness.server.core.admission.plugins.append(plugin)
    await harness.json("POST", f"{base}/configmaps", config("large"))
    assert plugin.threads == [threading.main_thread().name]


async def test_a_small_patch_of_a_large_object_is_large() -> None:
    """What counts is how much is looked at."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("large", **LARGE))
    plugin = Meanwhile(threading.Event.set)
    harness.server.core.admission.plugins.append(plugin)
    patched = await harness.send("PATCH", f"{base}/configmaps/large", {"data": {"a": "b"}}, MERGE)
    assert patched.status == 200
    assert plugin.threads != [threading.main_thread().name]


async def test_a_write_that_others_overtake_is_planned_again() -> None:
    """Both changes are there in the end."""
    harness = Harness()
    base = await harness.namespace()
    path = f"{base}/configmaps/large"
    await harness.json("POST", f"{base}/configmaps", config("large", **LARGE))
    plugin = meanwhile(harness, lambda: small(harness, path))
    patched = await harness.send("PATCH", path, {"data": {"ours": "1"}}, MERGE)
    assert patched.status == 200
    data = (await harness.json("GET", path))["data"]
    assert {"ours", "theirs"} <= data.keys()
    assert len(plugin.threads) == 2


async def test_large_writes_of_one_object_are_planned_once_each() -> None:
    """They wait for each other, so none of them is planned on what another is about to change."""
    harness = Harness()
    base = await harness.namespace()
    path = f"{base}/configmaps/large"
    await harness.json("POST", f"{base}/configmaps", config("large", **LARGE))
    plugin = Meanwhile(threading.Event.set)
    harness.server.core.admission.plugins.append(plugin)
    changes = [{"data": {f"k{number}": "1"}} for number in range(10)]
    patched = await asyncio.gather(
        *(harness.send("PATCH", path, change, MERGE) for change in changes)
    )
    assert [answer.status for answer in patched] == [200] * 10
    assert len(plugin.threads) == 10
    assert len((await harness.json("GET", path))["data"]) == 11


async def small(harness: Harness, path: str) -> None:
    """A change of a large object by the store itself."""
    _, _, _, _, namespace, _, name = path.split("/")
    key = Key("configmaps", namespace, name)
    stored = harness.store.latest(key)
    assert stored is not None
    changed = {**stored.value, "data": {**stored.value["data"], "theirs": "1"}}

    def encoded(revision: int) -> bytes:
        metadata = {**changed["metadata"], "resourceVersion": str(revision)}
        return json.dumps({**changed, "metadata": metadata}).encode()

    await harness.store.write([Put(key, encoded)])


@pytest.mark.parametrize("version", [True, False])
async def test_an_update_that_others_overtake(version: bool) -> None:
    """With a version it is refused; without one it replaces whatever there is."""
    harness = Harness()
    base = await harness.namespace()
    path = f"{base}/configmaps/large"
    made = await harness.json("POST", f"{base}/configmaps", config("large", **LARGE))
    meanwhile(harness, lambda: small(harness, path))
    body = {**made, "data": {**LARGE, "ours": "1"}}
    if not version:
        del body["metadata"]["resourceVersion"]
    updated = await harness.send("PUT", path, body)
    assert updated.status == (409 if version else 200), decoded(updated)
    data = (await harness.json("GET", path))["data"]
    assert ("theirs" in data, "ours" in data) == (version, not version)


async def test_an_object_that_is_deleted_meanwhile_is_not_found() -> None:
    """As if the patch had come later."""
    harness = Harness()
    base = await harness.namespace()
    path = f"{base}/configmaps/large"
    await harness.json("POST", f"{base}/configmaps", config("large", **LARGE))
    meanwhile(harness, lambda: harness.send("DELETE", path))
    patched = await harness.send("PATCH", path, {"data": {"ours": "1"}}, MERGE)
    assert patched.status == 404


async def test_a_refusal_is_the_same() -> None:
    """What planning raises in another thread is answered as usual."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("large", **LARGE))
    again = await harness.send("POST", f"{base}/configmaps", config("large", **LARGE))
    assert (again.status, decoded(again)["reason"]) == (409, "AlreadyExists")


class Threads(AdmissionPlugin):
    """Notes in which threads writes of some resource are planned."""

    def __init__(self, plural: str) -> None:
        self._plural = plural
        self.seen: set[str] = set()

    def validate(self, write: Admitted) -> None:
        if write.resource.plural == self._plural:
            self.seen.add(threading.current_thread().name)


LONG_EXPRESSION = " || ".join(["device.driver == 'a'"] * 120)
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def claim(expression: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}}]
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": selectors}}
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}


def definition(**items: Any) -> dict[str, Any]:
    spec = {"type": "array", "maxItems": 100, "items": {"type": "integer"}, **items}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    group = {"group": "example.com", "scope": "Namespaced", "names": names}
    return {"metadata": {"name": "widgets.example.com"}, "spec": {**group, "versions": [version]}}


RULE = {"x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x == y))"}]}
WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": [1, 2],
}


async def post(server: ApiServer, path: str, body: dict[str, Any]) -> int:
    """The status of the answer."""
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    return (await server.handle(Request("POST", path, Query(), headers, data))).status


@pytest.mark.parametrize(
    ("first", "path", "body", "beside"),
    [
        (None, CLAIMS, claim("device.driver == 'a'"), False),
        (None, CLAIMS, claim(LONG_EXPRESSION), True),
        (definition(), WIDGETS, WIDGET, False),
        (definition(**RULE), WIDGETS, WIDGET, True),
        (None, DEFINITIONS, definition(description="x" * 3_000), True),
    ],
    ids=["a claim", "a long selector", "a custom object", "one with rules", "a definition"],
)
async def test_costly_writes_are_planned_beside(
    first: dict[str, Any] | None, path: str, body: dict[str, Any], beside: bool
) -> None:
    """However small they are: expressions take longer to compile and to evaluate than their length suggests."""
    server = make_server(Store.open(None))
    threads = Threads(path.rpartition("/")[2])
    server.core.admission.plugins.append(threads)
    assert await post(server, "/api/v1/namespaces", {"metadata": {"name": "default"}}) == 201
    if first is not None:
        assert await post(server, DEFINITIONS, first) == 201
    assert await post(server, path, body) == 201
    assert (threads.seen != {threading.main_thread().name}) is beside


async def test_small_costly_writes_do_not_wait_for_large_work() -> None:
    """A custom object with rules, and a claim with a long selector, while a large body takes seconds."""
    server = make_server(Store.open(None))
    assert await post(server, "/api/v1/namespaces", {"metadata": {"name": "default"}}) == 201
    assert await post(server, DEFINITIONS, definition(**RULE)) == 201
    done = threading.Event()
    large = asyncio.create_task(beside(lambda: done.wait(2 * PATIENCE_S)))
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await post(server, WIDGETS, WIDGET) == 201
            assert await post(server, CLAIMS, claim(LONG_EXPRESSION)) == 201
        assert not large.done()
    finally:
        done.set()
        await large


@pytest.fixture
def forming(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The threads in which lists get their form."""
    threads: set[str] = set()

    def noted(*args: Any) -> Any:
        threads.add(threading.current_thread().name)
        return answer_page(*args)

    monkeypatch.setattr(dispatch, "answer_page", noted)
    return threads


@pytest.mark.parametrize(
    ("accept", "beside"),
    [
        ("application/json", False),
        ("application/yaml", True),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", True),
    ],
)
async def test_large_answers_get_their_form_beside(
    accept: str, beside: bool, forming: set[str]
) -> None:
    """A table of thousands of objects takes half a second, and so does a megabyte of YAML."""
    harness = Harness()
    base = await harness.namespace()
    for number in range(3):
        await harness.json("POST", f"{base}/configmaps", config(f"c{number}", a="x" * 30_000))
    answer = await harness.send("GET", f"{base}/configmaps", None, {"accept": accept})
    assert answer.status == 200
    assert (forming != {threading.main_thread().name}) is beside


@pytest.mark.parametrize(("version", "beside"), [("v1", False), ("v1beta1", True)])
async def test_large_lists_are_converted_beside(
    version: str, beside: bool, forming: set[str]
) -> None:
    """Each object of a list in another version than the stored one is decoded and encoded."""
    server = make_server(Store.open(None))
    assert await post(server, "/api/v1/namespaces", {"metadata": {"name": "default"}}) == 201
    for number in range(3):
        large = claim("device.driver == 'a'")
        large["metadata"] = {"name": f"c{number}", "annotations": {"a": "x" * 30_000}}
        assert await post(server, CLAIMS, large) == 201
    answer = await server.handle(Request("GET", CLAIMS.replace("/v1/", f"/{version}/")))
    assert answer.status == 200
    assert (forming != {threading.main_thread().name}) is beside


@pytest.mark.parametrize(
    ("items", "beside"), [([1, 2], False), (list(range(100)), True)], ids=["few", "many"]
)
async def test_rules_that_turn_out_to_be_cheap_are_evaluated_at_once(
    items: list[int], beside: bool
) -> None:
    """Once they are compiled. What costs more is found out on the way, planned again in another thread, and written once."""
    server = make_server(Store.open(None))
    assert await post(server, "/api/v1/namespaces", {"metadata": {"name": "default"}}) == 201
    assert await post(server, DEFINITIONS, definition(**RULE)) == 201
    assert await post(server, WIDGETS, WIDGET) == 201
    threads = Threads("widgets")
    server.core.admission.plugins.append(threads)
    body = {**WIDGET, "metadata": {"name": "next", "finalizers": ["example.com/a"]}, "spec": items}
    assert await post(server, WIDGETS, body) == 201
    assert (threads.seen != {threading.main_thread().name}) is beside
    (made,) = [
        each.value
        for each in server.core.store.list("widgets.example.com")
        if each.key.name == "next"
    ]
    assert made["spec"] == items
    assert (made["metadata"]["generation"], made["metadata"]["finalizers"]) == (
        1,
        ["example.com/a"],
    )


async def test_costly_rules_refuse_what_they_should() -> None:
    """Whichever thread finds out."""
    server = make_server(Store.open(None))
    assert await post(server, "/api/v1/namespaces", {"metadata": {"name": "default"}}) == 201
    assert await post(server, DEFINITIONS, definition(**RULE)) == 201
    for items in ([1, 1], [*range(99), 0]):
        assert await post(server, WIDGETS, {**WIDGET, "spec": items}) == 422

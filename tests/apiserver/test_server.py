"""What is not about one verb: routing, forms of answers, discovery, health, rights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from building import Harness, PlainStrategy, config, decoded
from drayman.apiserver.describing.metrics import MOST_SERIES, Metrics
from drayman.apiserver.protocol.access import AccessDecision, Attributes, Grant, User
from drayman.apiserver.served.strategy import Context, Object
from drayman.cluster.embedded.store import Key, Put, Store

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/pods", 200),
        ("GET", "/api/v1/pods/", 200),
        ("POST", "/api/v1/pods", 405),
        ("GET", "/api/v1/pods/p", 404),
        ("HEAD", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("GET", "/api/v1//pods", 404),
        ("GET", "/api/v1/nonsense", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/apis/nope.example/v1/things", 404),
        ("GET", "/nonsense", 404),
        ("GET", "/api/v1/namespaces/ns/namespaces", 404),
        ("GET", "/api/v1/namespaces/ns/pods/p/nonsense", 404),
        ("GET", "/api/v1/namespaces/ns/pods/a%b", 400),
        ("PATCH", "/api/v1/namespaces/ns/pods", 405),
        ("GET", "/version", 200),
        ("GET", "/version/", 200),
        ("GET", "/healthz", 200),
        ("GET", "/readyz/ping", 200),
        ("GET", "/readyz/nonsense", 404),
        ("GET", "/metrics", 200),
        ("GET", "/", 200),
    ],
)
async def test_every_path_has_its_status(method: str, path: str, status: int) -> None:
    """Whether it is served, and with which methods."""
    harness = Harness()
    await harness.namespace()
    assert (await harness.send(method, path)).status == status


async def test_a_table_has_a_row_per_object() -> None:
    """With its metadata beside the cells."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a"))
    table = decoded(await harness.send("GET", f"{base}/configmaps", headers={"accept": TABLE}))
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Created At"]
    (row,) = table["rows"]
    assert row["cells"] == ["a", "2026-01-02T03:04:05Z"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("accept", "status", "content_type"),
    [
        ("", 200, "application/json"),
        ("*/*", 200, "application/json"),
        ("application/yaml", 200, "application/yaml"),
        ("application/vnd.kubernetes.protobuf,application/json", 200, "application/json"),
        ("text/html", 406, "application/json"),
        ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", 406, "application/json"),
    ],
)
async def test_the_first_form_that_can_be_served_is(
    accept: str, status: int, content_type: str
) -> None:
    """And nothing else is sent to a client that accepts none."""
    harness = Harness()
    response = await harness.send("GET", "/api/v1/pods", headers={"accept": accept})
    assert (response.status, response.content_type) == (status, content_type)


async def test_list_items_go_without_their_kind() -> None:
    """It is the list's."""
    harness = Harness()
    base = await harness.namespace()
    created = await harness.json("POST", f"{base}/configmaps", config("a", k="<"))
    (item,) = (await harness.json("GET", f"{base}/configmaps"))["items"]
    assert item == {name: v for name, v in created.items() if name not in ("kind", "apiVersion")}


async def test_discovery_lists_what_is_served() -> None:
    """In the old form and in the aggregated one, which need not be sent twice."""
    harness = Harness()
    old = await harness.json("GET", "/api/v1")
    assert "pods/status" in [resource["name"] for resource in old["resources"]]
    new = await harness.send("GET", "/apis", headers={"accept": AGGREGATED})
    assert [item["metadata"]["name"] for item in decoded(new)["items"]] == ["coordination.k8s.io"]
    headers = {"accept": AGGREGATED, "if-none-match": new.headers["Etag"]}
    assert (await harness.send("GET", "/apis", headers=headers)).status == 304


class NobodyMay:
    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        return AccessDecision(allowed=False)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        return iter(())


async def test_who_may_not_is_told_what() -> None:
    """In the words of RBAC."""
    harness = Harness()
    harness.server.core.authorizer = NobodyMay()
    response = await harness.send("GET", "/api/v1/namespaces/ns/pods/p")
    message = decoded(response)["message"]
    assert response.status == 403
    assert message == (
        'pods "p" is forbidden: User "kubernetes-admin" cannot get resource "pods" in API group "" '
        'in the namespace "ns"'
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"\xff",
        b'{"metadata":5}',
        b'{"metadata":{"name":["x"]}}',
        b"\x00" * 9,
    ],
)
async def test_a_body_that_is_no_object_is_the_clients_fault(body: bytes) -> None:
    """Never the server's."""
    harness = Harness()
    base = await harness.namespace()
    response = await harness.send("POST", f"{base}/configmaps", body)
    assert 400 <= response.status < 500


class OvertakenStrategy(PlainStrategy):
    """While an update is decided about, somebody else writes the object: in memory a write is done at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        key = Key("leases.coordination.k8s.io", "ns", "a")
        found = self._store.latest(key)
        assert found is not None
        with pytest.raises(StopIteration):
            self._store.write([Put(key, lambda _: found.data)]).send(None)


async def test_an_update_that_is_overtaken_is_a_conflict() -> None:
    """Where the store finds another revision than the update was decided on, the client is told to try again."""
    harness = Harness()
    await harness.namespace()
    path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
    lease = await harness.json("POST", path, {"metadata": {"name": "a"}})
    resources = harness.server.core.resources
    resource = resources.named("coordination.k8s.io", "leases")
    assert resource is not None
    resources.add(replace(resource, strategy=OvertakenStrategy(harness.store)))
    lease["spec"] = {"holderIdentity": "me"}
    answer = await harness.send("PUT", f"{path}/a", lease)
    assert (answer.status, decoded(answer)["reason"]) == (409, "Conflict")
    assert decoded(answer)["details"]["kind"] == "leases"
    assert harness.store.problem is None


def test_metrics_are_bounded() -> None:
    """Kinds that come and go add series up to a bound; further ones are counted together."""
    metrics = Metrics()
    for number in range(MOST_SERIES + 50):
        attributes = Attributes("get", "example.com", "v1", f"widgets{number}")
        metrics.observe(attributes, 200, 0.001)
    text = metrics.answer().body.decode()
    counted = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
    assert len(counted) == MOST_SERIES + 1
    (rest,) = (line for line in counted if 'resource="other"' in line)
    assert rest.endswith(" 50.0")

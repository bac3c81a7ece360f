"""The HTTP client on the wire, with a server that misbehaves."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import socket
import ssl
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cluster.certificates import Authority
from cluster.fake_apiserver import Answer, CutWatch, Drop, FakeApiServer, Seen, status
from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.cluster import HttpClient, ListOptions, WatchOptions, WriteOptions, merge_patch
from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import (
    ExpiredError,
    InternalError,
    NoConnectionError,
    NotFoundError,
    ProtocolError,
    TooManyRequestsError,
    UnavailableError,
    UnreachableError,
)
from drayman.cluster.kube.connection import Connection, Trust
from drayman.cluster.kube.retries import RetryPolicy
from drayman.cluster.kube.transport import ClientLimits
from drayman.cluster.patches import apply_patch, json_patch, strategic_merge_patch
from drayman.cluster.resources import CONFIG_MAPS, NAMESPACES, PODS
from drayman.cluster.watching import Bookmark
from patience import PATIENCE_S

SOON = RetryPolicy(attempts=4, backoff=Backoff(0.001, 0.002, random.Random(1)))
FIRST = WatchOptions(resource_version="100")


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns"}, "data": data}


@asynccontextmanager
async def pair(
    limits: ClientLimits | None = None,
) -> AsyncIterator[tuple[FakeApiServer, HttpClient]]:
    """A server and a client of it."""
    async with (
        FakeApiServer().running() as server,
        HttpClient(Connection(server.url), retries=SOON, limits=limits or ClientLimits()) as client,
    ):
        yield server, client


async def test_every_request_says_who_asks_and_for_what() -> None:
    """Requests carry the user agent that the server makes the field manager from, and ask for JSON."""
    async with pair() as (server, client):
        await client.create(CONFIG_MAPS, config_map("a", x="1"), options=WriteOptions(dry_run=True))
        seen = server.seen[0]
        assert (seen.method, seen.path) == ("POST", "/api/v1/namespaces/ns/configmaps")
        assert seen.query == {"dryRun": "All"}
        assert seen.headers["user-agent"].startswith("drayman/")
        assert seen.headers["accept"] == "application/json"
        assert seen.headers["content-type"] == "application/json"
        assert json.loads(seen.body)["kind"] == "ConfigMap"


@pytest.mark.parametrize(
    ("patch", "media_type"),
    [
        (merge_patch({"data": {"a": "b"}}), "application/merge-patch+json"),
        (strategic_merge_patch({"data": {"a": "b"}}), "application/strategic-merge-patch+json"),
        (apply_patch({"kind": "ConfigMap", "data": {}}), "application/apply-patch+yaml"),
    ],
)
async def test_patches_go_out_with_their_type(patch, media_type: str) -> None:
    """The media type tells the server which patch it is."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        await client.patch(CONFIG_MAPS, "a", patch, "ns")
        assert server.seen[-1].headers["content-type"] == media_type
        assert json.loads(server.seen[-1].body) == patch.value


async def test_a_json_patch_is_a_list_of_operations() -> None:
    """A JSON patch goes out as the list it is."""
    operations = [{"op": "test", "path": "/data/a", "value": "b"}]
    async with pair() as (server, client):
        server.inject(Answer(422, status(422, "Invalid")))
        with pytest.raises(Exception, match="Invalid"):
            await client.patch(CONFIG_MAPS, "a", json_patch(operations), "ns")
        assert json.loads(server.seen[-1].body) == operations


async def test_headers_of_the_connection_go_with_every_request() -> None:
    """Impersonation reaches the server; a list is one header per value."""
    headers = {"Impersonate-User": "jane", "Impersonate-Group": ("a", "b")}
    async with FakeApiServer().running() as server:
        async with HttpClient(Connection(server.url, headers=headers)) as client:
            await client.list(CONFIG_MAPS, "ns")
        assert server.seen[0].headers["impersonate-user"] == "jane"
        assert server.seen[0].headers["impersonate-group"] == "a, b"


async def test_a_proxy_gets_the_requests() -> None:
    """With a proxy-url the server itself is never looked up."""
    async with FakeApiServer().running() as proxy:
        await proxy.put("configmaps", "ns", "a")
        connection = Connection("http://cluster.invalid", proxy=proxy.url)
        async with HttpClient(connection, retries=SOON) as client:
            page = await client.list(CONFIG_MAPS, "ns")
        assert [item["metadata"]["name"] for item in page.items] == ["a"]
        assert proxy.seen[0].headers["host"] == "cluster.invalid"


async def test_a_proxy_proves_who_it_is_as_the_server_would(tmp_path: Path) -> None:
    """Also where only the way to the proxy is encrypted: by the CA of the connection, and not by the system's."""
    authority = Authority()
    tls = authority.server(tmp_path, "127.0.0.1")
    async with FakeApiServer().running(tls) as proxy:
        await proxy.put("configmaps", "ns", "a")
        known = Connection("http://cluster.invalid", Trust(authority.pem()), proxy=proxy.url)
        async with HttpClient(known, retries=SOON) as client:
            assert (await client.get(CONFIG_MAPS, "a", "ns"))["metadata"]["name"] == "a"
        async with HttpClient(replace(known, trust=Trust()), retries=SOON) as client:
            with pytest.raises(UnreachableError, match="the certificate is not trusted"):
                await client.get(CONFIG_MAPS, "a", "ns")


async def test_typed_objects_come_back_typed() -> None:
    """A pod is a Pod, in a list too."""
    async with pair() as (server, client):
        made = await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="ns")))
        assert isinstance(made, Pod)
        assert made.metadata.uid
        page = await client.list(PODS, "ns")
        assert [pod.metadata.name for pod in page.items] == ["p"]
        deleted = await client.delete(PODS, "p", "ns")
        assert deleted is not None
        assert deleted.metadata.name == "p"
        assert ("pods", "ns", "p") not in server.objects


async def test_a_delete_answered_by_a_status_gives_no_object() -> None:
    """Most kinds are gone without a last look."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        assert await client.delete(CONFIG_MAPS, "a", "ns") is None


async def test_a_struct_that_lacks_fields_is_not_written_over_an_object() -> None:
    """A Pod here has a part of a pod's fields; an update would delete the others."""
    async with pair() as (server, client):
        with pytest.raises(ValueError, match="patch it"):
            await client.update(PODS, Pod(metadata=ObjectMeta(name="p", namespace="ns")))
        assert server.seen == []


async def test_an_empty_name_never_reaches_the_server() -> None:
    """A delete without a name would be one of the whole collection."""
    async with pair() as (server, client):
        with pytest.raises(ValueError, match="which name"):
            await client.delete(CONFIG_MAPS, "", "ns")
        assert server.seen == []


async def test_lists_come_in_pages_of_one_version() -> None:
    """Paging fetches everything once, whatever is written meanwhile behind the place it has reached."""
    async with pair() as (server, client):
        for index in range(7):
            await server.put("configmaps", "ns", f"m{index}")
        names: list[str] = []
        sizes: list[int] = []
        async for page in client.pages(CONFIG_MAPS, "ns", options=ListOptions(limit=3)):
            names += [item["metadata"]["name"] for item in page.items]
            sizes.append(len(page.items))
        assert names == [f"m{index}" for index in range(7)]
        assert sizes == [3, 3, 1]
        assert [seen.query.get("limit") for seen in server.seen] == ["3"] * 3


async def test_a_list_that_expires_is_begun_anew() -> None:
    """A list too slow for the server's history ends complete all the same."""
    async with pair() as (server, client):
        for index in range(5):
            await server.put("configmaps", "ns", f"m{index}")
        gone = Answer(410, status(410, "Expired"))
        server.inject(gone, when=lambda seen: "continue" in seen.query, times=2)
        page = await client.list_all(CONFIG_MAPS, "ns", options=ListOptions(limit=2))
        assert len(page.items) == 5
        assert "limit" not in server.seen[-1].query


async def test_a_busy_server_is_asked_again_after_the_time_it_named() -> None:
    """429 and 503 with a Retry-After are waited out, for writes too."""
    async with pair() as (server, client):
        server.inject(Answer(429, status(429, "TooManyRequests"), {"Retry-After": "0"}), times=0)
        busy = status(429, "TooManyRequests", retryAfterSeconds=1)
        server.inject(Answer(429, busy))
        made = await client.create(CONFIG_MAPS, config_map("a"))
        assert made["metadata"]["name"] == "a"
        assert len(server.seen) == 2


async def test_a_refused_eviction_is_not_repeated() -> None:
    """A disruption budget says no without a time to come back: that is the caller's to know."""
    async with pair() as (server, client):
        body = status(429, "TooManyRequests", causes=[{"reason": "DisruptionBudget"}])
        server.inject(Answer(429, body), times=9)
        with pytest.raises(TooManyRequestsError) as refusal:
            await client.evict("p", "ns")
        assert refusal.value.causes[0].reason == "DisruptionBudget"
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    "fault", [Answer(500, "oops"), Answer(503, ""), Answer(502, "<html>"), Drop()]
)
async def test_reads_are_repeated(fault: Answer | Drop) -> None:
    """A read gets through once the trouble is over."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        server.inject(fault, times=2)
        assert (await client.get(CONFIG_MAPS, "a", "ns"))["metadata"]["name"] == "a"


async def test_repetition_has_an_end() -> None:
    """Trouble that stays is told."""
    async with pair() as (server, client):
        server.inject(Answer(503, ""), times=99)
        with pytest.raises(UnavailableError):
            await client.get(CONFIG_MAPS, "a", "ns")
        assert len(server.seen) == SOON.attempts


async def test_a_write_of_unknown_fate_is_not_repeated() -> None:
    """A connection lost after the request was sent leaves the question open, and the caller is told so."""
    async with pair() as (server, client):
        server.inject(Drop(after=True))
        with pytest.raises(UnreachableError) as lost:
            await client.create(CONFIG_MAPS, config_map("a"))
        assert lost.value.outcome_unknown
        assert len(server.seen) == 1
        assert ("configmaps", "ns", "a") in server.objects


async def test_a_failed_write_is_not_repeated() -> None:
    """A 500 does not say whether the write took place."""
    async with pair() as (server, client):
        server.inject(Answer(500, status(500, "InternalError")), times=9)
        with pytest.raises(InternalError):
            await client.create(CONFIG_MAPS, config_map("a"))
        assert len(server.seen) == 1


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    """Nothing was sent, and the error says so."""
    async with pair() as (server, client):
        await server.stop()
        with pytest.raises(NoConnectionError) as refusal:
            await client.create(CONFIG_MAPS, config_map("a"))
        assert not refusal.value.outcome_unknown
        assert refusal.value.why == "connection refused"
        assert re.search(r"no connection to \S+:\d+: connection refused$", str(refusal.value))


async def test_an_answer_that_stops_halfway_is_reported_in_words() -> None:
    """As when a server is stopped while a watch is open: not in the terms of the library that reads it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        async with HttpClient(Connection(f"http://{host}:{port}"), retries=SOON) as client:
            with pytest.raises(UnreachableError) as lost:
                await client.get(CONFIG_MAPS, "a", "ns")
    assert lost.value.why == "the connection ended in the middle of the answer"


async def test_requests_in_flight_are_bounded_and_watches_do_not_count() -> None:
    """No more requests run at once than allowed, and open watches leave them their room."""
    running = most = 0

    async with pair(ClientLimits(in_flight=3)) as (server, client):
        answer = server._answer

        async def slow(seen: Seen, where):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.005)
            running -= 1
            return await answer(seen, where)

        server._answer = slow
        watches = [client.watch(CONFIG_MAPS, "ns", options=FIRST) for _ in range(5)]
        for watch in watches:
            await watch.__aenter__()
        await asyncio.gather(
            *(client.create(CONFIG_MAPS, config_map(f"m{index}")) for index in range(20))
        )
        for watch in watches:
            await watch.__aexit__(None, None, None)
    assert most == 3


async def test_an_answer_that_is_no_object_is_a_protocol_error() -> None:
    """A captive portal's page is not taken for an object."""
    async with pair() as (server, client):
        server.inject(Answer(200, "<html>please log in</html>"))
        with pytest.raises(ProtocolError):
            await client.get(CONFIG_MAPS, "a", "ns")


async def test_a_closed_client_says_so() -> None:
    """Use after close is an error, not a new connection."""
    async with pair() as (_, client):
        await client.close()
        await client.close()
        with pytest.raises(UnreachableError, match="closed"):
            await client.get(CONFIG_MAPS, "a", "ns")


async def test_names_are_escaped() -> None:
    """A name with a slash stays one name."""
    async with pair() as (server, client):
        with pytest.raises(NotFoundError):
            await client.get(NAMESPACES, "a/../b?x")
        assert server.seen[0].query == {}


async def names_of(client: HttpClient, options: WatchOptions, most: int) -> list[str]:
    found: list[str] = []
    async with client.watch(CONFIG_MAPS, "ns", options=options) as events:
        async for event in events:
            if not isinstance(event, Bookmark):
                found.append(event.object["metadata"]["name"])
                if len(found) == most:
                    break
    return found


async def test_a_watch_begins_after_its_version() -> None:
    """Events from before the version are not repeated, later ones come in order."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "old")
        begin = WatchOptions(resource_version=str(server.revision))
        await server.put("configmaps", "ns", "a")
        await server.put("configmaps", "other", "elsewhere")
        await server.put("configmaps", "ns", "b")
        assert await names_of(client, begin, 2) == ["a", "b"]


async def test_leaving_a_watch_closes_it_on_the_server() -> None:
    """A watch that nobody reads any more costs the server nothing."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        await names_of(client, FIRST, 1)
        await server.unwatched.wait()


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("drop", UnreachableError),
        ("truncate", ProtocolError),
        ('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}', ExpiredError),
        ('{"type":"ERROR","object":{"kind":"Status","code":500}}', InternalError),
        ('{"type":"ADDED","object":{"meta', ProtocolError),
    ],
)
async def test_a_broken_watch_says_how_it_broke(how: str, error: type[Exception]) -> None:
    """What arrived before the break arrives, then comes the error."""
    async with pair() as (server, client):
        for name in ("a", "b", "c"):
            await server.put("configmaps", "ns", name)
        server.inject(CutWatch(2, how))
        async with client.watch(CONFIG_MAPS, "ns", options=FIRST) as events:
            for name in ("a", "b"):
                event = await anext(events)
                assert not isinstance(event, Bookmark)
                assert event.object["metadata"]["name"] == name
            with pytest.raises(error):
                await anext(events)


async def test_an_ended_watch_just_ends() -> None:
    """A watch that times out is no error."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a")
        server.inject(CutWatch(1, "end"))
        assert await names_of(client, FIRST, 9) == ["a"]


async def test_a_large_event_arrives_whole() -> None:
    """An event may be larger than any buffer on the way."""
    async with pair() as (server, client):
        await server.put("configmaps", "ns", "a", data={"x": "y" * 2_000_000})
        async with client.watch(CONFIG_MAPS, "ns", options=FIRST) as events:
            event = await anext(events)
        assert not isinstance(event, Bookmark)
        assert len(event.object["data"]["x"]) == 2_000_000


BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'
BEGINNING = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (
    len(BOOKMARK),
    BOOKMARK,
)
"""Of the answer to a watch."""


@dataclass(slots=True)
class DeafServer:
    """Sends the same to its only request, and reads nothing after that: not even that the client ends TLS."""

    folder: Path
    answer: bytes
    authority: Authority = field(default_factory=Authority)
    asked: threading.Event = field(default_factory=threading.Event)

    def outlived_by(self, use: Callable[[HttpClient], Awaitable[None]]) -> list[str]:
        """The warnings about what is left of a client that was used and closed."""
        tls, enough = self.authority.server(self.folder, "127.0.0.1"), threading.Event()
        with (
            socket.create_server(("127.0.0.1", 0)) as listening,
            warnings.catch_warnings(record=True) as seen,
        ):
            warnings.simplefilter("always")
            server = threading.Thread(target=self._serve, args=(listening, tls, enough))
            server.start()
            try:
                asyncio.run(self._use(listening.getsockname()[1], use))
                gc.collect()
            finally:
                enough.set()
                server.join(PATIENCE_S)
        return [str(each.message) for each in seen]

    async def _use(self, port: int, use: Callable[[HttpClient], Awaitable[None]]) -> None:
        trust = Trust(ca=self.authority.pem())
        async with HttpClient(Connection(f"https://127.0.0.1:{port}", trust=trust)) as client:
            await use(client)

    def _serve(
        self, listening: socket.socket, tls: ssl.SSLContext, enough: threading.Event
    ) -> None:
        plain, _ = listening.accept()
        with tls.wrap_socket(plain, server_side=True) as connection:
            connection.recv(1 << 16)
            connection.sendall(self.answer)
            self.asked.set()
            assert enough.wait(PATIENCE_S)


def test_nothing_of_a_watch_outlives_its_client(tmp_path: Path) -> None:
    """A watch that is left is over with the client, even if the server does not agree to the end of TLS."""

    async def watch(client: HttpClient) -> None:
        async with client.watch(CONFIG_MAPS, "ns", options=FIRST) as events:
            assert isinstance(await anext(events), Bookmark)

    assert DeafServer(tmp_path, BEGINNING).outlived_by(watch) == []


def test_nothing_of_a_request_that_is_given_up_outlives_its_client(tmp_path: Path) -> None:
    """A request whose answer has not begun is over with the client, too."""
    server = DeafServer(tmp_path, b"")

    async def give_up(client: HttpClient) -> None:
        request = asyncio.create_task(client.list(CONFIG_MAPS, "ns"))
        assert await asyncio.to_thread(server.asked.wait, PATIENCE_S)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    assert server.outlived_by(give_up) == []

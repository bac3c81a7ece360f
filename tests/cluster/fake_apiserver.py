"""An API server of the smallest kind, for what a real one does not do on demand.

It speaks the wire format of Kubernetes 1.36: lists in pages with continue tokens, watches as lines of JSON with bookmarks and a 410 as
an ERROR event, Status objects, deletes answered with a Status. It validates nothing. Faults are put in by tests: the next requests
that match get a prepared answer, lose their connection, or have their watch cut where it hurts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = Any
Event = tuple[int, str, str, str, dict[str, Json]]
"""Revision, type, collection, namespace, object."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers in the server's place."""

    status: int
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drop:
    """Closes the connection without an answer; with `after` set, once the request has been carried out."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class CutWatch:
    """Ends a watch after so many events: by losing the connection, or within a line, or as if it had timed out."""

    events: int
    how: str = "drop"
    """`drop`, `truncate`, `end`, or a raw line to send before the end."""


@dataclass(slots=True)
class Fault:
    does: Answer | Drop | CutWatch
    applies: Callable[[Seen], bool]
    times: int


def status(code: int, reason: str, message: str = "", **details: Json) -> dict[str, Json]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "details": details,
        "code": code,
    }


@dataclass(slots=True)
class Collection:
    """What a path is about: the collection it names, a namespace, perhaps a name and a subresource."""

    kind: str
    api_version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @staticmethod
    def parse(path: str) -> Collection:
        parts = path.strip("/").split("/")
        head, rest = (parts[1:2], parts[2:]) if parts[0] == "api" else (parts[1:3], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        name, subresource = [*rest[1:], "", ""][:2]
        kind = KINDS.get(rest[0], rest[0].capitalize())
        return Collection(kind, "/".join(head), rest[0], namespace, name, subresource)


KINDS = {
    "configmaps": "ConfigMap",
    "pods": "Pod",
    "leases": "Lease",
    "resourceclaims": "ResourceClaim",
    "deviceclasses": "DeviceClass",
    "namespaces": "Namespace",
    "nodes": "Node",
}


class FakeApiServer:
    """Start it with `running`, which yields it with its address in `url`."""

    def __init__(self, *, authorize: Callable[[Seen], bool] = lambda seen: True) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Json]] = {}
        self.revision = 100
        self.oldest = 0
        """Watches from before this revision are expired."""
        self.events: list[Event] = []
        self.changed = asyncio.Condition()
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.bookmarks = True
        self.authorize = authorize
        self.url = ""
        self.watching = 0
        """Watches that are open now."""
        self.unwatched = asyncio.Event()
        """Set while no watch is open."""
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._tls: ssl.SSLContext | None = None

    # Running it.

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeApiServer]:
        self._tls = tls
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        app = web.Application(client_max_size=4 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def restart(self) -> None:
        """Ends every connection and comes back at the same address with the same objects."""
        await self.stop()
        await self.start()

    def lose_everything(self) -> None:
        """As a server without a disk does when it restarts."""
        self.objects.clear()
        self.events.clear()
        self.revision, self.oldest = 100, 0

    async def compact(self) -> None:
        """Forgets all history: watches that are not at the present must list again."""
        self.events.clear()
        self.oldest = self.revision

    # Faults.

    def inject(
        self,
        does: Answer | Drop | CutWatch,
        *,
        when: Callable[[Seen], bool] = lambda seen: True,
        times: int = 1,
    ) -> None:
        self.faults.append(Fault(does, when, times))

    def _fault(self, seen: Seen) -> Answer | Drop | CutWatch | None:
        for fault in self.faults:
            if fault.times and fault.applies(seen):
                fault.times -= 1
                return fault.does
        return None

    # Objects, as a test changes them without a client.

    async def put(
        self, resource: str, namespace: str, name: str, **members: Json
    ) -> dict[str, Json]:
        """Makes or changes an object."""
        key = (resource, namespace, name)
        old = self.objects.get(key)
        self.revision += 1
        found = Collection.parse(f"/api/v1/{resource}")
        metadata = members.pop("metadata", {})
        value = {
            "kind": KINDS.get(resource, found.kind),
            "apiVersion": members.pop("apiVersion", "v1"),
            "metadata": {
                **metadata,
                "name": name,
                **({"namespace": namespace} if namespace else {}),
                "uid": old["metadata"]["uid"] if old else f"uid-{self.revision}",
                "resourceVersion": str(self.revision),
            },
            **members,
        }
        self.objects[key] = value
        await self._publish("MODIFIED" if old else "ADDED", resource, namespace, value)
        return value

    async def remove(self, resource: str, namespace: str, name: str) -> None:
        old = self.objects.pop((resource, namespace, name))
        self.revision += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}
        await self._publish("DELETED", resource, namespace, last)

    async def _publish(
        self, kind: str, resource: str, namespace: str, value: dict[str, Json]
    ) -> None:
        self.events.append((self.revision, kind, resource, namespace, value))
        async with self.changed:
            self.changed.notify_all()

    # Requests.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(
            request.method,
            request.path,
            dict(request.query),
            {name.lower(): ", ".join(request.headers.getall(name)) for name in request.headers},
            await request.read(),
        )
        self.seen.append(seen)
        fault = self._fault(seen)
        if isinstance(fault, Answer):
            return _respond(fault.status, fault.body, fault.headers)
        if isinstance(fault, Drop) and not fault.after:
            return _hang_up(request)
        if not self.authorize(seen):
            return _respond(401, status(401, "Unauthorized"))
        where = Collection.parse(request.path)
        if seen.is_watch:
            return await self._watch(request, seen, where, fault)
        answer = await self._answer(seen, where)
        return _hang_up(request) if isinstance(fault, Drop) else answer

    async def _answer(self, seen: Seen, where: Collection) -> web.Response:
        key = (where.resource, where.namespace, where.name)
        match seen.method:
            case "GET" if not where.name:
                return self._list(seen, where)
            case "POST" if not where.name:
                return await self._create(json.loads(seen.body), where)
            case "POST":
                return _respond(201, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        if key not in self.objects:
            text = f'{where.resource} "{where.name}" not found'
            return _respond(
                404, status(404, "NotFound", text, name=where.name, kind=where.resource)
            )
        old = self.objects[key]
        match seen.method:
            case "GET":
                return _respond(200, old)
            case "PUT":
                return await self._update(json.loads(seen.body), old, where)
            case "PATCH":
                return await self._update(_merge(old, json.loads(seen.body)), old, where)
            case "DELETE":
                return await self._delete(json.loads(seen.body or b"{}"), old, where)
        return _respond(405, status(405, "MethodNotAllowed"))

    async def _create(self, body: dict[str, Json], where: Collection) -> web.Response:
        name = body["metadata"]["name"]
        if (where.resource, where.namespace, name) in self.objects:
            text = f'{where.resource} "{name}" already exists'
            return _respond(409, status(409, "AlreadyExists", text))
        return _respond(201, await self.put(where.resource, where.namespace, name, **body))

    async def _update(
        self, body: dict[str, Json], old: dict[str, Json], where: Collection
    ) -> web.Response:
        version = body["metadata"].get("resourceVersion")
        if version not in (None, old["metadata"]["resourceVersion"]):
            return _respond(409, status(409, "Conflict", "the object has been modified"))
        return _respond(200, await self.put(where.resource, where.namespace, where.name, **body))

    async def _delete(
        self, options: dict[str, Json], old: dict[str, Json], where: Collection
    ) -> web.Response:
        for name, value in options.get("preconditions", {}).items():
            if old["metadata"][name] != value:
                return _respond(409, status(409, "Conflict", f"the {name} does not match"))
        await self.remove(where.resource, where.namespace, where.name)
        if where.resource == "pods":
            return _respond(200, old)
        return _respond(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _list(self, seen: Seen, where: Collection) -> web.Response:
        start, revision = "", self.revision
        if token := seen.query.get("continue"):
            found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            start, revision = found["start"], found["rv"]
            if revision < self.oldest:
                return _respond(
                    410, status(410, "Expired", "The provided continue parameter is too old")
                )
        items = [
            value
            for (resource, namespace, name), value in sorted(self.objects.items())
            if resource == where.resource
            and where.namespace in ("", namespace)
            and f"{namespace}/{name}" > start
        ]
        limit = int(seen.query.get("limit", 0)) or len(items)
        metadata: dict[str, Json] = {"resourceVersion": str(revision)}
        if len(items) > limit:
            last = items[limit - 1]["metadata"]
            token = {
                "v": "meta.k8s.io/v1",
                "rv": revision,
                "start": f"{last.get('namespace', '')}/{last['name']}",
            }
            metadata["continue"] = (
                base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
            )
            metadata["remainingItemCount"] = len(items) - limit
        bare = [
            {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}
            for item in items[:limit]
        ]
        body = {
            "kind": f"{where.kind}List",
            "apiVersion": where.api_version,
            "metadata": metadata,
            "items": bare,
        }
        return _respond(200, body)

    # Watches.

    async def _watch(
        self,
        request: web.Request,
        seen: Seen,
        where: Collection,
        fault: Answer | Drop | CutWatch | None,
    ) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        stream.enable_chunked_encoding()
        await stream.prepare(request)
        self.watching += 1
        self.unwatched.clear()
        sent = 0
        try:
            async for line in self._lines(seen, where):
                if isinstance(fault, CutWatch) and sent == fault.events:
                    return await _cut(request, stream, fault, line)
                await stream.write(line)
                sent += 1
        except (ConnectionResetError, asyncio.CancelledError):
            return stream
        finally:
            self.watching -= 1
            if not self.watching:
                self.unwatched.set()
        await stream.write_eof()
        return stream

    async def _lines(self, seen: Seen, where: Collection) -> AsyncIterator[bytes]:
        since = int(seen.query.get("resourceVersion") or 0)
        if not since:
            since = self.revision
            for line in self._initial(where):
                yield line
        while True:
            if since < self.oldest:
                # Also for a watch that is under way and too slow.
                text = f"too old resource version: {since} ({self.oldest})"
                yield _line("ERROR", status(410, "Expired", text))
                return
            news = [event for event in self.events if event[0] > since]
            for revision, kind, resource, namespace, value in news:
                since = revision
                if resource == where.resource and where.namespace in ("", namespace):
                    yield _line(kind, value)
            if news and self.bookmarks and seen.query.get("allowWatchBookmarks") == "true":
                yield self._bookmark(where, since)
            async with self.changed:
                await self.changed.wait_for(lambda: self.revision != since)  # noqa: B023
            if self.revision < since:
                since = self.revision

    def _initial(self, where: Collection) -> list[bytes]:
        return [
            _line("ADDED", value)
            for (resource, namespace, _), value in sorted(self.objects.items())
            if resource == where.resource and where.namespace in ("", namespace)
        ]

    def _bookmark(self, where: Collection, revision: int) -> bytes:
        metadata: dict[str, Json] = {"resourceVersion": str(revision), "creationTimestamp": None}
        value = {"kind": where.kind, "apiVersion": where.api_version, "metadata": metadata}
        return _line("BOOKMARK", value)


def _line(kind: str, value: Json) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


async def _cut(
    request: web.Request, stream: web.StreamResponse, fault: CutWatch, line: bytes
) -> web.StreamResponse:
    if fault.how == "drop":
        _hang_up(request)
        return stream
    if fault.how == "truncate":
        await stream.write(line[: len(line) // 2])
    elif fault.how != "end":
        await stream.write(fault.how.encode() + b"\n")
    await stream.write_eof()
    return stream


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _respond(code: int, body: Json, headers: dict[str, str] | None = None) -> web.Response:
    if isinstance(body, str):
        return web.Response(status=code, text=body, headers=headers)
    data = json.dumps(body, separators=(",", ":")).encode() + b"\n"
    return web.Response(status=code, body=data, content_type="application/json", headers=headers)


def _merge(old: Json, patch: Json) -> Json:
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    merged = {name: value for name, value in old.items() if patch.get(name, value) is not None}
    for name, value in patch.items():
        if value is not None:
            merged[name] = _merge(old.get(name), value)
    return merged

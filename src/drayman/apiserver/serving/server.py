"""The server: from a request to an answer, in the same order as the real server.

Authentication, routing, impersonation, authorization, the form of the answer, then the verb. A refusal at any step raises a
StatusError, which becomes the answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from drayman.apiserver.answers.forms import answer_error, respond
from drayman.apiserver.describing.discovery import Discovery
from drayman.apiserver.describing.metrics import CONNECTED, Metrics
from drayman.apiserver.describing.system import (
    HEALTH_PATHS,
    NO_SNIFF,
    Health,
    page_not_found,
    version_info,
)
from drayman.apiserver.protocol.access import Attributes, Authenticator, SameUser, denied
from drayman.apiserver.protocol.errors import StatusError, internal_error, no_such_resource
from drayman.apiserver.protocol.exchange import (
    Answer,
    Request,
    Response,
    StreamingResponse,
    UpgradedResponse,
)
from drayman.apiserver.protocol.limits import ServerLimits, check_timeout
from drayman.apiserver.protocol.negotiation import View, negotiate
from drayman.apiserver.requests.beside import ON_BEHALF_OF
from drayman.apiserver.requests.rights import attributes_of
from drayman.apiserver.requests.routing import PageNotFound, Route, find_route, split_group_version
from drayman.apiserver.security.impersonation import Impersonation
from drayman.apiserver.served.encoding import encode_pretty
from drayman.apiserver.serving.dispatch import call_of, perform, view_of, with_warnings
from drayman.apiserver.serving.large_answers import sendable
from drayman.apiserver.serving.pacing import Pace
from drayman.apiserver.verbs.batch import conflict_of
from drayman.apiserver.verbs.core import Core
from drayman.cluster.embedded.errors import ConflictError, RefusedError, StoreError
from drayman.cluster.embedded.store import Store
from drayman.node.streams.channels import Socket

log = logging.getLogger(__name__)

_PROBES: Final = tuple(f"/{path}" for path in HEALTH_PATHS)


class Observer(Protocol):
    """Is notified of every finished request: an audit log."""

    def finished(
        self, request: Request, attributes: Attributes, code: int, seconds: float
    ) -> None: ...


class OpenApi(Protocol):
    """Serves the OpenAPI documents; None for a path that is not one of them."""

    async def answer(self, request: Request) -> Response | None: ...


class _PacedSocket:
    """A socket on which messages are sent when it is its user's turn."""

    def __init__(self, socket: Socket, pace: Pace, user: str) -> None:
        self._socket = socket
        self._pace = pace
        self._user = user

    async def receive(self) -> bytes | None:
        return await self._socket.receive()

    async def send(self, message: bytes) -> None:
        if not self._pace.may_begin():
            await self._pace.wait(self._user)
        await self._socket.send(message)

    async def close(self, code: int) -> None:
        await self._socket.close(code)


@dataclass(slots=True)
class ApiServer:
    """The API, free of sockets."""

    core: Core
    authenticator: Authenticator = field(default_factory=SameUser)
    impersonation: Impersonation | None = None
    """Lets users act as others; None: every request is its sender's."""
    discovery: Discovery = field(init=False)
    health: Health = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    openapi: OpenApi | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)
    pace: Pace = field(default_factory=Pace)
    observers: list[Observer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.discovery = Discovery(self.core.resources)
        store = self.core.store
        assert isinstance(store, Store), "it serves a store, not a batch"
        self.health = Health({"ping": lambda: None, "store": lambda: store.problem})

    async def handle(self, request: Request) -> Answer:
        """Answer a request. Never raises for a client's mistakes."""
        started = time.perf_counter()
        attributes = Attributes(request.method.lower(), path=request.path)
        response: Answer
        try:
            await self._authenticate(request)
            if not self.pace.may_begin():  # Also for refusals, which take as long as other answers.
                await self.pace.wait(request.user.name)
            check_timeout(request.query)
            # Before anything can refuse it, so that refusals are recorded with what they are about.
            route = self._route(request)
            if route is not None:
                attributes = attributes_of(route, request.query)
            with self._counted(request):
                if route is not None:
                    response = await self._handle_resource(request, route, attributes)
                else:
                    response = await self._handle_path(request, attributes)
                if not isinstance(response, StreamingResponse | UpgradedResponse):
                    response = await sendable(request, response, self.limits)
        except StatusError as error:
            response = answer_error(error, View())
        except PageNotFound:
            response = page_not_found()
        except (ConflictError, RefusedError) as error:
            response = answer_error(conflict_of(error), View())
        except StoreError as error:
            log.error("%s %s failed: %s", request.method, request.path, error)
            response = answer_error(internal_error(str(error)), View())
        except Exception:
            # A bug. The client gets an error it knows, and the traceback is logged.
            log.exception("%s %s failed", request.method, request.path)
            response = answer_error(
                internal_error("unexpected error, see the server's log"), View()
            )
        if isinstance(response, StreamingResponse):
            response.chunks = self._streamed(response.chunks, request, attributes)
            response.end = self._ending(request, attributes, response.status, started)
        elif isinstance(response, UpgradedResponse):
            response.converse = self._conversed(response.converse, request)
            response.end = self._ending(request, attributes, response.status, started)
        else:
            self.finish(request, attributes, response.status, started)
        return response

    def _ending(
        self, request: Request, attributes: Attributes, code: int, started: float
    ) -> Callable[[], None]:
        """Records that a request is over whose answer takes a while. Its client may have left before the answer began."""
        return partial(self.finish, request, attributes, code, started)

    def _counted(self, request: Request) -> AbstractContextManager[None]:
        """Counts a request while it is being answered. Whether the server is well can be asked at any time. Raises StatusError 429."""
        if request.path.startswith(_PROBES):
            return nullcontext()
        return self.limits.request(request.user)

    async def refusal(self, request: Request) -> Response | None:
        """The answer to a request that is refused whatever its body says, so that the body need not be read."""
        return await self._refusal(request, None, time.perf_counter())

    async def refuse(self, request: Request, error: StatusError, started: float) -> Response:
        """The answer to a request whose body is not read to its end: why that is so, or another reason that makes the body irrelevant."""
        refusal = await self._refusal(request, error, started)
        assert refusal is not None
        return refusal

    async def _refusal(
        self, request: Request, otherwise: StatusError | None, started: float
    ) -> Response | None:
        attributes = Attributes(request.method.lower(), path=request.path)
        try:
            await self._authenticate(request)
            route = self._route(request)
            if route is not None:
                attributes = attributes_of(route, request.query)
            self.authorize(request, attributes)
            if otherwise is None:
                return None
            response = answer_error(otherwise, View())
        except StatusError as error:
            response = answer_error(error, View())
        except PageNotFound:
            response = page_not_found()
        self.finish(request, attributes, response.status, started)
        return response

    def _route(self, request: Request) -> Route | None:
        """The route of a request to a resource; None for any other request. Raises StatusError 400, 404 or 405."""
        place = split_group_version(request.path)
        if place is None or not any(place[2]) or not self.core.resources.serves(*place[:2]):
            return None
        return find_route(self.core.resources, request, *place)

    async def _handle_resource(
        self, request: Request, route: Route, attributes: Attributes
    ) -> Answer:
        self.authorize(request, attributes)
        part = "" if route.subresource is None else route.subresource.name
        if route.verb == "watch" or part == "log":
            self.limits.check_watches(request.sender)
        elif part in CONNECTED:
            self.limits.check_sessions(request.sender)
        call = call_of(self.core, request, route)
        view = View()
        try:
            view = view_of(request, route)
            response = await perform(call, request, view)
        except StatusError as error:
            response = answer_error(error, replace(view, shape="object"))
        return with_warnings(call, response)

    async def _streamed(
        self, source: AsyncIterator[bytes], request: Request, attributes: Attributes
    ) -> AsyncIterator[bytes]:
        """The chunks of a stream, counted while it is open."""
        is_watch = attributes.verb == "watch"
        gauge = self.metrics.watches if is_watch else self.metrics.connected
        gauge.inc()
        try:
            with self.limits.watches.taking(request.sender):
                async with aclosing(source) as chunks:  # type: ignore[type-var]
                    async for chunk in chunks:
                        # Or the streams of one user keep all others waiting.
                        if not self.pace.may_begin():
                            await self.pace.wait(request.sender.name)
                        yield chunk
        finally:
            gauge.dec()

    def _conversed(
        self,
        converse: Callable[[Socket], Awaitable[None]],
        request: Request,
    ) -> Callable[[Socket], Awaitable[None]]:
        """The same conversation, counted while it lasts."""

        async def counted(socket: Socket) -> None:
            self.metrics.connected.inc()
            try:
                with self.limits.sessions.taking(request.sender):
                    await converse(_PacedSocket(socket, self.pace, request.sender.name))
            finally:
                self.metrics.connected.dec()

        return counted

    def finish(self, request: Request, attributes: Attributes, code: int, started: float) -> None:
        seconds = time.perf_counter() - started
        self.metrics.observe(attributes, code, seconds)
        for observer in self.observers:
            try:
                observer.finished(request, attributes, code, seconds)
            except Exception:
                # A bug. What was asked for is done, so the answer stays as it is.
                log.exception("%s %s could not be recorded", request.method, request.path)

    async def _authenticate(self, request: Request) -> None:
        """Raises StatusError 401."""
        request.user = await self.authenticator.authenticate(request)
        request.impersonator, request.constraint = None, ""
        ON_BEHALF_OF.set(request.user.name)

    def authorize(self, request: Request, attributes: Attributes) -> None:
        """Determine whom a request acts as, and whether that user may do what it asks. Raises StatusError 400 or 403."""
        if self.impersonation is not None:
            found = self.impersonation.impersonated(request.user, request.headers, attributes)
            if found is not None:
                request.impersonator, request.user = request.user, found.user
                request.constraint = found.constraint
        decision = self.core.authorizer.authorize(request.user, attributes)
        if not decision.allowed:
            error = denied(request.user, attributes, decision.reason)
            error.headers.update(NO_SNIFF)
            raise error

    async def _handle_path(self, request: Request, attributes: Attributes) -> Response:
        """Paths that are not about a resource."""
        self.authorize(request, attributes)
        segments = request.path.strip("/").split("/")
        root = segments[0]
        if root in HEALTH_PATHS:
            name = "/".join(segments[1:])
            return self.health.answer(request, root, name) or page_not_found()
        if root == "version" and len(segments) == 1:
            return version_info()
        if root == "metrics" and len(segments) == 1:
            return self.metrics.answer()
        if root == "openapi" and self.openapi is not None:
            return await self.openapi.answer(request) or page_not_found()
        if root in ("api", "apis"):
            return self._discover(request, segments)
        if request.path == "/":
            return Response(200, encode_pretty({"paths": self._paths()}))
        return page_not_found()

    def _paths(self) -> list[str]:
        system = [
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        checks = [f"/{path}/{name}" for path in HEALTH_PATHS for name in self.health.at(path)]
        return sorted([*self.discovery.paths(), *system, *checks])

    def _discover(self, request: Request, segments: list[str]) -> Response:
        discovery = self.discovery
        document = None
        match segments:
            case ["api" | "apis"]:
                aggregated = discovery.aggregated(request, segments[0])
                if aggregated is not None:
                    return aggregated
                document = discovery.versions() if segments[0] == "api" else discovery.groups()
            case ["api", version]:
                document = discovery.resource_list("", version)
            case ["apis", group]:
                document = discovery.group(group)
            case ["apis", group, version]:
                document = discovery.resource_list(group, version)
        if document is not None:
            return respond(document, negotiate(request, shapes=False))
        if len(segments) > 1 and (segments[0] == "api" or self._is_builtin_group(segments[1])):
            raise no_such_resource()
        return page_not_found()

    def _is_builtin_group(self, group: str) -> bool:
        return any(r.group == group and not r.custom for r in self.core.resources)

"""The side of a driver: gRPC servers on its two sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
import grpc.aio

from drayman.plugins.errors import SocketError
from drayman.plugins.model import (
    PLUGIN_TYPE,
    Answers,
    ClaimRef,
    PluginInfo,
    Removals,
    ReportedHealth,
)
from drayman.plugins.protocol import registration_pb2
from drayman.plugins.services import (
    HEALTH,
    HEALTH_VERSION,
    REGISTRATION,
    VERSIONS,
    Method,
    Methods,
    PrepareRequest,
    PrepareResponse,
    UnprepareRequest,
    UnprepareResponse,
    Version,
    claims_of,
    health_response,
)
from drayman.plugins.sockets import Sockets, address, make_way

_log: Final = logging.getLogger(__name__)
_GRACE_S: Final = 10.0
"""How long calls that have begun may take when a server stops."""
UNREGISTERED_S: Final = 10.0
"""Nodes look for drivers every second or at once, so by then something is amiss."""


class Service(Protocol):
    """What a driver does for a node."""

    async def prepare(self, claims: Sequence[ClaimRef]) -> Answers:
        """Answers every claim. What it raises fails the whole call."""
        ...

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Removals:
        """The same for claims that are not needed any more."""
        ...

    def watch_health(self) -> AsyncIterator[Sequence[ReportedHealth]]:
        """The health of all devices, again whenever it changes."""
        ...


class PluginServer:
    """Serves one driver on its sockets, and registers it with the node."""

    def __init__(
        self,
        name: str,
        sockets: Sockets,
        service: Service,
        *,
        versions: Sequence[Version] = VERSIONS,
        reports_health: bool = True,
        unregistered_s: float = UNREGISTERED_S,
    ) -> None:
        """`unregistered_s`: after so long without a word from the node, the log says where the driver waits for it."""
        self.sockets = sockets
        self.registered: bool | None = None
        """What the node said last: None before it said anything."""
        announced = tuple(version.name for version in versions)
        if reports_health:
            announced += (HEALTH_VERSION,)
        self.info: Final = PluginInfo(PLUGIN_TYPE, name, str(sockets.services), announced)
        self._service = service
        self._versions = versions
        self._reports_health = reports_health
        self._servers: list[tuple[Path, Any]] = []
        self._unregistered_s = unregistered_s
        self._warning: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Serve. The socket in the registry comes last: a node that finds it calls the other at once. Raises SocketError, OSError."""
        handlers = [_prepare_handler(self._service, version) for version in self._versions]
        if self._reports_health:
            handlers.append(_health_handler(self._service))
        for path, served in (
            (self.sockets.services, handlers),
            (self.sockets.registration, [self._registration_handler()]),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            make_way(path)
            server = grpc.aio.server()
            server.add_generic_rpc_handlers(served)
            try:
                server.add_insecure_port(address(path))
            except RuntimeError as error:
                raise SocketError(f"{path}: cannot be served: {error}") from error
            self._servers.append((path, server))
            await server.start()
        loop = asyncio.get_running_loop()
        self._warning = loop.call_later(self._unregistered_s, self._warn_unregistered)

    async def stop(self) -> None:
        """End: the node first learns that the driver goes, and calls that it has made are finished.

        Whoever does not wait for them ends them.
        """
        if self._warning is not None:
            self._warning.cancel()
        async with AsyncExitStack() as end:  # the last one goes first
            for path, server in self._servers:
                end.push_async_callback(_stop, path, server)
            self._servers.clear()

    def _warn_unregistered(self) -> None:
        if self.registered is None:
            _log.warning(
                "%s: no node has registered the driver so far; it waits for one that looks for plugins in %s",
                self.info.name,
                self.sockets.registration.parent,
            )

    def _registration_handler(self) -> Any:
        async def get_info(_request: object, _context: object) -> registration_pb2.PluginInfo:
            return registration_pb2.PluginInfo(
                type=self.info.type,
                name=self.info.name,
                endpoint=self.info.endpoint,
                supported_versions=self.info.versions,
            )

        async def notify(
            status: registration_pb2.RegistrationStatus, _context: object
        ) -> registration_pb2.RegistrationStatusResponse:
            self.registered = status.plugin_registered
            if status.plugin_registered:
                _log.info("%s: registered with the node", self.info.name)
            else:
                _log.error("%s: the node refuses the driver: %s", self.info.name, status.error)
            return registration_pb2.RegistrationStatusResponse()

        return _handler(REGISTRATION, {"GetInfo": get_info, "NotifyRegistrationStatus": notify})


async def _stop(path: Path, server: Any) -> None:
    path.unlink(missing_ok=True)
    try:
        await server.stop(_GRACE_S)
    finally:
        await server.stop(None)


def _prepare_handler(service: Service, version: Version) -> Any:
    async def prepare(request: PrepareRequest, _context: object) -> PrepareResponse:
        return version.prepare_response(await service.prepare(claims_of(request)))

    async def unprepare(request: UnprepareRequest, _context: object) -> UnprepareResponse:
        return version.unprepare_response(await service.unprepare(claims_of(request)))

    return _handler(
        version.methods, {"NodePrepareResources": prepare, "NodeUnprepareResources": unprepare}
    )


def _health_handler(service: Service) -> Any:
    async def watch(_request: object, _context: object) -> AsyncIterator[object]:
        async for reports in service.watch_health():
            yield health_response(reports)

    return _handler(HEALTH, {"NodeWatchResources": watch})


_Function = Callable[[Any, Any], Awaitable[object] | AsyncIterator[object]]


def _handler(methods: Methods, functions: dict[str, _Function]) -> Any:
    """The functions of a service as gRPC takes them: one for each method."""
    service = next(iter(methods.values())).service
    return grpc.method_handlers_generic_handler(
        service,
        {name: _method_handler(method, functions[name]) for name, method in methods.items()},
    )


def _method_handler(method: Method, function: _Function) -> Any:
    make = (
        grpc.unary_stream_rpc_method_handler
        if method.streams
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        function,
        request_deserializer=method.request.FromString,
        response_serializer=method.response.SerializeToString,
    )

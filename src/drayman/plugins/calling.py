"""The side of a node: calls to one driver on its sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Self

import grpc
import grpc.aio

from drayman.plugins.errors import CallError, NoAnswerError, RegistrationError
from drayman.plugins.model import (
    PLUGIN_TYPE,
    ClaimRef,
    Failed,
    PluginInfo,
    Ready,
    ReportedHealth,
)
from drayman.plugins.naming import name_problem
from drayman.plugins.protocol import health_pb2, registration_pb2
from drayman.plugins.services import (
    HEALTH,
    REGISTRATION,
    VERSIONS,
    Method,
    Version,
    removals_of,
    reports_of,
)
from drayman.plugins.sockets import address

INFO_S: Final = 1.0
NOTIFY_S: Final = 5.0
CALL_S: Final = 45.0
"""The kubelet's own limits."""
# Without it the path of the socket would be the authority of a call, which servers in Go refuse.
_OPTIONS: Final = (("grpc.default_authority", "localhost"),)


class Connection:
    """A channel to one socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._channel = grpc.aio.insecure_channel(address(path), options=_OPTIONS)

    @property
    def is_connected(self) -> bool:
        return bool(self._channel.get_state() is grpc.ChannelConnectivity.READY)

    async def call(self, method: Method, request: object, timeout_s: float) -> Any:
        """One answer. Raises CallError."""
        invoke = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            answer = await invoke(request, timeout=timeout_s, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            failed = _call_error(self.path, method, error)
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise NoAnswerError(str(failed), timeout_s) from error
            raise failed from error
        except asyncio.CancelledError:
            _unless_closed(self.path, method)
            raise
        return _decoded(self.path, method, answer)

    async def stream(self, method: Method, request: object) -> AsyncGenerator[Any, None]:
        """Answers until the server ends them. Raises CallError."""
        invoke = self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        call = invoke(request, wait_for_ready=True)
        try:
            async for answer in call:
                yield _decoded(self.path, method, answer)
        except grpc.aio.AioRpcError as error:
            raise _call_error(self.path, method, error) from error
        except asyncio.CancelledError:
            _unless_closed(self.path, method)
            raise
        finally:
            call.cancel()

    async def close(self) -> None:
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _unless_closed(path: Path, method: Method) -> None:
    """A call whose channel is closed ends like one whose task is cancelled. Raises CallError if nobody has cancelled it."""
    task = asyncio.current_task()
    if task is not None and not task.cancelling():
        raise CallError(f"{path}: {method.name}: the plugin has been deregistered") from None


def _decoded(path: Path, method: Method, answer: Any) -> Any:
    """Raises CallError for what the library gives where it cannot make sense of an answer."""
    if answer is None:
        raise CallError(f"{path}: {method.name}: the answer makes no sense")
    return answer


def _call_error(path: Path, method: Method, error: Any) -> CallError:
    return CallError(f"{path}: {method.name}: {error.code().name}: {error.details()}")


async def introduce(connection: Connection) -> PluginInfo:
    """Ask a plugin who it is, on its socket in the registry. Raises CallError."""
    found: registration_pb2.PluginInfo = await connection.call(
        REGISTRATION["GetInfo"], registration_pb2.InfoRequest(), INFO_S
    )
    return PluginInfo(found.type, found.name, found.endpoint, tuple(found.supported_versions))


async def notify(connection: Connection, error: str = "") -> None:
    """Tell a plugin that it is registered or, with an error, that it is not. Raises CallError."""
    status = registration_pb2.RegistrationStatus(plugin_registered=not error, error=error)
    await connection.call(REGISTRATION["NotifyRegistrationStatus"], status, NOTIFY_S)


def chosen_version(info: PluginInfo) -> Version:
    """The first version that a plugin offers and we know. Raises RegistrationError if there is none, or if it is no DRA plugin."""
    if info.type != PLUGIN_TYPE:
        raise RegistrationError(f"plugin {info.name!r} has type {info.type!r}, not {PLUGIN_TYPE!r}")
    problem = name_problem(info.name)
    if problem:
        raise RegistrationError(problem)
    if not Path(info.endpoint).is_absolute():
        raise RegistrationError(
            f"plugin {info.name}: endpoint {info.endpoint!r} is no absolute path"
        )
    known = {version.name: version for version in VERSIONS}
    for name in info.versions:
        if name in known:
            return known[name]
    raise RegistrationError(
        f"plugin {info.name} supports {', '.join(info.versions) or 'no version'};"
        f" this node speaks {' and '.join(known)}"
    )


class PluginClient:
    """Calls the services of one driver."""

    def __init__(self, info: PluginInfo) -> None:
        """Raises RegistrationError."""
        self.info = info
        self.version = chosen_version(info)
        self._connection = Connection(Path(info.endpoint))

    @property
    def is_connected(self) -> bool:
        return self._connection.is_connected

    async def prepare(
        self, claims: Sequence[ClaimRef], timeout_s: float = CALL_S
    ) -> dict[str, Ready | Failed]:
        """Every claim by uid. Raises CallError, also if one is left out or one too many is answered."""
        request = self.version.prepare_request(claims)
        method = self.version.methods["NodePrepareResources"]
        response = await self._connection.call(method, request, timeout_s)
        answers = self.version.answers(response)
        self._require_all(claims, set(answers))
        return answers

    async def unprepare(
        self, claims: Sequence[ClaimRef], timeout_s: float = CALL_S
    ) -> dict[str, Failed | None]:
        """Every claim by uid. Raises CallError, also if one is left out or one too many is answered."""
        request = self.version.unprepare_request(claims)
        method = self.version.methods["NodeUnprepareResources"]
        removals = removals_of(await self._connection.call(method, request, timeout_s))
        self._require_all(claims, set(removals))
        return removals

    def _require_all(self, claims: Sequence[ClaimRef], answered: set[str]) -> None:
        asked = {claim.uid for claim in claims}
        if answered != asked:
            wrong = ", ".join(sorted(asked ^ answered))
            raise CallError(f"plugin {self.info.name} left out or invented the answers for {wrong}")

    async def health(self) -> AsyncGenerator[tuple[ReportedHealth, ...], None]:
        """Complete lists, until the stream ends. Raises CallError."""
        stream = self._connection.stream(
            HEALTH["NodeWatchResources"], health_pb2.NodeWatchResourcesRequest()
        )
        async with aclosing(stream):
            async for message in stream:
                yield reports_of(message)

    async def close(self) -> None:
        await self._connection.close()

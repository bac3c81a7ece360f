"""Probes and hooks against real servers and real processes."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
import grpc.aio
import pytest
from aiohttp import web

from drayman.apiserver.security.authority import ensure_certificates
from drayman.node.agent.handlers import (
    ExecAction,
    GrpcAction,
    Handler,
    HttpGetAction,
    HttpHeader,
    Probe,
    SleepAction,
    TcpSocketAction,
)
from drayman.node.agent.probes.answers import Answer, Asked
from drayman.node.agent.probes.asking import ask
from drayman.node.agent.probes.asking_grpc import CHECK
from drayman.node.agent.probes.container_health import Outcome
from drayman.node.agent.probes.hooks import run_hook
from drayman.node.agent.processes.attempts import Attempt, Launch
from drayman.node.agent.spec import Container, ContainerPort
from drayman.plugins.protocol.grpc_health_pb2 import HealthCheckRequest, HealthCheckResponse

LOCAL = "127.0.0.1"
SUCCESS, FAILURE, UNKNOWN = Outcome.SUCCESS, Outcome.FAILURE, Outcome.UNKNOWN
PATIENT_S = 30
"""Enough for anything that answers."""


def asked(port: int = 0, attempt: Attempt | None = None) -> Asked:
    """A container whose port `web` is this one."""
    ports = (ContainerPort(name="web", container_port=port),)
    nobody = Attempt(Path("nowhere/0"))
    return Asked(Container(name="main", ports=ports), attempt or nobody, LOCAL)


def port_of(runner: web.AppRunner) -> int:
    port: int = runner.addresses[0][1]
    return port


# --- HTTP ---------------------------------------------------------------------------------------


@dataclass
class Site:
    """A server, and the requests that it got."""

    port: int = 0
    requests: list[web.Request] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        match request.path.split("/")[1:]:
            case ["status", code]:
                return web.Response(status=int(code))
            case ["near"]:
                raise web.HTTPFound("/status/200")
            case ["round"]:
                raise web.HTTPFound("/round")
            case ["far"]:
                return web.Response(
                    status=302, headers={"Location": "http://elsewhere.invalid/"}, text="over there"
                )
            case ["endless"]:
                return await self._endless(request)
            case ["slow"]:
                await asyncio.Event().wait()
        return web.Response()

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 4096)
        except ConnectionError:
            return response


@asynccontextmanager
async def site(context: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    here = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", here.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOCAL, 0, ssl_context=context).start()
        here.port = port_of(runner)
        yield here
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class HttpCase:
    says: str
    path: str
    outcome: Outcome
    text: str = ""
    port: int | str = "web"
    timeout_s: int = PATIENT_S


HTTP_CASES = [
    HttpCase("200 is a success", "/status/200", SUCCESS),
    HttpCase("a path may do without its slash", "status/204", SUCCESS),
    HttpCase("and have a query", "/?full=1", SUCCESS),
    HttpCase("400 is a failure", "/status/400", FAILURE, "HTTP probe failed with statuscode: 400"),
    HttpCase("so is 500", "/status/500", FAILURE, "HTTP probe failed with statuscode: 500"),
    HttpCase("a redirect to the same host is followed", "/near", SUCCESS),
    HttpCase(
        "one to another host is not, and counts as an answer",
        "/far",
        SUCCESS,
        "Probe terminated redirects, Response body: over there",
    ),
    HttpCase(
        "one in a circle ends", "/round", FAILURE, 'Get "URL/round": stopped after 10 redirects'
    ),
    HttpCase("an answer without end is not read to the end", "/endless", SUCCESS),
    HttpCase(
        "no answer in time is a failure",
        "/slow",
        FAILURE,
        'Get "URL/slow": timed out after 1s',
        timeout_s=1,
    ),
    HttpCase(
        "a port that the container does not have says nothing about it",
        "/",
        UNKNOWN,
        "container main has no port other",
        port="other",
    ),
]


@pytest.mark.parametrize("case", HTTP_CASES, ids=lambda case: case.says)
async def test_http(case: HttpCase) -> None:
    """Each case says what holds."""
    async with site() as here:
        action = HttpGetAction(path=case.path, port=case.port)
        probe = Probe(http_get=action, timeout_seconds=case.timeout_s)
        text = case.text.replace("URL", f"http://{LOCAL}:{here.port}")
        assert await ask(asked(here.port), probe) == Answer(case.outcome, text)


async def test_http_headers() -> None:
    """A server sees who asks, and what the pod says; that may replace the host and the rest, or take it away."""
    async with site() as here:
        headers = (
            HttpHeader(name="X-Word", value="one"),
            HttpHeader(name="X-Word", value="two"),
            HttpHeader(name="host", value="named.example"),
            HttpHeader(name="accept", value=""),
        )
        for more in ((), headers):
            action = HttpGetAction(port=here.port, http_headers=more)
            probe = Probe(http_get=action, timeout_seconds=PATIENT_S)
            assert (await ask(asked(), probe)).outcome is SUCCESS
    plain, own = (request.headers for request in here.requests)
    assert (plain["User-Agent"], plain["Accept"]) == ("kube-probe/1.36", "*/*")
    assert "Accept-Encoding" not in plain
    assert plain["Host"] == f"{LOCAL}:{here.port}"
    assert (own["Host"], own.getall("X-Word")) == ("named.example", ["one", "two"])
    assert "Accept" not in own


async def test_https_without_looking_at_the_certificate(tmp_path: Path) -> None:
    """A server with a certificate of its own authority, for another name, is well."""
    files = ensure_certificates(tmp_path, ["other.example"], datetime.now(UTC))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    async with site(context) as here:
        action = HttpGetAction(port=here.port, scheme="HTTPS")
        probe = Probe(http_get=action, timeout_seconds=PATIENT_S)
        assert await ask(asked(), probe) == Answer(SUCCESS)


async def test_nobody_listens() -> None:
    """A refused connection is a failure that says so, whatever was asked."""
    async with site() as here:
        port = here.port
    probes = [
        Probe(http_get=HttpGetAction(port=port), timeout_seconds=PATIENT_S),
        Probe(tcp_socket=TcpSocketAction(port=port), timeout_seconds=PATIENT_S),
        Probe(grpc=GrpcAction(port=port), timeout_seconds=PATIENT_S),
    ]
    http, tcp, rpc = [await ask(asked(), probe) for probe in probes]
    assert http == Answer(FAILURE, f'Get "http://{LOCAL}:{port}/": connection refused')
    assert tcp == Answer(FAILURE, f"dial tcp {LOCAL}:{port}: connection refused")
    assert rpc.outcome is FAILURE
    assert rpc.text.startswith(f"health rpc to {LOCAL}:{port} failed: UNAVAILABLE")


async def test_tcp() -> None:
    """A server that accepts a connection is well, whatever it would say."""
    async with site() as here:
        probe = Probe(tcp_socket=TcpSocketAction(port="web"), timeout_seconds=PATIENT_S)
        assert await ask(asked(here.port), probe) == Answer(SUCCESS)


# --- gRPC ---------------------------------------------------------------------------------------

Check = Callable[[HealthCheckRequest, grpc.aio.ServicerContext], Awaitable[HealthCheckResponse]]


@asynccontextmanager
async def rpc_server(check: Check | None) -> AsyncIterator[int]:
    """The port of a server that implements the protocol, or does not."""
    server = grpc.aio.server()
    if check is not None:
        handler = grpc.unary_unary_rpc_method_handler(
            check,
            request_deserializer=HealthCheckRequest.FromString,
            response_serializer=HealthCheckResponse.SerializeToString,
        )
        _, service, method = CHECK.split("/")
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )
    port = server.add_insecure_port(f"{LOCAL}:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("service", "want"),
    [
        ("", Answer(SUCCESS)),
        ("ill", Answer(FAILURE, 'service unhealthy (responded with "NOT_SERVING")')),
        ("other", Answer(FAILURE, "health rpc to ADDRESS failed: NOT_FOUND: no such service")),
    ],
    ids=["a server that serves", "a service that does not", "a service that is not there"],
)
async def test_grpc(service: str, want: Answer) -> None:
    """The server is asked about the service that the probe names, by a client that says what it is."""
    clients = []

    async def check(
        request: HealthCheckRequest, context: grpc.aio.ServicerContext
    ) -> HealthCheckResponse:
        clients.append(dict(context.invocation_metadata() or ())["user-agent"])
        if request.service == "other":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        name = "NOT_SERVING" if request.service == "ill" else "SERVING"
        return HealthCheckResponse(status=name)

    async with rpc_server(check) as port:
        action = GrpcAction(port=port, service=service)
        answer = await ask(asked(), Probe(grpc=action, timeout_seconds=PATIENT_S))
    text = want.text.replace("ADDRESS", f"{LOCAL}:{port}")
    assert answer == Answer(want.outcome, text)
    assert str(clients[0]).startswith("kube-probe/1.36 ")


async def test_grpc_without_the_protocol() -> None:
    """A server that does not know the protocol fails, and is told apart."""
    async with rpc_server(None) as port:
        probe = Probe(grpc=GrpcAction(port=port), timeout_seconds=PATIENT_S)
        answer = await ask(asked(), probe)
    assert answer.outcome is FAILURE
    assert "does not implement the grpc health protocol" in answer.text


# --- Commands -----------------------------------------------------------------------------------


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Attempt]:
    attempt = Attempt(folder / "0")
    env = {"PATH": "/usr/bin:/bin", "WORD": "hello"}
    attempt.start(Launch(argv=("sleep", "1000"), env=env, cwd=str(folder)))
    try:
        while attempt.pid is None:
            await asyncio.sleep(0.01)
        yield attempt
    finally:
        attempt.signal(signal.SIGKILL)
        await attempt.wait()


@dataclass(frozen=True)
class ExecCase:
    says: str
    script: str
    want: Answer


EXEC_CASES = [
    ExecCase("exit code 0 is a success", "test $WORD = hello", Answer(SUCCESS)),
    ExecCase("another is a failure with what was said", "echo bad; exit 3", Answer(FAILURE, "bad")),
    ExecCase("a silent failure has its code", "exit 3", Answer(FAILURE, "exit code 3")),
    ExecCase(
        "of much that is said the beginning is kept",
        "yes | head -c 1000000; exit 1",
        Answer(FAILURE, ("y\n" * 5120).strip()),
    ),
]


@pytest.mark.parametrize("case", EXEC_CASES, ids=lambda case: case.says)
async def test_exec(case: ExecCase, tmp_path: Path) -> None:
    """Each case says what holds."""
    async with running(tmp_path) as attempt:
        action = ExecAction(command=("sh", "-c", case.script))
        probe = Probe(exec_=action, timeout_seconds=PATIENT_S)
        assert await ask(asked(attempt=attempt), probe) == case.want


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """With everything that it has started."""
    script = "sleep 1004 & echo $! > pids; echo $$ >> pids; wait"
    async with running(tmp_path) as attempt:
        # Whether the shell has come to write its pids within a second depends on the machine.
        for timeout_s in (1, 2, 4, 8, 16):
            action = ExecAction(command=("sh", "-c", script))
            answer = await ask(
                asked(attempt=attempt), Probe(exec_=action, timeout_seconds=timeout_s)
            )
            assert answer.outcome is FAILURE
            assert answer.text.endswith(f"timed out after {timeout_s}s")
            file = tmp_path / "pids"
            pids = file.read_text().split() if file.exists() else []
            if len(pids) == 2:
                break
        assert len(pids) == 2
        while any(_is_alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


def _is_alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- Hooks --------------------------------------------------------------------------------------


async def test_hooks(tmp_path: Path) -> None:
    """A command has to succeed, a request has to be answered in any way, and a sleep passes."""
    async with running(tmp_path) as attempt, site() as here:
        who = asked(here.port, attempt)

        async def run(**action: object) -> str:
            return await run_hook(who, Handler(**action))  # type: ignore[arg-type]

        assert await run(exec_=ExecAction(command=("true",))) == ""
        assert (
            await run(exec_=ExecAction(command=("sh", "-c", "echo no; exit 2")))
            == "exit code 2: no"
        )
        assert await run(http_get=HttpGetAction(port="web", path="/status/500")) == ""
        assert await run(http_get=HttpGetAction(port="x")) == "container main has no port x"
        assert await run(sleep=SleepAction(seconds=0)) == ""
        refused = "it has none of exec, httpGet and sleep"
        assert await run(tcp_socket=TcpSocketAction(port=1)) == refused

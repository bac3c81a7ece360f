"""Asks a container what its probe wants to know: by a command in it, or over the network at the address of its pod."""

from __future__ import annotations

import asyncio
import shlex

from drayman.node.agent.handlers import ExecAction, Probe, TcpSocketAction
from drayman.node.agent.probes.answers import Answer, Asked, PortError, address, why
from drayman.node.agent.probes.asking_grpc import ask_grpc
from drayman.node.agent.probes.asking_http import ask_http, url_of
from drayman.node.agent.probes.container_health import Outcome
from drayman.node.agent.processes.executing import run_inside


async def ask(asked: Asked, probe: Probe) -> Answer:
    """What comes of it within the time that the probe allows."""
    try:
        what = _what(asked, probe)
    except PortError as error:
        return Answer(Outcome.UNKNOWN, str(error))
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            return await _ask(asked, probe)
    except TimeoutError:
        return Answer(Outcome.FAILURE, f"{what} timed out after {probe.timeout_seconds}s")


async def _ask(asked: Asked, probe: Probe) -> Answer:
    if probe.exec_ is not None:
        return await _ask_exec(asked, probe.exec_)
    if probe.http_get is not None:
        return await ask_http(asked, probe.http_get)
    if probe.tcp_socket is not None:
        return await _ask_tcp(asked, probe.tcp_socket)
    if probe.grpc is not None:
        return await ask_grpc(asked, probe.grpc)
    return Answer(Outcome.UNKNOWN, "it has none of exec, httpGet, tcpSocket and grpc")


def _what(asked: Asked, probe: Probe) -> str:
    """What is done, for one that takes too long. Raises PortError."""
    if probe.exec_ is not None:
        return f'command timed out: "{shlex.join(probe.exec_.command)}"'
    if probe.http_get is not None:
        return f'Get "{url_of(asked, probe.http_get)}":'
    if probe.tcp_socket is not None:
        return f"dial tcp {_where(asked, probe.tcp_socket)}:"
    return "health rpc"


async def _ask_exec(asked: Asked, action: ExecAction) -> Answer:
    result = await run_inside(asked.attempt, action.command)
    if result.code == 0:
        return Answer(Outcome.SUCCESS)
    return Answer(Outcome.FAILURE, result.text or f"exit code {result.code}")


async def _ask_tcp(asked: Asked, action: TcpSocketAction) -> Answer:
    host, port = action.host or asked.pod_ip, asked.port(action.port)
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return Answer(Outcome.FAILURE, f"dial tcp {_where(asked, action)}: {why(error)}")
    writer.close()
    return Answer(Outcome.SUCCESS)


def _where(asked: Asked, action: TcpSocketAction) -> str:
    return address(action.host or asked.pod_ip, asked.port(action.port))

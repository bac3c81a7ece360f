"""Parts of objects that lead into a running pod or to a node: exec, attach, portforward, proxy.

Commands are followed by WebSocket, which kubectl 1.31 and later, and the Python client, use, or by SPDY, which older clients use. Ports are
forwarded by SPDY, which may be in the messages of a WebSocket, or by channels of a WebSocket.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request
from drayman.apiserver.protocol.exchange import Answer, Query, Request, UpgradedResponse
from drayman.apiserver.reaching.containers import (
    container_of,
    named,
    node_api_of,
    pod_of,
    query_of,
)
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Object
from drayman.node.streams import commands, forwarding, serving
from drayman.node.streams.channels import PROTOCOLS, Socket
from drayman.node.streams.model import NodeApiError, PodName, StreamOptions
from drayman.node.streams.negotiating import STREAM_PROTOCOL, is_spdy, stream_protocol
from drayman.node.streams.takeover import SPDY

_CONNECT_VERBS: Final = ("create", "get")
_PROXY_VERBS: Final = ("create", "delete", "get", "patch", "update")


async def connect(call: Call) -> Answer:
    """`exec` and `attach` of a pod. Raises StatusError."""
    pod = _hosted_pod(call)
    query = query_of(call)
    name = named(pod, container_of(query, pod))
    api = node_api_of(call, pod, "the container")
    options = StreamOptions(
        stdin=bool(query.flag("stdin")),
        stdout=bool(query.flag("stdout")),
        stderr=bool(query.flag("stderr")),
        tty=bool(query.flag("tty")),
    )
    request = _upgrade(call)
    is_by_spdy = is_spdy(request.header("upgrade"))
    protocol = _protocol(request, PROTOCOLS, commands.PROTOCOLS)
    if not (options.stdin or options.stdout or options.stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    assert call.subresource is not None
    if call.subresource.name == "attach":
        work = partial(api.attach, name, options)
    else:
        command = query.all("command")
        if not command:
            raise bad_request("you must specify a command: the query has no `command`")
        work = partial(api.execute, name, command, options)

    async def converse(socket: Socket) -> None:
        if is_by_spdy:
            await commands.serve(socket, protocol, options, work)
        else:
            await serving.serve(socket, options, work)

    return UpgradedResponse(converse, protocol, is_spdy=is_by_spdy)


async def forward(call: Call) -> Answer:
    """`portforward` of a pod. Raises StatusError: what is known of the pod comes first, as for the other parts."""
    pod = _hosted_pod(call)
    api = node_api_of(call, pod, "the pod")
    request = _upgrade(call)
    protocol = _protocol(request, forwarding.WEBSOCKET_PROTOCOLS, (forwarding.SPDY_PROTOCOL,))
    meta = pod["metadata"]
    dial = partial(api.forward, PodName(meta["namespace"], meta["name"], meta["uid"]))
    ports = _ports(query_of(call)) if protocol == forwarding.CHANNELS else ()

    async def converse(socket: Socket) -> None:
        if ports:
            await forwarding.serve_channels(socket, ports, dial)
        else:
            await forwarding.serve_spdy(socket, dial)

    return UpgradedResponse(converse, protocol, is_spdy=is_spdy(request.header("upgrade")))


def _ports(query: Query) -> Sequence[int]:
    """Raises StatusError 400."""
    try:
        return forwarding.ports_of(query.all("ports"))
    except ValueError as error:
        raise bad_request(f"the query has no usable `ports`: {error}") from None


def _hosted_pod(call: Call) -> Object:
    """A pod that has a node. Raises StatusError."""
    pod = pod_of(call)
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {call.name} does not have a host assigned")
    return pod


def _upgrade(call: Call) -> Request:
    """Raises StatusError 400 for a request that is not to become something else."""
    request = call.request
    if request is None or "upgrade" not in request.header("connection").lower():
        raise bad_request("Upgrade request required")
    return request


def _protocol(request: Request, by_websocket: Sequence[str], by_spdy: Sequence[str]) -> str:
    """The best protocol that the client offers. Raises StatusError."""
    upgrade = request.header("upgrade")
    if is_spdy(upgrade):
        try:
            return stream_protocol([request.header(STREAM_PROTOCOL.lower())], by_spdy)
        except NodeApiError as error:
            reason = "Forbidden" if error.code == 403 else "BadRequest"
            raise StatusError(error.code, reason, str(error), Subject()) from None
    if upgrade.lower() != "websocket":
        raise bad_request(f"{upgrade} is not served: WebSocket and {SPDY} are")
    offered = [word.strip() for word in request.header("sec-websocket-protocol").split(",")]
    for protocol in by_websocket:
        if protocol in offered:
            return protocol
    raise bad_request(
        f"unable to negotiate protocol: client supports {offered}, server accepts {list(by_websocket)}"
    )


def _not_served(message: str) -> StatusError:
    return StatusError(501, "NotImplemented", message, Subject())


async def proxy(call: Call) -> Answer:
    """`proxy` of a pod, a node or a service. Raises StatusError."""
    pod_of(call)
    raise _not_served(f"the proxy of {call.resource.subject(call.name).kind} is not served")


def _connected(
    name: str, kind: str, handler: Callable[[Call], Awaitable[Answer]] = connect
) -> Subresource:
    return Subresource(
        name=name,
        verbs=_CONNECT_VERBS,
        kind=GroupVersionKind("", "v1", kind),
        handlers=dict.fromkeys(_CONNECT_VERBS, handler),
    )


EXEC: Final = _connected("exec", "PodExecOptions")
ATTACH: Final = _connected("attach", "PodAttachOptions")
PORT_FORWARD: Final = _connected("portforward", "PodPortForwardOptions", forward)


def _proxy(kind: str) -> Subresource:
    return Subresource(
        name="proxy",
        verbs=_PROXY_VERBS,
        kind=GroupVersionKind("", "v1", kind),
        handlers=dict.fromkeys(_PROXY_VERBS, proxy),
    )


PROXY: Final = {
    "pods": _proxy("PodProxyOptions"),
    "nodes": _proxy("NodeProxyOptions"),
    "services": _proxy("ServiceProxyOptions"),
}

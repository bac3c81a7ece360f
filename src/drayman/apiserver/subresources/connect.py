"""Parts of objects that lead into a running pod or to a node: exec, attach, portforward, proxy.

Commands are followed by WebSocket, which kubectl 1.31 and later, and the Python client, use. SPDY, which Kubernetes still serves for
older clients and uses to forward ports, is not served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request
from drayman.apiserver.protocol.exchange import Answer, Request, UpgradedResponse
from drayman.apiserver.reaching.containers import (
    container_of,
    named,
    node_api_of,
    pod_of,
    query_of,
)
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.requests.rights import authorize
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Object
from drayman.node.streams import serving
from drayman.node.streams.channels import PROTOCOLS, Socket
from drayman.node.streams.model import StreamOptions

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
    protocol = _protocol(_upgrade(call))
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
    return UpgradedResponse(_conversation(options, work), protocol)


async def forward(call: Call) -> Answer:
    """`portforward` of a pod. Raises StatusError: what is known of the pod comes first, as for the other parts."""
    pod = _hosted_pod(call)
    node_api_of(call, pod, "the pod")
    _upgrade(call)
    raise _not_served("ports are forwarded by SPDY/3.1 alone, which is not served")


def _hosted_pod(call: Call) -> Object:
    """A pod that has a node. Raises StatusError."""
    if call.verb != "create":
        # Browsers open a WebSocket with GET, but what follows is more than reading.
        authorize(call, "create")
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


def _protocol(request: Request) -> str:
    """The best protocol that the client offers. Raises StatusError."""
    if request.header("upgrade").lower() != "websocket":
        asked = request.header("upgrade")
        raise _not_served(
            f"{asked} is not served: use WebSocket, as kubectl 1.31 and later do by themselves"
        )
    offered = [word.strip() for word in request.header("sec-websocket-protocol").split(",")]
    for protocol in PROTOCOLS:
        if protocol in offered:
            return protocol
    raise bad_request(
        f"unable to negotiate protocol: client supports {offered}, server accepts {list(PROTOCOLS)}"
    )


def _conversation(
    options: StreamOptions, work: serving.Work
) -> Callable[[Socket], Awaitable[None]]:
    async def converse(socket: Socket) -> None:
        await serving.serve(socket, options, work)

    return converse


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

"""Parts of objects that lead to a running pod or node: log, exec, attach, portforward, proxy.

They need an agent on the node. Without one, the server still checks what it can: which container is meant, and that a pod
without a node has no log yet.
"""

from __future__ import annotations

from typing import Final

from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request, not_found
from drayman.apiserver.protocol.exchange import TEXT_TYPE, Answer, Query, Response
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.requests.rights import authorize
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Object
from drayman.workloads.dispatching.pods import cluster_of

_CONNECT_VERBS: Final = ("create", "get")
_PROXY_VERBS: Final = ("create", "delete", "get", "patch", "update")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def _pod(call: Call) -> Object:
    stored = call.core.store.get(call.key)
    if stored is None:
        raise not_found(call.subject)
    return stored.value


def _container(call: Call, pod: Object) -> str:
    """The container that is meant. Raises StatusError 400."""
    query = call.request.query if call.request is not None else Query()
    spec, name = pod["spec"], pod["metadata"]["name"]
    names = [item["name"] for group in _CONTAINERS for item in spec.get(group) or ()]
    asked = query.text("container")
    if asked:
        if asked not in names:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    main = [item["name"] for item in spec.get("containers") or ()]
    default = (pod["metadata"].get("annotations") or {}).get(
        "kubectl.kubernetes.io/default-container"
    )
    if default in main:
        return str(default)
    if len(main) != 1:
        choices = " ".join(main)
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{choices}]"
        )
    return str(main[0])


def _no_agent(node: str, what: str) -> StatusError:
    message = f"no agent runs on node {node}: {what} is not available"
    return StatusError(503, "ServiceUnavailable", message, Subject())


async def log(call: Call) -> Answer:
    """`pods/NAME/log`."""
    pod = _pod(call)
    _container(call, pod)
    node = pod["spec"].get("nodeName", "")
    cluster = cluster_of(pod.get("status"))
    if cluster:
        message = f"pod {call.name} runs in cluster {cluster}: its log is there"
        raise StatusError(503, "ServiceUnavailable", message, Subject())
    if not node:
        return Response(204, b"", TEXT_TYPE)
    raise _no_agent(node, "the log")


async def connect(call: Call) -> Answer:
    """`exec`, `attach` and `portforward` of a pod."""
    assert call.subresource is not None
    if call.verb != "create":
        # Browsers open a WebSocket with GET, but what follows is more than reading.
        authorize(call, "create")
    part, pod = call.subresource.name, _pod(call)
    if part != "portforward":
        _container(call, pod)
    node = pod["spec"].get("nodeName", "")
    if not node:
        raise bad_request(f"pod {call.name} does not have a host assigned")
    if call.request is None or "upgrade" not in call.request.header("connection").lower():
        raise bad_request("Upgrade request required")
    raise _no_agent(node, part)


async def proxy(call: Call) -> Answer:
    """`proxy` of a pod, a node or a service."""
    _pod(call)
    raise _no_agent(call.name, "the proxy")


def _connected(name: str, kind: str) -> Subresource:
    return Subresource(
        name=name,
        verbs=_CONNECT_VERBS,
        kind=GroupVersionKind("", "v1", kind),
        handlers=dict.fromkeys(_CONNECT_VERBS, connect),
    )


LOG: Final = Subresource(name="log", verbs=("get",), handlers={"get": log})
EXEC: Final = _connected("exec", "PodExecOptions")
ATTACH: Final = _connected("attach", "PodAttachOptions")
PORT_FORWARD: Final = _connected("portforward", "PodPortForwardOptions")


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

"""Which part answers for a node: the simulation or the agent in this process, or the kubelet at the node's address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from drayman.apiserver.protocol.errors import StatusError, Subject
from drayman.apiserver.served.strategy import Object
from drayman.node.reporting import SIMULATED
from drayman.node.streams.kubelet import PORT, Kubelet, Kubelets
from drayman.node.streams.model import NodeApi

_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""Sorts of addresses, in the order in which Kubernetes tries them by default."""


@dataclass(slots=True)
class NodeApis:
    """The parts that answer for nodes. They are set where simulated nodes, an agent and certificates for kubelets are started."""

    simulated: NodeApi | None = None
    kubelets: Kubelets | None = None
    _local: dict[tuple[str, int], NodeApi] = field(default_factory=dict)
    """Agents in this process, by the name of the node and the port at which they serve. Their streams need no connection between
    two ends of one event loop, which would hold everything twice more."""

    @contextmanager
    def serving(self, node: str, port: int, api: NodeApi) -> Iterator[None]:
        """Let the agent of a node in this process answer for that node."""
        self._local[node, port] = api
        try:
            yield
        finally:
            del self._local[node, port]

    def of(self, node: Object) -> NodeApi:
        """Raises StatusError 503."""
        name = node["metadata"]["name"]
        if (node["metadata"].get("labels") or {}).get(SIMULATED) == "true":
            if self.simulated is None:
                raise _unavailable(f"node {name} is simulated, but not by this process")
            return self.simulated
        return self._local.get((name, _port(node))) or self.kubelet_of(node)

    def kubelet_of(self, node: Object) -> Kubelet:
        """The one at the address of a node. Raises StatusError 503."""
        name = node["metadata"]["name"]
        status = node.get("status") or {}
        host = _address(status.get("addresses") or ())
        if not host or self.kubelets is None:
            raise _unavailable(f"no agent runs on node {name}: it has no address")
        return self.kubelets.at(host, _port(node))


def _port(node: Object) -> int:
    status = node.get("status") or {}
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return int(endpoint.get("Port") or PORT)


def _address(addresses: list[Object] | tuple[Object, ...]) -> str:
    for sort in _PREFERRED:
        for each in addresses:
            if each.get("type") == sort and each.get("address"):
                return str(each["address"])
    return ""


def _unavailable(message: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message, Subject())

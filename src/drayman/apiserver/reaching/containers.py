"""Which container a request means, and who answers for its node."""

from __future__ import annotations

from typing import Final

from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request, not_found
from drayman.apiserver.protocol.exchange import Query
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.strategy import Object
from drayman.cluster.embedded.model import Key
from drayman.node.streams.model import ContainerName, NodeApi
from drayman.workloads.dispatching.pods import cluster_of

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_DEFAULT: Final = "kubectl.kubernetes.io/default-container"


def query_of(call: Call) -> Query:
    return call.request.query if call.request is not None else Query()


def pod_of(call: Call) -> Object:
    """Raises StatusError 404."""
    stored = call.core.store.get(call.key)
    if stored is None:
        raise not_found(call.subject)
    return stored.value


def container_of(query: Query, pod: Object) -> str:
    """The container that is meant. Raises StatusError 400."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    asked = query.text("container")
    if asked:
        if asked not in [item["name"] for group in _LISTS for item in spec.get(group) or ()]:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    main = [item["name"] for item in spec.get("containers") or ()]
    default = (pod["metadata"].get("annotations") or {}).get(_DEFAULT)
    if default in main:
        return str(default)
    if len(main) != 1:
        choices = " ".join(main)
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{choices}]"
        )
    return str(main[0])


def named(pod: Object, container: str) -> ContainerName:
    meta = pod["metadata"]
    return ContainerName(meta["namespace"], meta["name"], meta["uid"], container)


def node_api_of(call: Call, pod: Object, what: str) -> NodeApi:
    """Who answers for the node of a pod that has one. Raises StatusError 404 or 503."""
    cluster = cluster_of(pod.get("status"))
    if cluster:
        message = f"pod {call.name} runs in cluster {cluster}: {what} is there"
        raise StatusError(503, "ServiceUnavailable", message, Subject())
    name = pod["spec"]["nodeName"]
    node = call.core.store.get(Key("nodes", "", name))
    if node is None:
        raise not_found(Subject("nodes", name=name))
    return call.core.nodes.of(node.value)

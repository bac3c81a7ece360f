"""The group `metrics.k8s.io`: what nodes and pods use, for `kubectl top` and dashboards.

Nothing is stored: the agents of the nodes are asked when somebody asks. Nodes that say nothing, and simulated ones, which use nothing, are
left out, as is usual for nodes that nothing is known of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from drayman.api.times import timestamp
from drayman.apiserver.protocol.errors import StatusError, not_found
from drayman.apiserver.protocol.exchange import Response
from drayman.apiserver.protocol.options import list_options
from drayman.apiserver.reaching.containers import query_of
from drayman.apiserver.reaching.rates import NodeRates, Rate
from drayman.apiserver.reaching.sampling import NodeSamples
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.acting import Part, by
from drayman.apiserver.served.encoding import encode
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.reading import selector_of
from drayman.cluster.embedded.model import Key
from drayman.node.reporting import SIMULATED
from drayman.node.streams.use import ContainerKey

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
_EFFECT: Final = "is answered from what the agents of real nodes count; nothing is kept"


class UseMetrics:
    """Answers for one server."""

    def __init__(self) -> None:
        self._samples = NodeSamples()

    def resources(self) -> list[ApiResource]:
        return [
            ApiResource(
                kind="NodeMetrics",
                plural="nodes",
                group=GROUP,
                versions=(VERSION,),
                namespaced=False,
                verbs=("get", "list"),
                read_handlers={"get": self.get_node, "list": self.list_nodes},
                acting=by(Part.SERVER, effect=_EFFECT),
            ),
            ApiResource(
                kind="PodMetrics",
                plural="pods",
                group=GROUP,
                versions=(VERSION,),
                verbs=("get", "list"),
                read_handlers={"get": self.get_pod, "list": self.list_pods},
                acting=by(Part.SERVER, effect=_EFFECT),
            ),
        ]

    async def get_node(self, call: Call) -> Response:
        stored = call.core.store.get(Key("nodes", "", call.name))
        found = [] if stored is None else await self._nodes(call, [stored.value])
        return _only(call, found)

    async def list_nodes(self, call: Call) -> Response:
        wanted = _selected(call, (each.value for each in call.core.store.list("nodes", None)))
        return _list(call, await self._nodes(call, wanted))

    async def get_pod(self, call: Call) -> Response:
        stored = call.core.store.get(Key("pods", call.namespace, call.name))
        found = [] if stored is None else await self._pods(call, [stored.value])
        return _only(call, found)

    async def list_pods(self, call: Call) -> Response:
        if not _real_nodes(call):
            return _list(call, [])
        stored = call.core.store.list("pods", call.namespace or None)
        return _list(call, await self._pods(call, _selected(call, (each.value for each in stored))))

    async def _nodes(self, call: Call, nodes: Iterable[Object]) -> list[Object]:
        wanted = [node for node in nodes if not _is_simulated(node)]
        found = await asyncio.gather(*(self._rates(call, node) for node in wanted))
        return [
            {**_described(node, "NodeMetrics", each.node), "usage": _usage(each.node)}
            for node, each in zip(wanted, found, strict=True)
            if each is not None and each.node is not None
        ]

    async def _pods(self, call: Call, pods: Iterable[Object]) -> list[Object]:
        nodes = _real_nodes(call)
        wanted = [pod for pod in pods if pod["spec"].get("nodeName") in nodes]
        names = list(dict.fromkeys(pod["spec"]["nodeName"] for pod in wanted))
        found = await asyncio.gather(*(self._rates(call, nodes[name]) for name in names))
        by_node = dict(zip(names, found, strict=True))
        answers = (_pod_metrics(pod, by_node[pod["spec"]["nodeName"]]) for pod in wanted)
        return [each for each in answers if each is not None]

    async def _rates(self, call: Call, node: Object) -> NodeRates | None:
        try:
            api = call.core.nodes.kubelet_of(node)
        except StatusError:
            return None  # it has no agent that could be asked
        return await self._samples.rates(node["metadata"]["name"], api.use)


def _is_simulated(node: Object) -> bool:
    return (node["metadata"].get("labels") or {}).get(SIMULATED) == "true"


def _real_nodes(call: Call) -> dict[str, Object]:
    nodes = (stored.value for stored in call.core.store.list("nodes", None))
    return {node["metadata"]["name"]: node for node in nodes if not _is_simulated(node)}


def _pod_metrics(pod: Object, of_node: NodeRates | None) -> Object | None:
    """None where nothing is known of any container."""
    if of_node is None:
        return None
    meta, spec = pod["metadata"], pod["spec"]
    containers, last = [], None
    for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
        key = ContainerKey(meta["namespace"], meta["name"], each["name"])
        found = of_node.containers.get(key)
        if found is not None:
            containers.append({"name": each["name"], "usage": _usage(found)})
            last = found
    return (
        None if last is None else {**_described(pod, "PodMetrics", last), "containers": containers}
    )


def _described(obj: Object, kind: str, rate: Rate) -> Object:
    meta = obj["metadata"]
    moment = datetime.fromtimestamp(rate.at_ms / 1000, UTC)
    kept = {name: meta[name] for name in ("name", "namespace", "labels") if meta.get(name)}
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {**kept, "creationTimestamp": timestamp(moment)},
        "timestamp": timestamp(moment),
        "window": f"{rate.window_ms / 1000:g}s",
    }


def _usage(rate: Rate) -> Object:
    return {"cpu": f"{rate.nano_cpu}n", "memory": f"{rate.memory // 1024}Ki"}


def _selected(call: Call, objects: Iterable[Object]) -> list[Object]:
    """Raises StatusError 400."""
    call.selection = list_options(query_of(call), watch=False)
    selector = selector_of(call)
    return [each for each in objects if selector.matches(each)]


def _only(call: Call, found: list[Object]) -> Response:
    """Raises StatusError 404."""
    if not found:
        raise not_found(call.subject)
    return Response(200, encode(found[0]) + b"\n")


def _list(call: Call, items: list[Object]) -> Response:
    kind = {"kind": call.resource.list_kind_name, "apiVersion": f"{GROUP}/{VERSION}"}
    return Response(200, encode({**kind, "metadata": {}, "items": items}) + b"\n")

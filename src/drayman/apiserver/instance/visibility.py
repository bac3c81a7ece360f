"""Kueue's visibility API: who waits in a queue, in which order. `kubectl kueue` and dashboards ask it.

Nothing is stored: the answer is the order of the engine that decides, at this moment. Positions begin with 0, as Kueue has them. It is
served as long as queues are at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from drayman.api import codec
from drayman.api.integers import parse_integer
from drayman.apiserver.protocol.errors import Subject, bad_request, not_found
from drayman.apiserver.protocol.exchange import Query, Response
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.acting import Part, by
from drayman.apiserver.served.encoding import encode
from drayman.apiserver.served.resources import (
    ApiResource,
    GroupVersionKind,
    Handler,
    Subresource,
)
from drayman.apiserver.served.strategy import Object
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.state import QuotaState

GROUP: Final = "visibility.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
_KIND: Final = "PendingWorkloadsSummary"
_PART: Final = "pendingworkloads"
_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class Visibility:
    """Answers from an engine, once there is one."""

    state: Callable[[], QuotaState | None]

    def resources(self) -> list[ApiResource]:
        return [
            _resource("ClusterQueue", self.in_cluster_queue, namespaced=False),
            _resource("LocalQueue", self.in_local_queue, namespaced=True),
        ]

    async def in_cluster_queue(self, call: Call) -> Response:
        state = self.state()
        queue = None if state is None else state.books.queues.get(call.name)
        if queue is None:
            raise not_found(Subject("clusterqueues", GROUP, call.name))
        return _summary(call, _items(queue))

    async def in_local_queue(self, call: Call) -> Response:
        state, key = self.state(), f"{call.namespace}/{call.name}"
        name = None if state is None else state.leads_to(key)
        if state is None or name is None:
            raise not_found(Subject("localqueues", GROUP, call.name))
        queue = state.books.queues.get(name)
        own = (
            item
            for item in (() if queue is None else _items(queue))
            if item["metadata"]["namespace"] == call.namespace
            and item["localQueueName"] == call.name
        )
        return _summary(call, own)


def _resource(kind: str, handler: Handler, *, namespaced: bool) -> ApiResource:
    part = Subresource(
        name=_PART,
        verbs=("get",),
        kind=GroupVersionKind(GROUP, VERSIONS[0], _KIND),
        handlers={"get": handler},
    )
    return ApiResource(
        kind=kind,
        group=GROUP,
        versions=VERSIONS,
        namespaced=namespaced,
        verbs=(),
        subresources=(part,),
        acting=by(Part.CONTROLLERS, effect="is answered; nothing is kept"),
    )


def _items(queue: ClusterQueueState) -> Iterator[Object]:
    """All that wait in a cluster queue, with their positions there and in their local queues."""
    positions: dict[str, int] = {}
    first = {queue.waiting.sticky} - {""}
    for number, entry in enumerate(queue.waiting.in_order(first)):
        local = entry.facts.queue
        positions[local] = positions.get(local, -1) + 1
        yield {
            "metadata": _metadata(entry),
            "priority": entry.facts.priority,
            "localQueueName": local.partition("/")[2],
            "positionInClusterQueue": number,
            "positionInLocalQueue": positions[local],
        }


def _metadata(entry: Entry) -> Object:
    namespace, _, name = entry.key.partition("/")
    found: Object = {"name": name, "namespace": namespace}
    if entry.source is None:
        return found
    metadata = entry.source.metadata
    found["creationTimestamp"] = metadata.creation_timestamp
    if metadata.owner_references:
        found["ownerReferences"] = [codec.to_dict(each) for each in metadata.owner_references]
    return found


def _summary(call: Call, items: Iterator[Object]) -> Response:
    """A part of a list. Raises StatusError 400."""
    query = call.request.query if call.request is not None else Query()
    offset, limit = _number(query, "offset", 0), _number(query, "limit", _LIMIT)
    chosen = list(items)[offset : offset + limit]
    kind = {"kind": _KIND, "apiVersion": f"{GROUP}/{call.version}", "metadata": {}}
    return Response(200, encode({**kind, "items": chosen}) + b"\n")


def _number(query: Query, name: str, default: int) -> int:
    text = query.text(name)
    if not text:
        return default
    number = parse_integer(text)
    if number is None or number < 0:
        raise bad_request(f"{name}: Invalid value: {text!r}: must be a number that is not negative")
    return number

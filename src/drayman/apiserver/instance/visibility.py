"""Kueue's visibility API: who waits in a queue, in which order. `kubectl kueue` and dashboards ask it.

Nothing is stored: the answer is the order of the engine that decides, at this moment. Positions begin with 0, as Kueue has them. It is
served as long as queues are at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

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
_MOST: Final = 10_000
"""At a time: tens of thousands may wait, and all else waits while an answer is written."""


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
        return _summary(call, _line(queue))

    async def in_local_queue(self, call: Call) -> Response:
        state, key = self.state(), f"{call.namespace}/{call.name}"
        name = None if state is None else state.local_queues.leads_to(key)
        if state is None or name is None:
            raise not_found(Subject("localqueues", GROUP, call.name))
        queue = state.books.queues.get(name)
        line = () if queue is None else _line(queue)
        return _summary(call, (each for each in line if each.entry.facts.queue == key))


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


class _Waiting(NamedTuple):
    """One that waits, with its positions in its cluster queue and in its local queue."""

    entry: Entry
    position: int
    local_position: int

    def item(self) -> Object:
        facts = self.entry.facts
        return {
            "metadata": _metadata(self.entry),
            "priority": facts.priority,
            "localQueueName": facts.queue.partition("/")[2],
            "positionInClusterQueue": self.position,
            "positionInLocalQueue": self.local_position,
        }


def _line(queue: ClusterQueueState) -> Iterator[_Waiting]:
    """All that wait in a cluster queue."""
    positions: dict[str, int] = {}
    first = {queue.waiting.sticky} - {""}
    for number, entry in enumerate(queue.waiting.in_order(first)):
        local = entry.facts.queue
        positions[local] = positions.get(local, -1) + 1
        yield _Waiting(entry, number, positions[local])


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


def _summary(call: Call, line: Iterator[_Waiting]) -> Response:
    """A part of those that wait. Raises StatusError 400."""
    query = call.request.query if call.request is not None else Query()
    offset, limit = _number(query, "offset", 0), _number(query, "limit", _LIMIT)
    waiting = list(line)
    chosen = [each.item() for each in waiting[offset : offset + min(limit, _MOST)]]
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

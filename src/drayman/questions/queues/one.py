"""One queue: its quota, who holds it, and who waits for it, each with its place, the reason, and when it may start."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from drayman.api.near_names import did_you_mean
from drayman.api.times import timestamp_at
from drayman.explain.queue_answer import HoldingWorkload
from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.standing import Line, owner_of
from drayman.placement.world import World
from drayman.questions.errors import NoSuchObjectError
from drayman.questions.queues.answer import PendingRow, QueueAnswer
from drayman.questions.queues.overview import Overview
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry


def one_queue(world: World, name: str, namespace: str | None = None) -> QueueAnswer:
    """A cluster queue; with a namespace, a local queue of that name there. Raises NoSuchObjectError."""
    line = Line(world)
    local = "" if namespace is None else f"{namespace}/{name}"
    queue = _cluster_queue(line, name) if namespace is None else _of_local(line, local)
    forecast = Forecast(line)
    return QueueAnswer(
        queue=Overview(line).queue(queue),
        local_queue=local,
        cohorts=() if queue.node is None else tuple(each.name for each in queue.node.ancestors()),
        holders=tuple(_holders(line, forecast, queue, local)),
        pending=tuple(_pending(line, forecast, queue, local)),
        problems=tuple(map(str, line.queues.problems)),
        unseen=world.unseen,
    )


def _cluster_queue(line: Line, name: str) -> ClusterQueueState:
    queues = line.queues.state.books.queues
    if name in queues:
        return queues[name]
    local = sorted(key for key in line.local_queues if key.partition("/")[2] == name)
    if local:
        namespace = local[0].partition("/")[0]
        raise NoSuchObjectError(
            f"there is no ClusterQueue {name}; there is a LocalQueue of that name in namespace {namespace}",
            found_in=namespace,
        )
    meant = did_you_mean(name, set(queues), "`drayman queues`")
    raise NoSuchObjectError(f"there is no ClusterQueue {name}{meant}")


def _of_local(line: Line, key: str) -> ClusterQueueState:
    namespace, _, name = key.partition("/")
    if key not in line.local_queues:
        there = {
            each.partition("/")[2] for each in line.local_queues if each.startswith(f"{namespace}/")
        }
        meant = did_you_mean(name, there)
        raise NoSuchObjectError(f"there is no LocalQueue {name} in namespace {namespace}{meant}")
    behind = line.local_queues[key]
    queue = line.queues.state.books.queues.get(behind)
    if queue is None:
        raise NoSuchObjectError(
            f"LocalQueue {name} in namespace {namespace} leads to ClusterQueue {behind}, which does not exist"
        )
    return queue


def _holders(
    line: Line, forecast: Forecast, queue: ClusterQueueState, local: str
) -> Iterator[HoldingWorkload]:
    for holder in line.holders(queue):
        if local in ("", holder.local_queue):
            ending = forecast.ending_of(holder.workload)
            if ending is not None:
                holder = replace(holder, ends=timestamp_at(ending.at), ends_basis=ending.basis)
            yield holder


def _pending(
    line: Line, forecast: Forecast, queue: ClusterQueueState, local: str
) -> Iterator[PendingRow]:
    """Those that wait for their turn, in the order of the queue, and then those that wait for something else."""
    entries = line.queues.state.entries
    ordered = line.in_order(queue)
    known = set(ordered)
    others = [
        key
        for key, entry in sorted(entries.items())
        if entry.holding is None and key not in known and line.queue_of(entry) is queue
    ]
    for entry in (entries[key] for key in (*ordered, *others)):
        if local in ("", entry.facts.queue):
            yield _row(line, forecast, entry)


def _row(line: Line, forecast: Forecast, entry: Entry) -> PendingRow:
    place = line.place(entry.key)
    workload = line.queues.workloads[entry.key]
    return PendingRow(
        workload=entry.key,
        owner=owner_of(workload),
        local_queue=entry.facts.queue,
        position=place.position,
        priority=entry.facts.priority,
        created=workload.metadata.creation_timestamp,
        headline=line.headline(entry.key),
        ahead=place.ahead,
        victims=place.victims,
        needs=place.needs,
        estimate=forecast.estimate(entry.key),
    )

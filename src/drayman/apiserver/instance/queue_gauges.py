"""The present numbers of queues and cohorts, as Kueue's gauges: name, text, labels and value of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from drayman.quota.amounts import FlavorResource, plus
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry
from drayman.quota.state import QuotaState
from drayman.quota.tree.fairness import share_of
from drayman.quota.tree.nodes import Node

Gauge = tuple[str, str, Mapping[str, str], float]
_STATUSES = ("pending", "active", "terminating")


def present(state: QuotaState) -> Iterator[Gauge]:
    """All of them."""
    for _, queue in sorted(state.books.queues.items()):
        yield from _cluster_queue(queue, is_active=state.books.is_active(queue))
        yield from _resources(queue, fair=state.settings.fair_sharing is not None)
    for key in sorted(state.local_queues.all()):
        yield from _local_queue(state, key)
    yield from _cohorts(state)


def _cluster_queue(queue: ClusterQueueState, *, is_active: bool) -> Iterator[Gauge]:
    name = {"cluster_queue": queue.name}
    waiting = tuple(queue.waiting)
    aside = sum(map(queue.waiting.is_aside, waiting)) if is_active else len(waiting)
    text = "Workloads that wait."
    for status, number in (("active", len(waiting) - aside), ("inadmissible", aside)):
        yield "kueue_pending_workloads", text, {**name, "status": status}, number
    text = "Workloads without quota, by the reason that they are told."
    for reason, number in sorted(
        Counter(each.told or "PendingEvaluation" for each in waiting).items()
    ):
        labels = {**name, "reason": reason, "underlying_cause": ""}
        yield "kueue_unadmitted_workloads", text, labels, number
    holders = queue.holders.values()
    admitted = sum(each.facts.admitted for each in holders)
    yield "kueue_reserving_active_workloads", "Workloads that hold quota.", name, len(holders)
    yield "kueue_admitted_active_workloads", "Workloads that are admitted.", name, admitted
    text = "Devices that workloads with quota look at with admin access, at no charge."
    looked_at = sum(each.admin_devices for each in holders)
    yield "drayman_queue_admin_access_devices", text, name, looked_at
    now = "active" if is_active else "pending"
    if queue.leaving:
        now = "terminating"
    for status in _STATUSES:
        labels = {**name, "status": status}
        yield "kueue_cluster_queue_status", "Whether a queue is active.", labels, status == now


def _resources(queue: ClusterQueueState, *, fair: bool) -> Iterator[Gauge]:
    labels = {"cohort": queue.spec.cohort_name or "", "cluster_queue": queue.name}
    reserved = _used(queue.holders.values())
    used = _used(each for each in queue.holders.values() if each.facts.admitted)
    prefix = "kueue_cluster_queue_"
    for flavor in queue.flavors.values():
        for quota in flavor.resources:
            what = FlavorResource(flavor.name, quota.name)
            of = {**labels, "flavor": flavor.name, "resource": quota.name}
            limits = (quota.borrowing_limit, quota.lending_limit)
            borrow, lend = (float("inf") if q is None else float(q.amount) for q in limits)
            nominal = float(quota.nominal_quota.amount)
            yield f"{prefix}nominal_quota", "Quota that a queue has.", of, nominal
            yield f"{prefix}borrowing_limit", "What a queue may borrow.", of, borrow
            yield f"{prefix}lending_limit", "What a queue may lend.", of, lend
            amount = _units(quota.name, reserved.get(what, 0))
            yield f"{prefix}resource_reservation", "Quota that is reserved.", of, amount
            amount = _units(quota.name, used.get(what, 0))
            yield f"{prefix}resource_usage", "Quota of admitted workloads.", of, amount
    for resource, amount in sorted(_asked(queue.waiting).items()):
        of = {**labels, "resource": resource}
        text = "What workloads that wait ask for."
        yield f"{prefix}resource_pending", text, of, _units(resource, amount)
    if fair and queue.node is not None:
        name = {"cluster_queue": queue.name, "cohort": queue.spec.cohort_name or ""}
        yield (
            f"{prefix}weighted_share",
            "How much of its cohort it borrows.",
            name,
            _share(queue.node),
        )


def _local_queue(state: QuotaState, key: str) -> Iterator[Gauge]:
    namespace, _, own = key.partition("/")
    name, prefix = {"name": own, "namespace": namespace}, "kueue_local_queue_"
    entries = [state.entries[each] for each in state.local_queues.members(key)]
    holders = [each for each in entries if each.holding is not None]
    admitted = [each for each in holders if each.facts.admitted]
    aside = active = 0
    for each in entries:
        queue = state.books.queues.get(each.waits_in)
        if each.holding is None and each.facts.active:
            if queue is None or queue.inactive or queue.waiting.is_aside(each):
                aside += 1
            else:
                active += 1
    text = "Workloads that wait."
    for status, number in (("active", active), ("inadmissible", aside)):
        yield f"{prefix}pending_workloads", text, {**name, "status": status}, number
    text = "Workloads that hold quota."
    yield f"{prefix}reserving_active_workloads", text, name, len(holders)
    text = "Workloads that are admitted."
    yield f"{prefix}admitted_active_workloads", text, name, len(admitted)
    is_active = str(state.is_active(key))
    for status in ("True", "False", "Unknown"):
        labels = {**name, "active": status}
        yield f"{prefix}status", "Whether a queue is active.", labels, status == is_active
    for suffix, text, those in (
        ("resource_reservation", "Quota that is reserved.", holders),
        ("resource_usage", "Quota of admitted workloads.", admitted),
    ):
        for (flavor, resource), amount in sorted(_used(those).items()):
            of = {**name, "flavor": flavor, "resource": resource}
            yield f"{prefix}{suffix}", text, of, _units(resource, amount)
    if state.past_use is not None:
        share = state.past_use.share(key)
        text = "What a queue has used, which decides who comes first."
        yield f"{prefix}admission_fair_sharing_usage", text, name, share


class _Below:
    """What all queues below a cohort hold."""

    def __init__(self) -> None:
        self.used: Counter[FlavorResource] = Counter()
        self.admitted = 0


def _cohorts(state: QuotaState) -> Iterator[Gauge]:
    found: dict[str, _Below] = {}
    fair = state.settings.fair_sharing is not None
    # Each is added up from its children, so that a queue counts once for each level and not for all above it.
    for node in sorted(state.books.forest.cohorts.values(), key=lambda each: each.height):
        below = found[node.name] = _Below()
        for child in node.children:
            if child.is_queue:
                holders = state.books.queues[child.name].holders.values()
                below.used.update(_used(holders))
                below.admitted += sum(each.facts.admitted for each in holders)
            else:
                below.used.update(found[child.name].used)
                below.admitted += found[child.name].admitted
        yield from _cohort(node, below, fair=fair)


def _cohort(node: Node, below: _Below, *, fair: bool) -> Iterator[Gauge]:
    labels, prefix = {"cohort": node.name}, "kueue_cohort_"
    for what, amount in sorted(node.subtree.items()):
        of = {**labels, "flavor": what.flavor, "resource": what.resource}
        yield f"{prefix}subtree_quota", "Quota of all below.", of, _units(what.resource, amount)
        reserved = _units(what.resource, below.used[what])
        yield f"{prefix}subtree_resource_reservations", "What is reserved of it.", of, reserved
    text = "Workloads that are admitted in all queues below."
    yield f"{prefix}subtree_admitted_active_workloads", text, labels, below.admitted
    if fair:
        text = "How much of its parent it borrows."
        yield f"{prefix}weighted_share", text, labels, _share(node)


def _used(entries: Iterable[Entry]) -> dict[FlavorResource, int]:
    used: dict[FlavorResource, int] = {}
    for entry in entries:
        if entry.holding is not None:
            for what, amount in entry.holding.usage.quota.items():
                used[what] = used.get(what, 0) + amount
    return used


def _asked(entries: Iterable[Entry]) -> dict[str, int]:
    asked: dict[str, int] = {}
    for entry in entries:
        for demand in () if isinstance(entry.facts.demands, Unpriced) else entry.facts.demands:
            asked = plus(asked, demand.alone)
    return asked


def _share(node: Node) -> float:
    share = share_of(node)
    return float("nan") if share.infinite else float(share.rounded)


def _units(resource: str, amount: int) -> float:
    """In units, and not in thousandths."""
    return amount / 1000.0 if resource == "cpu" else float(amount)

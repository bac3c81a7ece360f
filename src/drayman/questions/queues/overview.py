"""All queues of a cluster, as the engine of quota counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drayman.explain.queues.inactive import why_inactive
from drayman.explain.queues.standing import Line
from drayman.placement.world import World
from drayman.questions.queues.answer import CohortRow, QueueRow, QueuesAnswer, QuotaRow
from drayman.questions.queues.lending import key_of, lent_in
from drayman.questions.queues.shares import share_rows
from drayman.quota.amounts import FlavorResource, quantity_of
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.tree.fairness import share_of
from drayman.quota.tree.nodes import Node


def overview(world: World) -> QueuesAnswer:
    """What `drayman queues` shows."""
    return Overview(Line(world)).answer()


class Overview:
    """The rows of queues and cohorts."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._state = line.queues.state
        self._fair = self._state.settings.fair_sharing is not None
        self._lent: dict[tuple[str, FlavorResource], dict[str, int]] = {}
        self._pending: dict[str, int] = {}
        for entry in self._state.entries.values():
            queue = None if entry.holding is not None else line.queue_of(entry)
            if queue is not None:
                self._pending[queue.name] = self._pending.get(queue.name, 0) + 1
        self._local: dict[str, list[str]] = {}
        for key, name in line.local_queues.items():
            self._local.setdefault(name, []).append(key)

    def answer(self) -> QueuesAnswer:
        cohorts: list[CohortRow] = []
        queues: list[QueueRow] = []
        order: list[str] = []
        forest = self._state.books.forest
        roots = sorted(forest.roots(), key=lambda node: (node.is_queue, node.name))
        for root in roots:
            for node, depth in _downwards(root, 0):
                order.append(key_of(node))
                if node.is_queue:
                    queues.append(self.queue(self._state.books.queues[node.name], depth))
                else:
                    cohorts.append(self._cohort(node, depth))
        for name in sorted(forest.in_circles):
            order.append(name)
            queues.append(self.queue(self._state.books.queues[name], 0))
        return QueuesAnswer(
            queues=tuple(queues),
            cohorts=tuple(cohorts),
            order=tuple(order),
            fair_sharing=self._fair,
            shares=share_rows(self._line.queues.world),
            problems=tuple(map(str, self._line.queues.problems)),
            unseen=self._line.queues.world.unseen,
        )

    def queue(self, queue: ClusterQueueState, depth: int = 0) -> QueueRow:
        node = queue.node
        why = why_inactive(self._line.queues, queue)
        holders = list(queue.holders.values())
        return QueueRow(
            name=queue.name,
            cohort=queue.spec.cohort_name,
            depth=depth,
            active=not why,
            why_inactive=why,
            strategy=queue.spec.queueing_strategy,
            pending=self._pending.get(queue.name, 0),
            reserving=len(holders),
            admitted=sum(entry.facts.admitted for entry in holders),
            local_queues=tuple(sorted(self._local.get(queue.name, ()))),
            quotas=tuple(self._quotas(node, holders)) if node is not None else (),
            weighted_share=self._share(node),
        )

    def _cohort(self, node: Node, depth: int) -> CohortRow:
        return CohortRow(
            name=node.name,
            parent="" if node.parent is None else node.parent.name,
            depth=depth,
            quotas=tuple(self._quotas(node, ())),
            queues=sum(1 for _ in node.queues()),
            weighted_share=self._share(node),
        )

    def _quotas(self, node: Node, holders: Iterable[Entry]) -> Iterator[QuotaRow]:
        """In the order of the object; then whatever else is used, because it was taken out of the object since."""
        reserved: dict[FlavorResource, int] = {}
        for entry in holders:
            if entry.holding is not None and not entry.facts.admitted:
                for what, amount in entry.holding.usage.quota.items():
                    reserved[what] = reserved.get(what, 0) + amount
        for what in dict.fromkeys(
            (*node.quotas, *(key for key, used in node.usage.items() if used))
        ):
            quota, resource = node.quota(what), what.resource
            limits = (quota.borrowing_limit, quota.lending_limit)
            borrowing, lending = (
                None if each is None else quantity_of(resource, each) for each in limits
            )
            yield QuotaRow(
                flavor=what.flavor,
                resource=resource,
                nominal=quantity_of(resource, quota.nominal),
                used=quantity_of(resource, node.usage.get(what, 0)),
                borrowed=quantity_of(resource, node.borrowed(what)),
                lent=quantity_of(resource, self._lending(node, what)),
                reserved=quantity_of(resource, reserved.get(what, 0)),
                free=quantity_of(resource, max(0, node.available(what))),
                shared=None if node.is_queue else quantity_of(resource, node.subtree.get(what, 0)),
                borrowing_limit=borrowing,
                lending_limit=lending,
            )

    def _lending(self, node: Node, what: FlavorResource) -> int:
        root = node.root
        found = self._lent.get((key_of(root), what))
        if found is None:
            found = self._lent[key_of(root), what] = lent_in(root, what)
        return found.get(key_of(node), 0)

    def _share(self, node: Node | None) -> int | None:
        """What it borrows in relation to what could be lent, if shares count at all."""
        if not self._fair or node is None or node.parent is None:
            return None
        return share_of(node).rounded


def _downwards(node: Node, depth: int) -> Iterator[tuple[Node, int]]:
    """A tree, each cohort before what is in it, its own queues before the cohorts below it."""
    yield node, depth
    for child in sorted(node.children, key=lambda each: (not each.is_queue, each.name)):
        yield from _downwards(child, depth + 1)

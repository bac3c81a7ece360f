"""Where each workload stands: what it holds, or its place in its queue and why it waits there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from drayman.api.kueue import status_of
from drayman.api.kueue_workload import (
    ADMITTED,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    Workload,
    WorkloadStatus,
)
from drayman.api.meta import controller_of
from drayman.api.near_names import did_you_mean
from drayman.api.times import timestamp_at
from drayman.explain.queue_answer import (
    AHEAD_NAMED,
    Charge,
    HoldingWorkload,
    Need,
    PlaceInQueue,
)
from drayman.explain.queues import wording
from drayman.explain.queues.engine import Queues, queues_of
from drayman.explain.queues.inactive import why_inactive
from drayman.explain.queues.settling import Settled, settle, take_back
from drayman.placement.fit.requests import PODS
from drayman.placement.world import World
from drayman.quota.amounts import FlavorResource, amount_of, quantity_of
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.decisions import Evicted, Refused
from drayman.quota.demands import PodSetDemand, Unpriced
from drayman.quota.entries import Entry, Holding
from drayman.quota.flavors.asking import asked_of
from drayman.quota.flavors.matching import mismatch
from drayman.quota.reading import key_of
from drayman.quota.reasons import NO_MATCHING_FLAVOR, SUSPENDED
from drayman.quota.settings import IGNORE_UNDECLARED
from drayman.quota.tree.nodes import FlavorAmounts
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list

MOST_HOLDERS = 12


class NoRoom(Struct, frozen=True):
    """Why a workload with quota does not start."""

    message: str
    victims: tuple[str, ...] = ()
    """Who would be preempted for its room."""


def owned_by_uid(workloads: Iterable[Workload]) -> dict[str, str]:
    """The key of the workload of each owner, by the owner's uid."""
    return {
        owner.uid: key_of(each.metadata.namespace, each.metadata.name)
        for each in workloads
        for owner in each.metadata.owner_references
    }


class Line:
    """All queues of a world, with what the engine decides about those that wait in them."""

    def __init__(self, world: World, extra: Iterable[Workload] = ()) -> None:
        """`extra` are workloads that would exist, beside those that do. Raises ApiError where one of them makes no sense."""
        self.queues: Queues = queues_of(world)
        for workload in extra:
            self.queues.add(workload)
        with self.queues.room.looked_for():
            self.settled: Settled = settle(self.queues)
        self._left = self._available()
        take_back(self.queues, self.settled)
        self.queues.room.note_roomless(self.settled.roomless)
        self._ordered: dict[str, list[str]] = {}
        self._positions: dict[str, int] = {}

    def _available(self) -> dict[str, dict[FlavorResource, int]]:
        """What each queue could use of everything that it might ever, as things are."""
        lost = self.settled.lost.keys()
        return {
            queue.name: {what: queue.node.available(what) for what in queue.node.potential}
            for queue in self.queues.state.books.queues.values()
            if queue.node is not None
            and (len(queue.waiting) or not lost.isdisjoint(queue.holders.keys()))
        }

    # Finding.

    def entry(self, key: str) -> Entry | None:
        return self.queues.state.entries.get(key)

    def queue_of(self, entry: Entry) -> ClusterQueueState | None:
        """The cluster queue that a workload holds quota of, or waits for."""
        state = self.queues.state
        if entry.holding is not None:
            return state.books.queues.get(entry.holding.cluster_queue)
        return state.books.queues.get(
            entry.waits_in or self.local_queues.get(entry.facts.queue, "")
        )

    @cached_property
    def local_queues(self) -> Mapping[str, str]:
        """The cluster queue of each local queue, by key."""
        found = {}
        for each in self.queues.world.objects.local_queues:
            spec = each.spec if isinstance(each.spec, dict) else {}
            key = f"{each.metadata.namespace}/{each.metadata.name}"
            found[key] = str(spec.get("clusterQueue") or "")
        return found

    @cached_property
    def owned(self) -> Mapping[str, str]:
        """The workload of each owner, by the owner's uid."""
        return owned_by_uid(self.queues.workloads.values())

    def in_order(self, queue: ClusterQueueState) -> list[str]:
        """The keys of all that wait in a cluster queue, in its order: who waits for its victims comes first."""
        found = self._ordered.get(queue.name)
        if found is None:
            found = [each.key for each in queue.waiting.in_order(self.settled.victims)]
            self._ordered[queue.name] = found
            self._positions.update((key, number) for number, key in enumerate(found, start=1))
        return found

    def is_admitted_now(self, key: str) -> bool:
        """Whether a workload that waits gets quota, and there is room for its pods."""
        return key in self.settled.given and key not in self.without_room

    @cached_property
    def without_room(self) -> Mapping[str, NoRoom]:
        """Those that would get quota and find no room for all their pods. Without nodes, quota alone decides."""
        cleared = self.settled.cleared
        return {
            key: NoRoom(message, tuple(each.key for each in cleared.get(key, ())))
            for key, message in self.settled.unfit.items()
        }

    # Judging.

    def runs_elsewhere(self, key: str) -> bool:
        """Whether the pods of a workload run in another cluster."""
        workload = self.queues.workloads.get(key)
        return workload is not None and bool(status_of(WorkloadStatus, workload).cluster_name)

    def headline(self, key: str) -> Headline:
        """The state of a workload in one line."""
        workload = self.queues.workloads[key]
        entry = self.entry(key)
        if entry is None:
            return _of_finished(status_of(WorkloadStatus, workload))
        if entry.holding is not None:
            return _of_holder(entry, entry.holding, status_of(WorkloadStatus, workload))
        standing = self.queues.state.standing(key)
        if isinstance(standing, Evicted):
            text = "The workload is deactivated: it waits when spec.active is set to true."
            return Headline.of(Reason.WORKLOAD_INACTIVE, text)
        if isinstance(entry.facts.demands, Unpriced):
            text = f"What it asks for cannot be charged: {entry.facts.demands.message.rstrip('.')}."
            return Headline.of(Reason.NO_PRICE, text)
        queue = self.queue_of(entry)
        if standing is not None:
            return self._of_standing(entry, queue, standing)
        if entry.facts.requeue_at > self.queues.now:
            when = timestamp_at(entry.facts.requeue_at)
            text = f"The workload was evicted and is not tried again before {when}."
            return Headline.of(Reason.QUOTA_BACK_OFF, text)
        assert queue is not None  # otherwise its standing says so
        return self._of_waiting(entry, queue)

    def _of_standing(
        self, entry: Entry, queue: ClusterQueueState | None, standing: Refused
    ) -> Headline:
        """For a workload whose queue keeps it from being tried."""
        if queue is not None and standing.reason == SUSPENDED and queue.inactive:
            return self._of_inactive(queue)
        if entry.facts.queue not in self.local_queues:
            namespace, _, name = entry.facts.queue.partition("/")
            known = {
                key.partition("/")[2]
                for key in self.local_queues
                if key.startswith(f"{namespace}/")
            }
            meant = did_you_mean(name, known)
            text = f"There is no LocalQueue {name} in namespace {namespace}{meant or '.'}"
            return Headline.of(Reason.QUEUE_MISSING, text)
        return wording.refused(standing.reason, standing.message, "", (), ())

    def _of_inactive(self, queue: ClusterQueueState) -> Headline:
        text = f"ClusterQueue {queue.name} is inactive: {why_inactive(self.queues, queue)}."
        return Headline.of(Reason.QUEUE_INACTIVE, text)

    def _of_waiting(self, entry: Entry, queue: ClusterQueueState) -> Headline:
        if queue.node is None:
            return self._of_inactive(queue)
        if entry.key in self.without_room:
            lacking = self.without_room[entry.key]
            return wording.without_room(queue.name, lacking.message, lacking.victims)
        if entry.key in self.settled.given:
            return wording.fits(queue.name)
        refusal = self.settled.refusal_of(entry)
        if refusal is not None:
            has_flavors = refusal.reason != NO_MATCHING_FLAVOR
            unknown = [] if has_flavors else self._uncovered(entry, queue)
            if unknown:
                return wording.uncovered(queue.name, unknown, sorted(queue.groups))
            victims = [each.key for each in self.settled.victims.get(entry.key, ())]
            needs = self.needs(entry, queue)
            return wording.refused(refusal.reason, refusal.message, queue.name, needs, victims)
        lost = self.settled.lost.get(entry.key)
        if lost is not None:
            return wording.lost(queue.name, lost.by)
        ordered = self.in_order(queue)
        if queue.waiting.strict:
            return wording.behind(queue.name, ordered[0], self._positions[entry.key])
        first = next((each for each in ordered if each in self.settled.victims), "")
        text = f"It is not its turn: workload {first} comes first and waits for others to give up quota."
        return Headline.of(Reason.BEHIND_IN_QUEUE, text)

    def place(self, key: str) -> PlaceInQueue:
        """Where a workload stands, with everything that its headline rests on."""
        entry = self.queues.state.entries[key]
        queue = self.queue_of(entry)
        position, waiting, ahead = self._position(entry, queue)
        said = self._said(entry)
        needs = () if queue is None or entry.holding is not None else self.needs(entry, queue)
        holders = self._holders_of(queue, needs)
        return PlaceInQueue(
            workload=key,
            local_queue=entry.facts.queue,
            cluster_queue="" if queue is None else queue.name,
            cohorts=_cohorts(queue),
            priority=entry.facts.priority,
            position=position,
            waiting=waiting,
            ahead=ahead,
            reason="" if said is None else said.reason,
            message="" if said is None else said.message,
            is_written=said is not None and self._is_written(key, said),
            needs=needs,
            victims=self._victims(key),
            charges=self.charges(key),
            holders=tuple(holders[:MOST_HOLDERS]),
            holders_left_out=max(0, len(holders) - MOST_HOLDERS),
        )

    def _said(self, entry: Entry) -> Evicted | Refused | None:
        """What the engine says to a workload that does not start."""
        if entry.holding is not None or self.is_admitted_now(entry.key):
            return None
        standing = self.queues.state.standing(entry.key)
        if standing is not None:
            return standing
        return self.settled.refusals.get(entry.key) or self.settled.refusal_of(entry)

    def _is_written(self, key: str, said: Evicted | Refused) -> bool:
        """Whether the condition of a Workload says so."""
        condition = status_of(WorkloadStatus, self.queues.workloads[key]).condition(QUOTA_RESERVED)
        told = None if condition is None else (condition.reason, condition.message)
        return told == (said.reason, said.message)

    def _victims(self, key: str) -> tuple[str, ...]:
        """Who has to go for a workload, for quota or for room."""
        if key in self.settled.given and key in self.without_room:
            return self.without_room[key].victims
        return tuple(each.key for each in self.settled.victims.get(key, ()))

    def charges(self, key: str) -> tuple[Charge, ...]:
        """What a workload holds, or would be given now."""
        entry = self.queues.state.entries[key]
        if entry.holding is not None:
            return charges_of(entry.holding.usage.quota)
        given = self.settled.given.get(key)
        if given is None:
            return ()
        usage: dict[FlavorResource, int] = {}
        for pods in given.admission.pod_set_assignments:
            for resource, flavor in pods.flavors.items():
                what = FlavorResource(flavor, resource)
                amount = amount_of(resource, pods.resource_usage[resource])
                usage[what] = usage.get(what, 0) + amount
        return charges_of(usage)

    def _position(
        self, entry: Entry, queue: ClusterQueueState | None
    ) -> tuple[int | None, int, tuple[str, ...]]:
        if queue is None or entry.holding is not None or entry.key not in queue.waiting:
            return None, 0 if queue is None else len(queue.waiting), ()
        ordered = self.in_order(queue)
        position = self._positions[entry.key]
        ahead = tuple(ordered[: min(position - 1, AHEAD_NAMED)])
        return position, len(ordered), ahead

    def needs(self, entry: Entry, queue: ClusterQueueState) -> tuple[Need, ...]:
        """What a workload asks for, against each flavor that could give it."""
        demands = entry.facts.demands
        if isinstance(demands, Unpriced) or queue.node is None:
            return ()
        wanted = self.wanted_by(demands, counts_pods=PODS in queue.groups)
        # For one that gets nothing, what is left when all others have what they get.
        left = {} if entry.key in self.settled.given else self._left.get(queue.name, {})
        found = []
        for resource in sorted(wanted):
            group = queue.groups.get(resource)
            for flavor in () if group is None else group.flavors:
                what = FlavorResource(flavor.name, resource)
                free = left.get(what, queue.place.available(what))
                found.append(
                    Need(
                        flavor=flavor.name,
                        resource=resource,
                        wanted=quantity_of(resource, wanted[resource]),
                        free=quantity_of(resource, max(0, free)),
                        overused=quantity_of(resource, max(0, -free)),
                        most=quantity_of(resource, queue.place.potential.get(what, 0)),
                        mismatch=self._mismatch(demands, flavor.name),
                    )
                )
        return tuple(found)

    def wanted_by(self, demands: Sequence[PodSetDemand], *, counts_pods: bool) -> dict[str, int]:
        """What all pod sets ask for together, nothing of something left out."""
        asked = asked_of(demands, self.queues.state.claims.users, counts_pods=counts_pods)
        return {resource: amount for resource, amount in asked.total.items() if amount}

    def _uncovered(self, entry: Entry, queue: ClusterQueueState) -> list[str]:
        """What a workload asks for that its queue has no quota of in any flavor, where that matters."""
        demands = entry.facts.demands
        strategy = self.queues.state.settings.resources.quota_check_strategy
        if isinstance(demands, Unpriced) or strategy == IGNORE_UNDECLARED:
            return []
        return sorted(self.wanted_by(demands, counts_pods=False).keys() - queue.groups.keys())

    def _mismatch(self, demands: Iterable[PodSetDemand], flavor: str) -> str:
        spec = self.queues.state.books.flavors.get(flavor)
        if spec is None:
            return f"there is no ResourceFlavor {flavor}"
        return next((text for each in demands if (text := mismatch(each, flavor, spec))), "")

    # Holders.

    def holders(self, queue: ClusterQueueState) -> Iterator[HoldingWorkload]:
        """Who holds quota of a cluster queue."""
        for key in sorted(queue.holders):
            yield self.holder(key)

    def holder(self, key: str) -> HoldingWorkload:
        entry = self.queues.state.entries[key]
        holding = entry.holding
        assert holding is not None  # it is one
        return HoldingWorkload(
            workload=key,
            owner=owner_of(self.queues.workloads[key]),
            cluster_queue=holding.cluster_queue,
            local_queue=entry.facts.queue,
            priority=entry.facts.priority,
            admitted=entry.facts.admitted,
            evicted=entry.facts.evicted,
            since=timestamp_at(holding.reserved_at) if holding.reserved_at else None,
            charges=charges_of(holding.usage.quota),
            admin_devices=entry.admin_devices,
        )

    def _holders_of(
        self, queue: ClusterQueueState | None, needs: Iterable[Need]
    ) -> list[HoldingWorkload]:
        """Who holds something that is lacking, in the trees that it may come from."""
        contested = {
            FlavorResource(need.flavor, need.resource) for need in needs if need.may_become_free
        }
        if queue is None or queue.node is None or not contested:
            return []
        sizes: dict[str, int] = {}
        for node in queue.node.root.queues():
            for key, entry in self.queues.state.books.queues[node.name].holders.items():
                usage = {} if entry.holding is None else entry.holding.usage.quota
                size = sum(usage.get(what, 0) for what in contested)
                if size:
                    sizes[key] = size
        return [self.holder(key) for key in sorted(sizes, key=lambda key: (-sizes[key], key))]


def charges_of(usage: FlavorAmounts) -> tuple[Charge, ...]:
    return tuple(
        Charge(
            flavor=what.flavor, resource=what.resource, amount=quantity_of(what.resource, amount)
        )
        for what, amount in sorted(usage.items())
        if amount
    )


def owner_of(workload: Workload) -> str:
    """What a workload was made for, as people know it."""
    metadata = workload.metadata
    owner = controller_of(metadata)
    if owner is None and len(metadata.owner_references) == 1:
        owner = metadata.owner_references[0]
    return "" if owner is None else f"{owner.kind}/{owner.name}"


def _cohorts(queue: ClusterQueueState | None) -> tuple[str, ...]:
    if queue is None or queue.node is None:
        return ()
    return tuple(node.name for node in queue.node.ancestors())


def _of_finished(status: WorkloadStatus) -> Headline:
    end = status.condition(FINISHED)
    if end is None or end.reason != "Failed":
        return Headline.of(Reason.RUNS, "The workload has finished.")
    why = f": {end.message.rstrip('.')}" if end.message else ""
    return Headline.of(Reason.FAILED, f"The workload has failed{why}.")


def _of_holder(entry: Entry, holding: Holding, status: WorkloadStatus) -> Headline:
    """For a workload that has quota."""
    evicted = status.condition(EVICTED)
    if entry.facts.evicted and evicted is not None:
        why = f": {evicted.message.rstrip('.')}" if evicted.message else ""
        text = f"The workload has been told to give up its quota ({evicted.reason}){why}."
        return Headline.of(Reason.QUOTA_EVICTED, text)
    if status.is_true(ADMITTED) and status.cluster_name:
        text = f"The workload runs in cluster {status.cluster_name}: its pods and their logs are there."
        return Headline.of(Reason.RUNS, text)
    if status.is_true(ADMITTED):
        flavors = sorted({what.flavor for what in holding.uses})
        of = f", of flavor {and_list(flavors)}" if flavors else ""
        text = (
            f"The workload is admitted: it has quota of ClusterQueue {holding.cluster_queue}{of}."
        )
        return Headline.of(Reason.RUNS, text)
    open_ = [
        f"{each.name} ({each.state})" for each in status.admission_checks if each.state != "Ready"
    ]
    waits = f"waits for admission checks: {and_list(open_)}" if open_ else "is about to be admitted"
    text = f"The workload has quota of ClusterQueue {holding.cluster_queue} and {waits}."
    return Headline.of(Reason.CHECKS_PENDING, text)

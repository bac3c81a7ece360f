"""The engine of quota: told of objects one by one, it says who gets quota, who has to give it back, and why others wait.

`set_*` and `remove_*` follow objects. `cycle` decides about the head of every queue; what it gives away counts from then on, as if the
objects said so already (`forget` takes that back if it could not be written). `standing` says what the state of its queue means for one
workload, apart from any cycle. Whoever drives the engine writes decisions into objects and tells it of the objects again.
"""

from __future__ import annotations

from msgspec.structs import replace

from drayman.api.custom_groups import spec_of
from drayman.api.kueue import (
    ClusterQueue,
    ClusterQueueSpec,
    LocalQueue,
)
from drayman.api.kueue_workload import Admission, Workload
from drayman.api.limit_ranges import LimitRange
from drayman.quota.admissions import by_resource, risen
from drayman.quota.amounts import Amounts, plus
from drayman.quota.claim_charges import ClaimCharges
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.cycle import Cycle
from drayman.quota.decisions import Decision, Evicted, Refused, Reserved
from drayman.quota.demands import NotPlaced, Pricing, Unpriced
from drayman.quota.entries import Entry, Facts, Holding
from drayman.quota.flavors.assigning import Rules
from drayman.quota.flavors.placing import Placing
from drayman.quota.flavors.prices import FlavorPrices
from drayman.quota.local_queues import LocalQueues
from drayman.quota.past_use import PastUse
from drayman.quota.preemption.for_room import ForRoom
from drayman.quota.preemption.searching import Preemptor, RoomFinder
from drayman.quota.reading import read
from drayman.quota.reasons import (
    MISCONFIGURED,
    PENDING_EVALUATION,
)
from drayman.quota.settings import IGNORE_UNDECLARED, QuotaSettings
from drayman.quota.standing import standing_of
from drayman.quota.surroundings import QueueSurroundings
from drayman.quota.waiting import Again


class QuotaState(QueueSurroundings):
    """All queues and workloads of a cluster."""

    def __init__(self, settings: QuotaSettings, pricing: Pricing | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.entries: dict[str, Entry] = {}
        self._successors: dict[tuple[str, str], str] = {}
        """By the owner and the key of a workload, the one that takes its place when it gets quota."""
        self._pricing = pricing
        self._limit_ranges: dict[str, dict[str, LimitRange]] = {}
        self._preemptor = Preemptor(self.books.queues, self.books.ledger, settings.fair_sharing)
        self._for_room = ForRoom(self._preemptor)
        sharing = settings.admission_fair_sharing
        self.past_use = None if sharing is None else PastUse(sharing)
        self.local_queues = LocalQueues(self.past_use)
        if self.past_use is not None:
            self._preemptor.past_use = self.past_use.share
        self.claims = ClaimCharges(self.books, self.entries)
        self._revision = 0
        self._cycles = 0
        self._placing = Placing(self.books.ledger.topologies, self.books.flavors)
        self._rules = Rules(
            self.books.flavors,
            self._preemptor,
            self._placing,
            ignores_undeclared=settings.resources.quota_check_strategy == IGNORE_UNDECLARED,
            shares_fairly=settings.fair_sharing is not None,
            claims=self.claims.users,
            prices=FlavorPrices(pricing),
        )

    # Queues and what they are made of. A spec that makes no sense raises DecodeError or SelectorError and changes nothing.

    def set_cluster_queue(self, value: ClusterQueue, now: float) -> None:
        name = value.metadata.name
        known = self.books.queues.get(name)
        sent_elsewhere = known is not None and known.sends_elsewhere
        leaving = value.metadata.deletion_timestamp is not None
        queue = self.books.set_queue(name, spec_of(ClusterQueueSpec, value), leaving=leaving)
        if self.past_use is not None:
            past_use = self.past_use if queue.shares_by_past_use else None
            queue.waiting.order_by_past_use(past_use, now)
        if known is None or queue.sends_elsewhere != sent_elsewhere:
            self._price_where_they_run(queue, now)
        if known is None:
            self._adopt(queue, now)

    def checks_changed(self, now: float) -> None:
        """Admission checks have come or gone, or have become active or inactive."""
        sent = {name for name, queue in self.books.queues.items() if queue.sends_elsewhere}
        self.books.after_checks()
        for name, queue in self.books.queues.items():
            if queue.sends_elsewhere != (name in sent):
                self._price_where_they_run(queue, now)

    def _sends_elsewhere(self, local_queue: str) -> bool:
        """Whether the workloads of a local queue run in another cluster."""
        local = self.local_queues.find(local_queue)
        queue = None if local is None else self.books.queues.get(local.cluster_queue)
        return queue is not None and queue.sends_elsewhere

    def _price_where_they_run(self, queue: ClusterQueueState, now: float) -> None:
        """Price the workloads of a queue again that run in another cluster from now on, or no longer."""
        for key, local in self.local_queues.all().items():
            if local.cluster_queue == queue.name:
                self._price_members(key, now)

    def _price_members(self, local_queue: str, now: float) -> None:
        elsewhere = self._sends_elsewhere(local_queue)
        for key in sorted(self.local_queues.members(local_queue)):
            entry = self.entries[key]
            if entry.facts.runs_elsewhere != elsewhere and entry.source is not None:
                self.set_workload(entry.source, now)

    def remove_cluster_queue(self, name: str) -> None:
        self.books.remove_queue(name)

    def _adopt(self, queue: ClusterQueueState, now: float) -> None:
        """Take in the workloads that were there before their queue."""
        for entry in self.entries.values():
            holding = entry.holding
            if holding is None:
                local = self.local_queues.find(entry.facts.queue)
                if local is not None and local.cluster_queue == queue.name:
                    self._requeue(entry, now)
            elif holding.cluster_queue == queue.name:
                self.books.take(entry, holding)

    def set_local_queue(self, value: LocalQueue, now: float) -> None:
        key = self.local_queues.set(value)
        if key is not None:
            self._after_local_queue(key, now)

    def remove_local_queue(self, namespace: str, name: str, now: float) -> None:
        key = self.local_queues.remove(namespace, name)
        if key is not None:
            self._after_local_queue(key, now)

    def _used_by(self, local_queue: str) -> Amounts:
        """What the workloads of a local queue hold, by resource."""
        used: dict[str, int] = {}
        for key in self.local_queues.members(local_queue):
            holding = self.entries[key].holding
            if holding is not None:
                used = plus(used, by_resource(holding))
        return used

    def _after_local_queue(self, key: str, now: float) -> None:
        self._price_members(key, now)
        for each in sorted(self.local_queues.members(key)):
            if self.entries[each].holding is None:
                self._requeue(self.entries[each], now)

    def set_limit_range(self, value: LimitRange) -> None:
        """What waits gets its defaults and has to keep to its limits. Who has quota keeps it."""
        of_namespace = self._limit_ranges.setdefault(value.metadata.namespace, {})
        if of_namespace.get(value.metadata.name) != value:
            of_namespace[value.metadata.name] = value
            self._read_again(value.metadata.namespace)

    def remove_limit_range(self, namespace: str, name: str) -> None:
        of_namespace = self._limit_ranges.get(namespace, {})
        if of_namespace.pop(name, None) is not None:
            if not of_namespace:
                del self._limit_ranges[namespace]
            self._read_again(namespace)

    def _read_again(self, namespace: str) -> None:
        for entry in self._members_in(namespace):
            if entry.holding is None and entry.source is not None:
                self.set_workload(entry.source, 0.0)

    def _members_in(self, namespace: str) -> list[Entry]:
        return [self.entries[key] for key in tuple(self.local_queues.members_in(namespace))]

    # Workloads.

    def set_workload(self, workload: Workload, now: float) -> None:
        """Follow a workload. Raises DecodeError where it makes no sense."""
        namespace = workload.metadata.namespace
        limit_ranges = tuple(self._limit_ranges.get(namespace, {}).values())
        reading = read(workload, self.settings, limit_ranges, self._pricing, self._sends_elsewhere)
        facts = reading.facts
        entry = self.entries.get(facts.key)
        if facts.finished:
            if entry is not None:
                self.books.wake(entry.waits_in)
            self.remove_workload(facts.key)
            return
        self.claims.note(None if entry is None else entry.facts, facts)
        if entry is None:
            entry = self.entries[facts.key] = Entry(facts)
            changed = True
            self._preemptor.quarrels.forget()
        else:
            changed = entry.facts != facts
            if self.settings.wait_for_pods_ready.block_admission and facts.pods_ready:
                # Others may have been kept waiting for these pods.
                self.books.wake_everybody()
            if entry.facts.asks_otherwise(facts):
                self._preemptor.quarrels.forget()
            self.local_queues.leave(entry.facts.queue, facts.key)
            entry.update(facts)
        self.local_queues.join(facts.queue, facts.key)
        entry.source, entry.told = workload, reading.told
        if facts.replaces:
            self._successors[facts.owner, facts.replaces] = facts.key
        if self._is_superseded(facts):
            self._retire(entry)
            return
        if reading.holding is None and entry.assumed:
            return
        entry.assumed = False
        if changed or reading.holding != entry.holding:
            self._follow(entry, reading.holding, now)

    def devices_changed(self, key: str) -> None:
        """What devices cost a workload in flavors may be otherwise from now on."""
        self._rules.prices.forget()
        entry = self.entries.get(key)
        if entry is None or isinstance(entry.facts.demands, Unpriced):
            return
        entry.positions, entry.refusal = {}, None
        if any(demand.priced is not None for demand in entry.facts.demands):
            self.books.wake(entry.waits_in)

    def remove_workload(self, key: str) -> None:
        entry = self.entries.pop(key, None)
        if entry is None:
            return
        self._preemptor.quarrels.forget()
        self.local_queues.leave(entry.facts.queue, key)
        self.claims.note(entry.facts, None)
        self.claims.release(entry)
        self._dequeue(entry)
        if entry.facts.replaces:
            place = entry.facts.owner, entry.facts.replaces
            if self._successors.get(place) == key:
                del self._successors[place]
            self._reinstate(entry.facts.replaces, 0.0)

    def forget(self, key: str, now: float) -> None:
        """Take back what a cycle decided about a workload, because it could not be written."""
        entry = self.entries.get(key)
        if entry is None:
            return
        # Who was to give way has not been told, and may be driven out again.
        self._preemptor.quarrels.forget()
        if entry.assumed:
            if self.past_use is not None:
                self.past_use.not_admitted(entry.facts.queue, key)
            self._follow(entry, None, now)
        elif entry.holding is not None:
            self.books.wake(entry.holding.cluster_queue)

    def not_driven_out(self, key: str, by: str) -> None:
        """Take back that a workload has to give up its quota for another one, because it could not be written."""
        self._preemptor.quarrels.forget()
        victim = self.entries.get(key)
        if victim is not None and victim.holding is not None:
            self.books.wake(victim.holding.cluster_queue)
        self._gives_up_room(by)
        self.try_again(by)

    def try_again(self, key: str) -> None:
        """Have a workload be tried again, because what was decided about it could not be written."""
        entry = self.entries.get(key)
        if entry is not None:
            self.books.try_again(entry)

    def _follow(self, entry: Entry, holding: Holding | None, now: float) -> None:
        """Make what a workload holds, and where it waits, agree with its object."""
        had = entry.holding
        entry.assumed = False
        if holding is None:
            self.claims.release(entry)
            if entry.facts.replaces:
                self._reinstate(entry.facts.replaces, now)
            self._requeue(entry, now)
        elif had is not None and had.is_same(holding):
            self.claims.follow(entry, holding)
        else:
            self.claims.release(entry)
            self._dequeue(entry)
            self.claims.take(entry, holding)
            self._supersede(entry)
            past = self.past_use
            if past is not None and not past.is_sampled(entry.facts.queue, holding.reserved_at):
                # It got quota after the last sample, from whoever decided before this engine was there.
                self._counts_as_used(past, entry, holding)

    def _counts_as_used(self, past: PastUse, entry: Entry, holding: Holding) -> None:
        """Until the next sample, quota that was given counts as if it had been used for a while."""
        queue = self.books.queues.get(holding.cluster_queue)
        if queue is not None and queue.shares_by_past_use:
            past.admitted(entry.facts.queue, entry.key, by_resource(holding))

    # A slice of a job that takes the place of a smaller one.

    def _is_superseded(self, facts: Facts) -> bool:
        """Whether another workload has taken the place of this one, and holds what it held."""
        successor = self.entries.get(self._successors.get((facts.owner, facts.key), ""))
        return (
            successor is not None
            and successor.holding is not None
            and successor.facts.takes_the_place_of(facts)
        )

    def _supersede(self, entry: Entry) -> None:
        """A workload has quota: that of the one whose place it takes is part of it."""
        old = self.entries.get(entry.facts.replaces) if entry.facts.replaces else None
        if old is not None and entry.facts.takes_the_place_of(old.facts):
            self._retire(old)

    def _retire(self, entry: Entry) -> None:
        self.claims.release(entry)
        self._dequeue(entry)

    def _reinstate(self, key: str, now: float) -> None:
        """What took the place of a workload has no quota after all."""
        old = self.entries.get(key)
        if old is not None and old.holding is None and old.source is not None:
            self.set_workload(old.source, now)

    def _requeue(self, entry: Entry, now: float) -> None:
        self._dequeue(entry)
        local = self.local_queues.find(entry.facts.queue)
        if local is None or local.is_stopped or not entry.facts.active:
            return
        queue = self.books.queues.get(local.cluster_queue)
        if queue is not None and not isinstance(entry.facts.demands, Unpriced):
            entry.waits_in = queue.name
            queue.waiting.add(entry, now)
            self.books.is_ready(queue.name)

    def _dequeue(self, entry: Entry) -> None:
        queue = self.books.queues.get(entry.waits_in)
        if queue is not None:
            queue.waiting.discard(entry.key)
        entry.waits_in = ""

    # Decisions.

    def cycle(self, now: float) -> tuple[Decision, ...]:
        """Decide about the head of every queue that has one. Nothing is decided if there is none."""
        if self._revision != self.books.revision:
            self._revision = self.books.revision
            self._preemptor.quarrels.forget()
            self.room_may_be_free()
        self._cycles += 1
        self._preemptor.questions.begin_cycle(now)
        if self.past_use is not None:
            self.past_use.sample(now, self._used_by)
        refused: list[Decision] = []
        heads = []
        for queue, entry in self.books.heads(now):
            problem = self._problem(queue, entry)
            if problem is None:
                heads.append((queue, entry))
            else:
                again, refusal = problem
                refused.append(refusal)
                queue.waiting.refuse(entry, again)
                self._gives_up_room(entry.key)
        one_at_a_time = self.settings.wait_for_pods_ready.block_admission
        run = Cycle(
            self._rules,
            self._preemptor,
            self._placing,
            self.books.queues,
            self.books.ledger,
            self._cycles,
            one_at_a_time=one_at_a_time,
            is_blocked=one_at_a_time and self._waits_for_pods(),
        )
        decisions = run.run(heads)
        settled = [
            self._reserve(decision, now) if isinstance(decision, Reserved) else decision
            for decision in decisions
        ]
        return (*refused, *settled)

    def _reserve(self, decision: Reserved, now: float) -> Reserved:
        """Count what a cycle gave a workload. Returns the decision as it is to be written."""
        entry = self.entries[decision.key]
        self._dequeue(entry)
        entry.positions, entry.refusal = {}, None
        self._preemptor.quarrels.has_quota(entry.key)
        entry.assumed = True
        settled, holding = self.claims.settled(decision, now, entry.facts)
        self.claims.take(entry, holding)
        self._supersede(entry)
        if self.past_use is not None:
            self._counts_as_used(self.past_use, entry, holding)
        return settled

    # Room for pods, where somebody looks for it.

    def ask_for_room(self, room: RoomFinder | None, work: int | None = None) -> None:
        """Have somebody be asked whether there is room, before anybody is driven out. None: quota alone decides.

        `work`: how much at a time (`preemption/questions.py`). Where that is not enough, the search goes on in the next cycle.
        """
        self._preemptor.room = room
        self._preemptor.questions.limit = work

    @property
    def room(self) -> RoomFinder | None:
        """Who is asked for room, if anybody is."""
        return self._preemptor.room

    @property
    def is_unfinished(self) -> bool:
        """Whether another cycle has to follow, though nothing may have changed, because a search goes on."""
        return self._preemptor.questions.is_cut

    def _gives_up_room(self, key: str) -> None:
        if self._preemptor.room is not None:
            self._preemptor.room.gives_up(key)

    def room_may_be_free(self) -> None:
        """There may be room now for those that were refused for want of it."""
        self._for_room.begin_again()
        self.books.wake_roomless()

    def without_room(self, key: str, lacking: str, now: float) -> list[Decision]:
        """A workload that a cycle gave quota to finds no room, which `lacking` describes. It gives the quota back, and waits for room."""
        entry = self.entries[key]
        holding = entry.holding
        if holding is None or not entry.assumed:
            return []
        self.forget(key, now)
        queue = self.books.queues.get(holding.cluster_queue)
        if queue is None:
            # It was deleted during the cycle.
            return []
        self._preemptor.questions.begin_turn(now)
        again, decisions = self._for_room.decide(queue, entry, holding, lacking)
        queue.waiting.refuse(entry, again)
        return decisions

    def replaced(self, key: str, lost: frozenset[str]) -> Admission | NotPlaced | None:
        """The admission of a workload with other places for its pods on lost hosts. None if it holds nothing that is known of. Changes
        nothing. What cannot be priced has no other places: nobody knows what its pods need.

        Raises DecodeError where its assignment cannot be read.
        """
        entry = self.entries.get(key)
        holding = None if entry is None else entry.holding
        if entry is None or holding is None:
            return None
        demands = entry.facts.demands
        if isinstance(demands, Unpriced):
            return NotPlaced(demands.message)
        with self.books.ledger.trial():
            return self._placing.replaced(demands, holding.admission, lost)

    def admit_difference(self, key: str) -> Admission | None:
        """Charge a workload that has quota what its pods cost by now, if that is more. Its admission, to be written.

        None if it costs no more, or if the difference is not free or others wait for quota that they share with it: it takes its turn
        then.
        """
        entry = self.entries.get(key)
        holding = None if entry is None else entry.holding
        if entry is None or holding is None or isinstance(entry.facts.demands, Unpriced):
            return None
        queue = self.books.queues.get(holding.cluster_queue)
        if queue is None or queue.node is None:
            return None
        rest = (self.books.queues.get(each.name) for each in queue.node.root.queues())
        if any(each is not None and len(each.waiting) for each in rest):
            return None
        found = risen(holding.admission, entry.facts.demands, holding.claims)
        if found is None or not queue.node.fits(found[1]):
            return None
        admission, more = found
        own, quota = dict(holding.own), dict(holding.usage.quota)
        for what, amount in more.items():
            own[what] = own.get(what, 0) + amount
            quota[what] = quota.get(what, 0) + amount
        usage = replace(holding.usage, quota=quota)
        self.books.recharge(entry, replace(holding, admission=admission, own=own, usage=usage))
        return admission

    def is_waiting(self, key: str) -> bool:
        """Whether a workload may get quota in a cycle to come, or got it in one that is not over."""
        entry = self.entries.get(key)
        if entry is None:
            return False
        queue = self.books.queues.get(entry.waits_in)
        return entry.assumed or (queue is not None and not queue.inactive)

    def is_held_back(self, key: str) -> bool:
        """Whether a workload that waits is not tried again before something else changes than the room there is."""
        entry = self.entries[key]
        queue = self.books.queues.get(entry.waits_in)
        return queue is not None and queue.waiting.is_held_back(entry)

    def holds_quota(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry.holding is not None

    def _waits_for_pods(self) -> bool:
        """Whether somebody has quota whose pods are not ready yet."""
        holders = (each for queue in self.books.queues.values() for each in queue.holders.values())
        return any(not each.facts.pods_ready for each in holders)

    def _problem(self, queue: ClusterQueueState, entry: Entry) -> tuple[Again, Refused] | None:
        """What keeps a head from being looked at."""
        if queue.node is None:
            text = f"ClusterQueue {queue.name} is inactive: its cohorts form a circle, beginning with {queue.spec.cohort_name}"
            return Again.ALONE, Refused(entry.key, PENDING_EVALUATION, text)
        if not self.serves(queue, entry.facts.namespace):
            text = "Workload namespace doesn't match ClusterQueue selector"
            return Again.NAMESPACE, Refused(entry.key, MISCONFIGURED, text)
        if entry.facts.failed_checks:
            text = "The workload has failed admission checks"
            return Again.ALONE, Refused(entry.key, PENDING_EVALUATION, text)
        return None

    def standing(self, key: str) -> Evicted | Refused | None:
        """What the state of its queue means for a workload: that it has to give up its quota, or why it cannot get any.

        None: it holds quota and may keep it, or it waits for its turn.
        """
        entry = self.entries[key]
        return standing_of(entry, self.local_queues.find(entry.facts.queue), self.books.queues)

    def is_active(self, local_queue: str) -> bool:
        """Whether workloads of a local queue may get quota."""
        local = self.local_queues.find(local_queue)
        queue = None if local is None else self.books.queues.get(local.cluster_queue)
        return (
            local is not None
            and not local.is_stopped
            and queue is not None
            and self.books.is_active(queue)
        )

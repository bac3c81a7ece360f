"""Drives the engine of quota: tells it of objects, has it decide, and writes what it decides.

Changes gather and are taken in at once, then cycles follow each other until nothing new comes of them. What a cycle gives away counts from
then on; if it cannot be written, it is taken back. Decisions of several cycles are written together (`gathering`). A Workload that was
refused says so in its status, once for each reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import KueueTopology
from drayman.api.errors import ApiError
from drayman.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Admission, Workload
from drayman.api.limit_ranges import LimitRange
from drayman.api.times import parse_duration
from drayman.cluster.breaks import Breaks
from drayman.cluster.informer import Notice
from drayman.cluster.resources import Resource, StructCodec, typed
from drayman.controllers.quota.checks import followed_checks
from drayman.controllers.quota.configuration import QueueConfiguration
from drayman.controllers.quota.devices import Devices
from drayman.controllers.quota.gathering import Gathering, drives_out
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.lost_nodes import LostNodes
from drayman.controllers.quota.rooms import RoomKeeping
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.verdicts import Outcome, Verdicts
from drayman.controllers.quota.view import DELETED, ClusterView
from drayman.quota.concerned import Concerned
from drayman.quota.decisions import Reserved
from drayman.quota.preemption.questions import WORK_OF_A_TURN
from drayman.quota.quota_and_room import Cycles, Made
from drayman.quota.state import QuotaState
from drayman.quota.topology.devices import DeviceCounter
from drayman.workloads.queued import life

_log: Final = logging.getLogger(__name__)
_PAUSE_S: Final = 1.0
"""After which decisions that could not be written are made again."""

_FOLLOWED: Final[Mapping[type, Resource[Any]]] = {
    ResourceFlavor: typed(ResourceFlavor),
    Cohort: typed(Cohort),
    ClusterQueue: typed(ClusterQueue),
    LocalQueue: typed(LocalQueue),
    Namespace: typed(Namespace),
    KueueTopology: typed(KueueTopology),
    Node: typed(Node),
    Pod: typed(Pod),
    # Only read here, so it is not in the catalog.
    LimitRange: Resource(
        "", "v1", "limitranges", "LimitRange", True, StructCodec(LimitRange), complete=False
    ),
}
"""What queues depend on, in the order in which a new engine is told of it."""
_OF_TOPOLOGIES: Final = (Node, Pod)
"""What only matters where there are topologies."""

_SOON_S: Final = 0.01
"""After which the cache should show what somebody else has written."""

Listener = Callable[[Key], None]
Change = Callable[[QuotaState], None]
"""Tells an engine of something."""


class Admitting:
    """The engine, and what keeps it up to date."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._view = ClusterView(shared.informers)
        self.devices = Devices(self._view, self._prices_changed)
        self._checks = followed_checks(shared.informers, self._checks_changed)
        self.rooms = RoomKeeping(
            shared,
            self._view,
            self._room_may_be_free,
            lambda: self.state,
            self._runs_elsewhere,
        )
        lost_nodes = LostNodes(shared, lambda: self.state, self.rooms)
        self._changed: OrderedDict[Key, None] = OrderedDict()
        """Workloads to be looked at, in the order of their changes."""
        self._event = asyncio.Event()
        self._breaks = Breaks()
        self._listeners: list[Listener] = [lost_nodes.told]
        self._queue_listeners: list[Listener] = []
        self._concerned = Concerned()
        self._are_queues_changed = False
        """Whether queues may mean something else than when `_queues_changed` was last called."""
        self._count_listeners: list[Callable[[], None]] = []
        self._touched: set[Key] = set()
        self._caches: dict[type, Any] = {}
        self.state = self._new_state()
        shared.tally.state = lambda: self.state
        self.verdicts = Verdicts(shared, self)
        self._is_new = True
        self.knows_all = False
        """Whether the engine has been told of everything that there is."""
        self._meanwhile: list[Change] | None = None
        """What happened since a new engine is being filled beside this one; None if none is."""
        for type_, resource in _FOLLOWED.items():
            informer = shared.informers.informer(resource)
            self._caches[type_] = informer.cache
            informer.add_handler(self._handler(type_))
        shared.book.listen(self._workload_changed)

    def listen(self, listener: Listener) -> None:
        """Be told of each Workload after the engine was told of it."""
        self._listeners.append(listener)

    def listen_to_queues(self, listener: Listener) -> None:
        """Be told of each Workload for which a change of queues, or of what they are made of, means something."""
        self._queue_listeners.append(listener)

    def listen_to_counts(self, listener: Callable[[], None]) -> None:
        """Be told when the numbers of queues may have changed: see `take_touched`."""
        self._count_listeners.append(listener)

    def take_touched(self) -> set[Key]:
        """The queues whose numbers may have changed since the last call. Cluster queues have no namespace."""
        touched, self._touched = self._touched, set()
        return touched

    @property
    def view(self) -> ClusterView:
        """The cluster as placement sees it."""
        return self._view

    @property
    def is_complete(self) -> bool:
        """Whether the engine was told of every Workload there is: only then it knows who pays for claims."""
        return self.knows_all and not self._is_new and self._meanwhile is None

    def charges_changed(self) -> None:
        """Have those be looked at whose charges are other ones now, and those that wait for what is free."""
        self._event.set()

    def look_at(self, keys: Iterable[Key]) -> None:
        """Have Workloads be looked at again."""
        for key in keys:
            self._changed[key] = None
        self._event.set()

    def configure(self, configuration: QueueConfiguration) -> None:
        """Decide by other settings from now on. Whoever holds quota keeps it."""
        self.devices.set_mappings(configuration.mappings, configuration.gates)
        self._is_new = True
        self._event.set()

    # Following.

    def _new_state(self) -> QuotaState:
        state = QuotaState(self._shared.configuration.quota, self.devices)
        state.books.checks = self._checks
        state.ask_for_room(self.rooms, WORK_OF_A_TURN)
        return state

    def _handler(self, type_: type) -> Callable[[Notice[Any]], None]:
        def handle(notice: Notice[Any]) -> None:
            old, new, gone = notice.old, notice.object, notice.type == DELETED
            if self._is_new:
                return
            change = partial(self._take, type_=type_, value=new, gone=gone)
            if type_ in _OF_TOPOLOGIES:
                if self.state.has_topologies or self._meanwhile is not None:
                    self._change(change)
                    self._event.set()
                return
            if old is not None and not gone and not _is_otherwise(old, new):
                return
            if type_ is KueueTopology and not self.state.has_topologies:
                self._is_new = True  # The engine has to be told of nodes and pods, too.
            self._change(change)
            self._changed_for_workloads(type_, new.metadata.namespace)
            self._event.set()

        return handle

    def _changed_for_workloads(self, type_: type, namespace: str) -> None:
        """Have Workloads be looked at for which the change of an object that queues depend on means something."""
        if type_ is LimitRange:
            self._look_beside_cycles(self.state.local_queues.members_in(namespace))
            for key, local in self.state.local_queues.all().items():
                if key.partition("/")[0] == namespace:  # Some may wait no longer, or again.
                    self._touched |= {(namespace, key.partition("/")[2]), ("", local.cluster_queue)}
        elif type_ is not Namespace:  # What it lets in is found out by cycles.
            self._are_queues_changed = True

    def _checks_changed(self) -> None:
        if not self._is_new:
            self._change(lambda state: state.checks_changed(self._shared.clock()))
            self._are_queues_changed = True
            self._event.set()

    def _queues_changed(self) -> None:
        """Have everything be looked at that queues mean something else for than before.

        All queues are compared, so this is done once for changes that come together, and not while others wait to be told of them.
        """
        self._are_queues_changed = False
        self._look_beside_cycles(self._concerned.since(self.state))
        self._touched.update(self._caches[ClusterQueue].names())
        self._touched.update(self._caches[LocalQueue].names())
        for listener in self._count_listeners:
            listener()

    def _look_beside_cycles(self, names: Iterable[str]) -> None:
        for name in names:
            namespace, _, workload = name.partition("/")
            for listener in self._queue_listeners:
                listener((namespace, workload))

    def _change(self, change: Change) -> None:
        """Tell the engine of something, and the one that is to take its place."""
        change(self.state)
        if self._meanwhile is not None:
            self._meanwhile.append(change)

    def _take(self, state: QuotaState, type_: type, value: Any, *, gone: bool) -> None:
        """Tell an engine of an object that queues depend on."""
        now, metadata = self._shared.clock(), value.metadata
        try:
            if type_ is ResourceFlavor:
                state.remove_flavor(metadata.name) if gone else state.set_flavor(value)
            elif type_ is Cohort:
                state.remove_cohort(metadata.name) if gone else state.set_cohort(value)
            elif type_ is ClusterQueue:
                state.remove_cluster_queue(metadata.name) if gone else state.set_cluster_queue(
                    value, now
                )
            elif type_ is LocalQueue and gone:
                state.remove_local_queue(metadata.namespace, metadata.name, now)
            elif type_ is LocalQueue:
                state.set_local_queue(value, now)
            elif type_ is KueueTopology:
                state.remove_topology(metadata.name) if gone else state.set_topology(value)
            elif type_ is Node:
                state.remove_node(metadata.name) if gone else state.set_node(value)
            elif type_ is Pod:
                state.remove_pod(metadata.uid) if gone else state.set_pod(value)
            elif type_ is Namespace:
                state.remove_namespace(metadata.name) if gone else state.set_namespace(value)
            elif gone:
                state.remove_limit_range(metadata.namespace, metadata.name)
            else:
                state.set_limit_range(value)
        except ApiError as error:
            _log.warning("%s %s makes no sense: %s", type_.__name__, metadata.name, error)

    def _workload_changed(self, notice: Notice[Workload]) -> None:
        metadata = notice.object.metadata
        self.look_at([(metadata.namespace, metadata.name)])

    def _prices_changed(self) -> None:
        self._event.set()

    def _price_again(self) -> None:
        """Read those again whose price may be another one."""
        for key in self.devices.take_concerned():
            self._change(partial(QuotaState.devices_changed, key=key))
            namespace, _, name = key.partition("/")
            self._changed[namespace, name] = None

    # Deciding.

    async def run(self) -> None:
        """Works until cancelled. Informers have to be synced."""
        self._is_new = True
        self._event.set()
        while True:
            sharing = self._shared.configuration.quota.admission_fair_sharing
            wait = None if sharing is None else parse_duration(sharing.usage_sampling_interval)
            try:
                async with asyncio.timeout(wait):
                    await self._event.wait()
            except TimeoutError:
                # What queues used in the past is sampled, also if nothing else happens.
                self._touched.update(self._caches[LocalQueue].names())
            self._event.clear()
            await self._round()

    async def _round(self) -> None:
        while self._is_new:
            await self._begin()
            self.rooms.look_again()
        await self._take_changes()
        outcome = await self._decide()
        if outcome is not Outcome.WRITTEN:
            pause = _PAUSE_S if outcome is Outcome.REFUSED else _SOON_S
            asyncio.get_running_loop().call_later(pause, self._event.set)
        elif self.state.is_unfinished:
            self._event.set()
        if self._touched:
            for listener in self._count_listeners:
                listener()

    async def _decide(self) -> Outcome:
        """Run cycles until nothing new comes of them, or something could not be written."""
        gathering = Gathering()
        cycles = Cycles(self.state)
        while True:
            made = await self._cycle(cycles)
            if drives_out(made) and gathering:
                # Who has to go may have got quota in a cycle before, and has to have it first.
                outcome = await self._write(gathering)
                if outcome is not Outcome.WRITTEN:
                    # They were decided with quota in mind that has been taken back.
                    self.verdicts.give_up(made)
                    return outcome
            gathering.add(made)
            if not made or gathering.is_complete or drives_out(made):
                outcome = await self._write(gathering)
                if outcome is not Outcome.WRITTEN or not made:
                    return outcome
            await self._breaks.between()
            await self._take_changes()

    async def _cycle(self, cycles: Cycles) -> list[Made]:
        """What a cycle decides that is new."""
        began = time.monotonic()
        made: list[Made] = []
        for each in cycles.run(self._shared.clock()):
            made.append(each)
            await self._breaks.between()
        if made:
            success = any(isinstance(each.decision, Reserved) for each in made)
            self._shared.tally.cycle_took(time.monotonic() - began, success=success)
            self.verdicts.count(made)
        return made

    async def _write(self, gathering: Gathering) -> Outcome:
        made = gathering.take()
        return await self.verdicts.carry_out(made) if made else Outcome.WRITTEN

    def _runs_elsewhere(self, admission: Admission) -> bool:
        return self.state.books.runs_elsewhere(admission)

    def _room_may_be_free(self) -> None:
        """Something in the cluster may have made room."""
        self.state.room_may_be_free()
        if self.state.has_topologies:
            self.state.books.after_nodes()  # Devices may be free, where places were missing for want of them.
        self._event.set()

    async def _begin(self) -> None:
        """Put an engine that was told of everything in the place of this one, which everybody asks until then.

        What was read may be old by the time that the engine is told of it: whatever happens meanwhile is told once more at the end.
        """
        self._is_new, self._meanwhile = False, []
        state = self._new_state()
        places_matter = len(self._caches[KueueTopology]) > 0
        if places_matter:
            state.books.ledger.topologies.counter = DeviceCounter(self._view.state)
        for type_, cache in self._caches.items():
            if type_ not in _OF_TOPOLOGIES or places_matter:
                for value in cache:
                    self._take(state, type_, value, gone=False)
                    await self._breaks.between()
        for known in self._shared.book.all():
            self._tell(state, known.key, "/".join(known.key))
            await self._breaks.between()
        meanwhile, self._meanwhile = self._meanwhile, None
        if self._is_new:
            return  # Everything is to be otherwise once more.
        for change in meanwhile:
            change(state)
        self.state, self.knows_all = state, True
        for known in self._shared.book.all():
            self._changed[known.key] = None
        self._concerned.begin(state)
        self._queues_changed()

    async def _take_changes(self) -> None:
        if self._are_queues_changed:
            self._queues_changed()
        self._price_again()
        while self._changed:
            key, _ = self._changed.popitem(last=False)
            self.tell(key)
            for listener in self._listeners:
                listener(key)
            await self._breaks.between()
        for name in self.state.claims.take_changed():
            self._touch(name)
            namespace, _, workload = name.partition("/")
            for listener in self._listeners:
                listener((namespace, workload))

    def tell(self, key: Key) -> None:
        """Tell the engine of a Workload as it is known to be."""
        name = "/".join(key)
        self._touch(name)
        self._tell(self.state, key, name)
        self._touch(name)

    def _touch(self, name: str) -> None:
        """Note the queues that a Workload waits in or holds quota of."""
        entry = self.state.entries.get(name)
        if entry is None:
            return
        namespace, _, local = entry.facts.queue.partition("/")
        self._touched.add((namespace, local))
        holding = entry.holding
        for queue in (entry.waits_in, "" if holding is None else holding.cluster_queue):
            if queue:
                self._touched.add(("", queue))

    def _tell(self, state: QuotaState, key: Key, name: str) -> None:
        known = self._shared.book.find(key)
        if known is None:
            state.remove_workload(name)
            self.devices.forget(name)
            self.rooms.forget(key)
            return
        self.rooms.follow(known)
        if known.problem or (known.spec.active and life.is_deactivated(known.status)):
            # One that was made active again waits from when its status says so: what was counted against it is forgotten first.
            state.remove_workload(name)
            return
        try:
            state.set_workload(known.workload, self._shared.clock())
        except ApiError as error:
            state.remove_workload(name)
            _log.warning("Workload %s makes no sense: %s", name, error)

    def forget(self, key: Key) -> None:
        """What was given to a Workload could not be written."""
        self.state.forget("/".join(key), self._shared.clock())
        self.rooms.forget(key)
        self._changed[key] = None


def _is_otherwise(old: Any, new: Any) -> bool:
    """Whether more has changed than a status, most of which are our own."""
    parts = ("spec", "value")
    if old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
        return True
    return old.metadata.labels != new.metadata.labels or any(
        getattr(old, part, None) != getattr(new, part, None) for part in parts
    )

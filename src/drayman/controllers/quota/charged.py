"""Has pods that wait in queues placed, and left where they are, only on account of quota that was given (`quota/charged.py`).

The scheduler asks `ChargeGuard` before it places a pod. What is on nodes and not covered all the same is ended here when the grace period
of the configuration is over: a pod that nothing charges is deleted, and a Workload whose pods cost more than it was admitted with is
evicted, so that it waits for what it costs now. Where the difference is free, and nothing waits for it, it is charged instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drayman.api.core import Pod
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import Workload
from drayman.api.meta import ObjectMeta
from drayman.api.meta import controller_of as made_by
from drayman.api.pods import is_finished, is_leaving
from drayman.api.resource import ResourceClaim
from drayman.api.times import seconds_of
from drayman.bounded import Bounded
from drayman.cluster.breaks import Breaks
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.resources import PODS
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.ancestors import Ancestors
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.pod_writes import PodWrites
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.view import DELETED
from drayman.placement.charging import Uncharged
from drayman.placement.state import ClusterState
from drayman.quota.charged import ChargeCheck, Covering, Lack
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.fitting.belonging import pod_set_of
from drayman.quota.settings import ResourceSettings
from drayman.workloads.queued import life
from drayman.workloads.queued.entering import Finder, Intake
from drayman.workloads.queued.groups import is_group_workload
from drayman.workloads.queued.names import JOB_UID
from drayman.workloads.queued.pods import group_of, is_over

UNCHARGED: Final = "NotCharged"
"""The reason of events about pods that are deleted because no quota covers them."""
_MOST_NAMESPACES: Final = 1 << 12
_WOKEN: Final = 100
"""Refused pods that the scheduler looks at again at a time."""
_GATHER_S: Final = 0.1
"""How long changes of a namespace are gathered, at least, before its pods are looked at."""
_MOST_OFTEN_S: Final = 5.0
"""The same for long grace periods."""


class _Place(NamedTuple):
    """By what a pod was charged when it was placed."""

    handles: frozenset[str]
    stated_set: str
    """The pod set that it named."""


class ChargeGuard:
    """What the scheduler asks. It knows nothing, and refuses nothing, as long as no queues are at work."""

    def __init__(self) -> None:
        self._pods: ChargedPods | None = None
        self._wakers: list[Callable[[Iterable[str]], None]] = []
        self._refused: dict[str, set[str]] = {}
        """The uids of pods that were refused, by namespace."""
        self._waking: dict[str, set[str]] = {}
        """Those of them that the scheduler is to look at again."""
        self._due: set[str] = set()
        """Namespaces in which a pod that is being deleted leaves its place at some time."""
        self._again: set[str] = set()
        """Namespaces in which something has changed meanwhile."""

    def serve(self, pods: ChargedPods) -> None:
        """Answer by what these know from now on."""
        self._pods = pods

    def uncharged(self, state: ClusterState) -> Uncharged:
        check: ChargeCheck | None = None

        def is_placed(pod: Pod) -> bool:
            return _is_on_a_node(pod) or state.counts(pod.metadata.uid)

        def answer(pod: Pod, claims: Sequence[ResourceClaim], now: float) -> str:
            nonlocal check
            if self._pods is None:
                return ""
            if check is None:
                check = self._pods.check(lambda: state, is_placed)
            lack = check.lack(pod, claims, now)
            self._pods.note_price(pod, lack)
            namespace, uid = pod.metadata.namespace, pod.metadata.uid
            if lack is None:
                refused = self._refused.get(namespace, set())
                refused.discard(uid)
                if not refused:
                    self._refused.pop(namespace, None)
                return ""
            self._refused.setdefault(namespace, set()).add(uid)
            if lack.until is not None and namespace not in self._due:
                self._due.add(namespace)
                wait = max(0.0, lack.until - now) + _GATHER_S
                asyncio.get_running_loop().call_later(wait, self._is_due, namespace)
            return lack.message

        return answer

    def listen(self, wake: Callable[[Iterable[str]], None]) -> Callable[[], None]:
        self._wakers.append(wake)
        return lambda: self._wakers.remove(wake)

    def changed(self, namespace: str) -> None:
        """Pods of a namespace that were refused may be covered now. The scheduler looks at them again, so many at a time."""
        if namespace in self._waking:
            self._again.add(namespace)
        elif self._refused.get(namespace):
            self._waking[namespace] = self._refused.pop(namespace)
            self._wake(namespace)

    def _is_due(self, namespace: str) -> None:
        self._due.discard(namespace)
        self.changed(namespace)

    def _wake(self, namespace: str) -> None:
        left = self._waking[namespace]
        now = [left.pop() for _ in range(min(len(left), _WOKEN))]
        for wake in tuple(self._wakers):
            wake(now)
        asyncio.get_running_loop().call_later(_GATHER_S, self._go_on, namespace)

    def _go_on(self, namespace: str) -> None:
        if self._waking[namespace]:
            self._wake(namespace)
            return
        del self._waking[namespace]
        if namespace in self._again:
            self._again.discard(namespace)
            self.changed(namespace)


class ChargedPods:
    """Knows what charges which pod, and ends pods that nothing charges."""

    def __init__(
        self, shared: Shared, admitting: Admitting, ancestors: Ancestors, guard: ChargeGuard
    ) -> None:
        self._shared = shared
        self._admitting = admitting
        self._ancestors = ancestors
        self._guard = guard
        self._writes = PodWrites(shared)
        self._breaks = Breaks()
        self._made: dict[str, set[str]] = {}
        """The uids of objects that wait as a whole, by the uid of the object that made them."""
        self._makers: dict[str, set[str]] = {}
        """The other way round. What runs is also a part of what it was made for before its owner was changed."""
        self._maker: dict[str, str] = {}
        """Only what it is a part of now."""
        self._places: dict[str, _Place] = {}
        """Of pods that are on nodes, or may be placed, by uid."""
        self._running: dict[str, dict[str, Key]] = {}
        """The pods that have not ended, by the uid of what made them, or by the key of their group."""
        self._placed: dict[str, dict[str, Key]] = {}
        """Those of them that are on nodes, by namespace."""
        self._since: dict[str, dict[str, float]] = {}
        """When something was first found that is not covered, by namespace and uid."""
        self._short: dict[str, Key] = {}
        """Pods that are not placed because they cost more than their Workloads were admitted with, and the keys of these."""
        self._revision = 0
        self._revisions: Bounded[str, int] = Bounded(_MOST_NAMESPACES)
        self._listeners: list[Callable[[Key], None]] = []
        self._held_back: dict[str, set[Key]] = {}
        """Workloads whose quota could not be released, by namespace."""
        self.loop = Loop("pods without quota", self._attend, workers=1)
        pods = shared.informers.informer(PODS)
        pods.add_handler(self._pod_changed)
        self._pods = pods.cache
        shared.book.listen(self._workload_changed)
        shared.book.holds_back, shared.book.pods_on_nodes = self._holds_back, self._pods_on_nodes
        guard.serve(self)

    def check(
        self, state: Callable[[], ClusterState], is_placed: Callable[[Pod], bool]
    ) -> ChargeCheck:
        """Answers for the pods of a cluster as this state has it."""
        prices: DevicePricing | None = None

        def pricing() -> DevicePricing:
            nonlocal prices
            configuration = self._shared.configuration
            if prices is None:
                prices = DevicePricing(state(), configuration.mappings)
            prices.mappings, prices.gates = configuration.mappings, configuration.gates
            return prices

        return ChargeCheck(self, pricing, is_placed)

    # What is known: `Roster`.

    @property
    def intake(self) -> Intake:
        return self._shared.configuration.intake

    @property
    def resources(self) -> ResourceSettings:
        return self._shared.configuration.quota.resources

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        return self._shared.namespace_labels(name)

    def finder(self, namespace: str) -> Finder:
        return self._ancestors.finder(namespace)

    def owned_by(self, uid: str) -> Sequence[Covering]:
        return self._shared.book.of_owner(uid)

    def named(self, namespace: str, name: str) -> Covering | None:
        return self._shared.book.find((namespace, name))

    def revision(self, namespace: str) -> int:
        return self._revisions.get(namespace, self._revision)

    def flavors(self) -> Mapping[str, ResourceFlavorSpec]:
        return self._shared.flavors()

    def set_of(self, pod: Pod, names: Sequence[str]) -> str:
        place = self._places.get(pod.metadata.uid)
        if place is None or len(names) == 1:
            return pod_set_of(pod, names)
        return place.stated_set

    def most_pods_of(self, workload: Covering) -> int:
        return sum(
            len(self._running.get(handle, ())) for handle in self._handles(workload.metadata)
        )

    def pods_of(self, workload: Covering) -> Iterable[Pod]:
        keys = {
            uid: key
            for handle in self._handles(workload.metadata)
            for uid, key in self._running.get(handle, {}).items()
        }
        for uid, key in keys.items():
            pod = self._pods.get(key[1], key[0])
            if pod is not None and pod.metadata.uid == uid:
                yield pod

    def _handles(self, metadata: ObjectMeta) -> list[str]:
        """By which the pods of a Workload are known here."""
        if is_group_workload(metadata.annotations):
            return [f"{metadata.namespace}/{metadata.name}"]  # its owners are those pods themselves
        owners = [owner.uid for owner in metadata.owner_references]
        if JOB_UID in metadata.labels:  # Also when that is gone, and its pods are not.
            owners.append(metadata.labels[JOB_UID])
        return _reachable(owners, self._made)

    # Following.

    def object_changed(self, namespace: str, uid: str, maker: str) -> None:
        """An object changed that waits as a whole, or is a part of one that does."""
        self._maker.pop(uid, None)
        if maker:
            self._maker[uid] = maker
        self._link(uid)
        self._changed(namespace)

    def _link(self, uid: str) -> None:
        """Note what an object is a part of. That does not become less as long as pods run that are a part of it."""
        before, maker = self._makers.pop(uid, set()), self._maker.get(uid)
        makers = set() if maker is None else {maker}
        if any(each in self._running for each in _reachable([uid], self._made)):
            makers |= before
        for each in before - makers:
            self._made[each].discard(uid)
            if not self._made[each]:
                del self._made[each]
        if makers:
            self._makers[uid] = makers
        for each in makers:
            self._made.setdefault(each, set()).add(uid)

    def _workload_changed(self, notice: Notice[Workload]) -> None:
        self._changed(notice.object.metadata.namespace)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        metadata = pod.metadata
        key = (metadata.namespace, metadata.name)
        over = notice.type == DELETED or is_finished(pod)
        if pod.spec.node_name and metadata.uid not in self._places:
            self._places[metadata.uid] = _place_of(pod)
        place = self._places.get(metadata.uid)
        kept = frozenset[str]() if place is None else place.handles
        handles = set() if over else {*_handles_of(pod), *kept}
        before = {*_handles_of(pod), *kept}
        before.update(() if notice.old is None else _handles_of(notice.old))
        above = _reachable(before, self._makers)
        self._file(metadata.uid, key, before, handles)
        if over:
            self._places.pop(metadata.uid, None)
            self._release(above)
        if over or pod.spec.node_name:
            self._short.pop(metadata.uid, None)
        if over or not pod.spec.node_name:
            _drop(self._placed, metadata.namespace, metadata.uid)
        else:
            self._placed.setdefault(metadata.namespace, {})[metadata.uid] = key
        old = notice.old
        if (
            over
            or old is None
            or is_leaving(pod)
            or old.spec != pod.spec
            or old.metadata.labels != metadata.labels
            or old.metadata.owner_references != metadata.owner_references
        ):
            self._changed(metadata.namespace)

    def _file(self, uid: str, key: Key, before: Iterable[str], handles: Iterable[str]) -> None:
        """Have a pod that was known by some handles be known by others."""
        for handle in set(before) - set(handles):
            _drop(self._running, handle, uid)
            if handle not in self._running:
                for each in _reachable([handle], self._makers):
                    self._link(each)
        for handle in handles:
            self._running.setdefault(handle, {})[uid] = key

    def listen(self, listener: Callable[[Key], None]) -> None:
        """`listener` is called with the key of a Workload whose quota may be released when a pod of it has ended."""
        self._listeners.append(listener)

    def _pods_on_nodes(self, workload: Known) -> int:
        """How many pods of a Workload are on nodes, and within their time."""
        now = self._shared.clock()
        return sum(
            bool(pod.spec.node_name) and not is_over(pod, now) for pod in self.pods_of(workload)
        )

    def _holds_back(self, workload: Known) -> bool:
        """Whether quota cannot be released yet. The listeners are called when that may have changed."""
        status = workload.status
        if life.is_finished(status) or not life.holds_quota(status):
            return False
        now = self._shared.clock()
        pods = [
            each
            for each in self.pods_of(workload)
            if each.spec.node_name and not is_over(each, now)
        ]
        if not pods:
            return False
        namespace = workload.key[0]
        self._held_back.setdefault(namespace, set()).add(workload.key)
        ends = [seconds_of(each.metadata.deletion_timestamp) for each in pods]
        due = [end for end in ends if end is not None]
        if due:
            wait = max(0.0, min(due) - now) + _GATHER_S
            asyncio.get_running_loop().call_later(wait, self._look_again, namespace)
        return True

    def _look_again(self, namespace: str) -> None:
        for key in self._held_back.pop(namespace, ()):
            for listener in self._listeners:
                listener(key)

    def is_in_use(self, workload: Known) -> bool:
        """Whether pods of a Workload are on nodes."""
        return any(pod.spec.node_name for pod in self.pods_of(workload))

    def _release(self, handles: Iterable[str]) -> None:
        for handle in handles:
            for known in self._shared.book.of_owner(handle):
                if known.is_leaving:
                    for listener in self._listeners:
                        listener(known.key)

    def _changed(self, namespace: str) -> None:
        self._revision += 1
        self._revisions[namespace] = self._revision
        self._guard.changed(namespace)
        self._look_again(namespace)
        if namespace in self._placed:
            self._look_later(namespace, min(self._grace_s / 10, _MOST_OFTEN_S))

    def _look_later(self, namespace: str, after_s: float) -> None:
        self.loop.queue.add_after((namespace, ""), max(_GATHER_S, after_s))

    def note_price(self, pod: Pod, lack: Lack | None) -> None:
        """The scheduler has asked about a pod."""
        metadata = pod.metadata
        self._note_place(pod, lack)
        if lack is None or not lack.workload:
            self._short.pop(metadata.uid, None)
        elif metadata.uid not in self._short:
            self._short[metadata.uid] = (metadata.namespace, lack.workload)
            self.loop.queue.add((metadata.namespace, ""))

    def _note_place(self, pod: Pod, lack: Lack | None) -> None:
        """A pod that may be placed has its place from now on, so that nothing changes that before it is seen on its node."""
        metadata = pod.metadata
        uid, key = metadata.uid, (metadata.namespace, metadata.name)
        known = self._pods.get(metadata.name, metadata.namespace)
        if known is None or known.metadata.uid != uid or known.spec.node_name or is_finished(known):
            return
        before = self._places.pop(uid, None)
        if lack is None:
            self._places[uid] = _place_of(pod)
        place = self._places.get(uid)
        if place != before:
            self._file(
                uid,
                key,
                () if before is None else before.handles,
                {*_handles_of(known), *(() if place is None else place.handles)},
            )

    # Ending what is not covered.

    async def _attend(self, key: Key) -> None:
        namespace = key[0]
        check = self.check(lambda: self._admitting.view.state, _is_on_a_node)
        uncovered: dict[str, float] = {}
        covered: dict[Key, list[Pod]] = {}
        for uid, (_, name) in tuple(self._placed.get(namespace, {}).items()):
            pod = self._pods.get(name, namespace)
            if pod is None or pod.metadata.uid != uid or is_leaving(pod):
                continue
            await self._breaks.between()
            standing = check.standing(pod, self._shared.clock())
            if isinstance(standing, Lack):
                if self._is_overdue(namespace, uid, uncovered):
                    await self._writes.delete(pod, UNCHARGED, standing.message)
            elif standing is not None:
                metadata = standing.metadata
                covered.setdefault((metadata.namespace, metadata.name), []).append(pod)
        short = {each for each in self._short.values() if each[0] == namespace}
        for workload in {*covered, *short}:
            known = self._shared.book.find(workload)
            if known is None or not life.may_run(known.status, known.spec):
                continue
            await self._breaks.between()
            excess = check.excess(known, covered.get(workload, ()))
            if (not excess and workload not in short) or await self._charge_difference(known):
                continue
            if self._is_overdue(namespace, known.metadata.uid, uncovered):
                await self._evict(known)
        self._since.pop(namespace, None)
        if uncovered:
            self._since[namespace] = uncovered
            self._look_later(
                namespace, self._grace_s - (self._shared.clock() - min(uncovered.values()))
            )

    @property
    def _grace_s(self) -> float:
        return self._shared.configuration.uncharged_grace_s

    def _is_overdue(self, namespace: str, uid: str, uncovered: dict[str, float]) -> bool:
        """Whether something has not been covered for longer than the grace period."""
        now = self._shared.clock()
        since = uncovered[uid] = self._since.get(namespace, {}).get(uid, now)
        return now - since >= self._grace_s

    async def _charge_difference(self, known: Known) -> bool:
        """Charge a Workload what its pods cost by now, where that is free. Whether it was."""
        state, now = self._admitting.state, self._shared.clock()
        entry = state.entries.get("/".join(known.key))
        if entry is None or entry.holding is None:
            return False
        if entry.holding.admission != known.status.admission or not self._admitting.is_complete:
            return False  # The engine takes the object in first.
        admission = state.admit_difference(entry.key)
        if admission is None:
            return False
        status = life.with_admission(known.status, admission)
        try:
            after = await self._shared.book.write_status(known, status)
        except ClusterError:
            if entry.source is not None:
                state.set_workload(entry.source, now)
            raise
        note = "Its pods cost more than it was admitted with: the difference is charged"
        self._shared.book.record(after, "Normal", "DifferenceCharged", note)
        self._admitting.look_at([known.key])
        return True

    async def _evict(self, known: Known) -> None:
        """Have a Workload wait for what it costs by now."""
        text = f"Its pods have cost more than it was admitted with for {self._grace_s:g} s"
        status = life.evicted(
            known.status, life.DRIFT, text, self._shared.clock(), generation=known.generation
        )
        after = await self._shared.book.write_status(known, status)
        self._shared.book.record(after, "Normal", f"EvictedDueTo{life.DRIFT}", text)


def _is_on_a_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def _handles_of(pod: Pod) -> list[str]:
    """By which the Workload of a pod finds it: itself, what made it, and its group."""
    owner = made_by(pod.metadata)
    group = group_of(pod)
    found = [pod.metadata.uid, *(() if owner is None else (owner.uid,))]
    return [*found, f"{pod.metadata.namespace}/{group}"] if group else found


def _place_of(pod: Pod) -> _Place:
    return _Place(frozenset(_handles_of(pod)), pod_set_of(pod, ()))


def _drop(index: dict[str, dict[str, Key]], name: str, uid: str) -> None:
    found = index.get(name, {})
    found.pop(uid, None)
    if not found:
        index.pop(name, None)


def _reachable(uids: Iterable[str], links: Mapping[str, Iterable[str]]) -> list[str]:
    """These, and all to which links lead from them, directly or through others."""
    found = dict.fromkeys(uids)
    left = list(found)
    while left:
        for uid in links.get(left.pop(), ()):
            if uid not in found:
                found[uid] = None
                left.append(uid)
    return list(found)

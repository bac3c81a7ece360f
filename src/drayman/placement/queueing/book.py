"""Which queue pods are in, and what the pods of each queue hold and want.

A pod is in the queue that its PodGroup of KAI names, or else in that of its label, or of its Job's. What it takes is counted for its queue
and all above it: as wanted while it exists, as used while it has a node, or has the promise of one. Without any Queue in the cluster,
what pods say about queues means nothing.

Devices of a claim that several pods share are counted once, for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import chain, takewhile
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, KaiQueue
from drayman.api.near_names import did_you_mean
from drayman.api.pods import entry_claims, is_done
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.inventory.undo import UndoLog
from drayman.placement.fit.needs import shape_of
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.dialects.kai import QUEUE
from drayman.placement.gangs.gang import Gang, GangKey
from drayman.placement.queueing.amounts import NOTHING, RESOURCES, Amounts
from drayman.placement.queueing.gpus import Gpus
from drayman.placement.queueing.limits import Barrier, Withheld, exceeds
from drayman.placement.queueing.queues import Queue, QueueTree
from drayman.placement.queueing.reading import InvalidQueueError, queue_of
from drayman.placement.queueing.stakes import ClaimKey, Stake, Sums, add, is_preemptible, pairs

_NOBODY: Final[Mapping[str, Any]] = MappingProxyType({})


class QueueBook:
    """Follows queues and pods. Belongs to a cluster state and takes part in its trials."""

    def __init__(
        self,
        log: UndoLog,
        gangs: GangBook,
        gpus: Gpus,
        shares: Callable[[Pod], tuple[Fraction | int, bool]],
        find_claim: Callable[[str, str], ResourceClaim | None],
        find_template: Callable[[str, str], ResourceClaimTemplate | None],
    ) -> None:
        self._log = log
        self._gangs = gangs
        self._gpus = gpus
        self._shares = shares
        self._find_claim = find_claim
        self._find_template = find_template
        self._objects: dict[str, Queue | str] = {}  # or what is wrong with it
        self._kept_tree: QueueTree | None = None
        self._stakes: dict[str, Stake] = {}  # by uid of the pod
        self._units: dict[GangKey | str, dict[str, Stake]] = {}
        self._in_queue: dict[str, dict[GangKey | str, int]] = {}  # how many pods of each unit
        self._running_in: dict[str, dict[GangKey | str, int]] = {}  # how many of them have nodes
        self._payers: dict[ClaimKey, str] = {}
        self._users: dict[ClaimKey, dict[str, None]] = {}
        self._by_leaf = Sums()
        self._kept_sums: Sums | None = None
        self.revision = 0
        """Grows whenever queues, or what their work wants, may have changed, in trials too. What is used does not matter."""
        self.uses = 0
        """Grows with each change of what a leaf uses, in trials too."""
        self._used_at: dict[str, int] = {}  # the last such change of each leaf, the latest last

    # Queues.

    def set_queue(self, given: KaiQueue) -> bool:
        """Returns whether anything has changed that counts."""
        name = given.metadata.name
        read: Queue | str
        try:
            read = queue_of(given)
        except InvalidQueueError as error:
            read = str(error)
        if self._objects.get(name) == read:
            return False
        self._replace(name, read)
        return True

    def remove_queue(self, name: str) -> None:
        self._replace(name, None)

    def _replace(self, name: str, read: Queue | str | None) -> None:
        self._log.note(self._replace, name, self._objects.get(name))
        if read is None:
            self._objects.pop(name, None)
        else:
            self._objects[name] = read
        self._kept_tree = self._kept_sums = None
        self._used_at.clear()
        self.revision += 1

    @property
    def is_in_force(self) -> bool:
        """Whether there are queues."""
        return bool(self._objects)

    @property
    def tree(self) -> QueueTree:
        if self._kept_tree is None:
            valid = (each for each in self._objects.values() if isinstance(each, Queue))
            self._kept_tree = QueueTree(valid)
        return self._kept_tree

    def astray(self) -> list[str]:
        """The queues that are not in the tree: what is wrong with them is their flaw."""
        return [name for name in self._objects if name not in self.tree]

    def flaw(self, name: str) -> str | None:
        """Why no work can be in a queue of this name; None if it can."""
        known = self._objects.get(name)
        if known is None:
            return f"there is no queue {name}{did_you_mean(name, self._objects)}"
        if isinstance(known, str):
            return f"queue {name}, {known}"
        inactive = self.tree.inactive.get(name)
        if inactive is not None:
            return f"queue {name}, {inactive}"
        if not self.tree.is_leaf(name):
            return f"queue {name} consists of other queues: name one of those"
        return None

    # Pods.

    def see(self, pod: Pod) -> None:
        """A pod as the API server shows it."""
        uid = pod.metadata.uid
        known = self._stakes.get(uid)
        queue = self._queue_of(pod)
        if not queue or is_done(pod):
            self.forget(uid)
            return
        is_placed = known is not None and known.is_placed
        keys = _claim_keys(pod)
        self._put(uid, self._stake(pod, queue, keys, is_placed=is_placed))
        if known is not None and known.claims != keys:
            self._hand_over(uid, [key for key in known.claims if key not in keys])

    def forget(self, uid: str) -> bool:
        """A pod is gone. Returns whether one was that waited in a queue."""
        known = self._stakes.get(uid)
        if known is None:
            return False
        self._put(uid, None)
        self._hand_over(uid, known.claims)
        return not known.is_placed

    def place(self, uid: str) -> None:
        """A pod has a node, or the promise of one. Undone by `displace`."""
        known = self._stakes.get(uid)
        if known is not None and not known.is_placed:
            self._exchange(known, replace(known, is_placed=True))

    def displace(self, uid: str) -> None:
        """The inverse of `place`."""
        known = self._stakes.get(uid)
        if known is not None and known.is_placed:
            self._exchange(known, replace(known, is_placed=False))

    def group_changed(self, key: GangKey) -> None:
        """The object of a gang may say something else about its pods."""
        for member in chain(self._gangs.waiting(key).values(), self._gangs.placed(key).values()):
            self.see(member.pod)

    def job_changed(self, job: str) -> None:
        """A Job may say something else about its pods."""
        for pod in self._gangs.pods_of_job(job):
            self.see(pod)

    def claim_changed(self, namespace: str, name: str) -> None:
        """A claim came, got its devices, lost them or is gone."""
        key = (namespace, name)
        users = self._users.get(key)
        if not users:
            return
        claim = self._find_claim(namespace, name)
        reserved = () if claim is None else claim.status.reserved_for
        payer = next((each.uid for each in reserved if each.uid in users), self._payers[key])
        before = self._payers[key]
        self._log.put(self._payers, key, payer)
        for uid in dict.fromkeys((before, payer)):
            self.see(self._stakes[uid].pod)

    def classes_changed(self) -> None:
        """Other devices may count than before."""
        for stake in tuple(self._stakes.values()):
            self.see(stake.pod)

    # Answers.

    def stake(self, uid: str) -> Stake | None:
        """The stake of a pod, if it is in a queue."""
        return self._stakes.get(uid)

    def leaf_of(self, uid: str) -> str | None:
        """The queue that a pod is in, whether or not it exists."""
        stake = self._stakes.get(uid)
        return None if stake is None else stake.queue

    def pods_of(self, unit: GangKey | str) -> Mapping[str, Stake]:
        """The pods of a unit that are in queues, by uid."""
        return self._units.get(unit, _NOBODY)

    def units_in(self, queue: str) -> Iterator[GangKey | str]:
        """The units of which pods are directly in a queue."""
        return iter(tuple(self._in_queue.get(queue, ())))

    def running_in(self, queue: str) -> Iterator[GangKey | str]:
        """Those of them of which pods have nodes, or the promise of one."""
        return iter(tuple(self._running_in.get(queue, ())))

    def used_since(self, number: int) -> Iterator[str]:
        """The leaves of which something else is used than when `uses` was this number. Changed queues (`revision`) are not among them."""
        return takewhile(lambda leaf: self._used_at[leaf] > number, reversed(self._used_at))

    def path(self, leaf: str) -> tuple[str, ...]:
        """A queue that work names and those above it, the widest last; itself alone if it has no place in the tree."""
        return self.tree.path(leaf) if leaf in self.tree else (leaf,)

    @property
    def sums(self) -> Sums:
        """What queues have, each with those below it."""
        if self._kept_sums is None:
            self._kept_sums = made = Sums()
            for ours, leaves in pairs(made, self._by_leaf):
                for leaf, amounts in leaves.items():
                    add(ours, self.path(leaf), amounts)
        return self._kept_sums

    def gpus_in_pools(self) -> int:
        """How many GPUs the cluster has as devices."""
        return self._gpus.in_pools()

    def is_gpu(self, resource: str) -> bool:
        """Whether an extended resource counts as GPUs."""
        return self._gpus.is_resource(resource)

    def withheld(self, uids: Iterable[str]) -> Withheld | None:
        """What keeps pods, which have no nodes, from starting together; None if nothing does."""
        if not self._objects:
            return None
        more, firm, leaves = dict[str, Amounts](), dict[str, Amounts](), dict[str, str]()
        for uid in uids:
            stake = self._stakes.get(uid)
            if stake is not None and not stake.is_certain:
                self.see(stake.pod)
                stake = self._stakes[uid]
            if stake is None or stake.is_placed:
                continue
            leaf = stake.queue
            if leaf not in leaves:
                flaw = self.flaw(leaf)
                if flaw is not None:
                    return Withheld(Barrier.NO_QUEUE, leaf, flaw=flaw)
            for name in self.path(leaf):
                leaves.setdefault(name, leaf)
            add(more, self.path(leaf), stake.amounts)
            if stake.is_firm:
                add(firm, self.path(leaf), stake.amounts)
        for name, leaf in leaves.items():
            found = self._kept_out(name, leaf, more.get(name, NOTHING), firm.get(name, NOTHING))
            if found is not None:
                return found
        return None

    def _kept_out(self, name: str, leaf: str, more: Amounts, firm: Amounts) -> Withheld | None:
        queue, sums = self.tree[name], self.sums
        used, used_firmly = sums.used.get(name, NOTHING), sums.firm.get(name, NOTHING)
        for resource in RESOURCES:
            bounds = queue.bounds(resource)
            for barrier, bound, has, wanted in (
                (Barrier.LIMIT, bounds.limit, used, more),
                (Barrier.QUOTA, bounds.quota, used_firmly, firm),
            ):
                held, asked = getattr(has, resource), getattr(wanted, resource)
                if bound is not None and exceeds(held, asked, bound):
                    return Withheld(barrier, leaf, name, resource, asked, held, bound)
        return None

    # Internals.

    def _queue_of(self, pod: Pod) -> str:
        key = self._gangs.key_of(pod)
        if key is not None and key.has_object:
            group = self._gangs.object_of(key)
            spec = group.spec if isinstance(group, KaiPodGroup) else None
            named = spec.get("queue") if isinstance(spec, dict) else None
            if isinstance(named, str) and named:
                return named
        own = pod.metadata.labels.get(QUEUE)
        return own or self._gangs.stated_for(pod).get(QUEUE, "")

    def _stake(self, pod: Pod, queue: str, keys: tuple[ClaimKey, ...], *, is_placed: bool) -> Stake:
        gangs, uid = self._gangs, pod.metadata.uid
        gang, member = gangs.gang_of(pod), gangs.member(uid)
        stated = gang.is_preemptible if isinstance(gang, Gang) else None
        for key in keys:
            if key not in self._payers:
                self._log.put(self._payers, key, uid)
        amounts, is_certain = self._amounts(pod)
        return Stake(
            pod,
            queue,
            gangs.unit_of(pod) or uid,
            amounts,
            not is_preemptible(stated, gangs.priority_of(pod)),
            is_placed,
            "" if member is None else member.membership.subgroup,
            keys,
            is_certain,
        )

    def _amounts(self, pod: Pod) -> tuple[Amounts, bool]:
        """What a pod takes, and whether that is certain."""
        shape, namespace = shape_of(pod), pod.metadata.namespace
        gpus, is_certain = self._shares(pod)
        gpus += sum(number for name, number in shape.extended if self._gpus.is_resource(name))
        for entry, name in entry_claims(pod) if pod.spec.resource_claims else ():
            claim = self._find_claim(namespace, name) if name else None
            if name and self._payers.get((namespace, name)) != pod.metadata.uid:
                continue
            if claim is not None and claim.status.allocation is not None:
                gpus += self._gpus.held(claim)
            elif claim is not None:
                gpus += self._gpus.asked(claim.spec)
            elif name is None and entry.resource_claim_template_name is not None:
                template = self._find_template(namespace, entry.resource_claim_template_name)
                is_certain &= template is not None
                gpus += 0 if template is None else self._gpus.asked(template.spec.spec)
        return Amounts(gpus, shape.cpu, shape.memory), is_certain

    def _put(self, uid: str, stake: Stake | None) -> None:
        known = self._stakes.get(uid)
        self._log.note(self._put, uid, known)
        if known is not None and stake is not None and known.counts_like(stake):
            self._stakes[uid] = self._units[stake.unit][uid] = stake
            return
        if known is not None:
            self._leave(known)
        if stake is not None:
            self._join(stake)

    def _join(self, stake: Stake) -> None:
        uid = stake.uid
        self._stakes[uid] = stake
        self._units.setdefault(stake.unit, {})[uid] = stake
        _change(self._in_queue, stake.queue, stake.unit, 1)
        for key in stake.claims:
            self._users.setdefault(key, {})[uid] = None
        self._count(stake, 1)

    def _leave(self, stake: Stake) -> None:
        uid = stake.uid
        del self._stakes[uid]
        _discard(self._units, stake.unit, uid)
        _change(self._in_queue, stake.queue, stake.unit, -1)
        for key in stake.claims:
            _discard(self._users, key, uid)
        self._count(stake, -1)

    def _hand_over(self, uid: str, keys: Iterable[ClaimKey]) -> None:
        """Others that use claims have to answer for them in place of a pod that no longer does."""
        for key in keys:
            if self._payers.get(key) != uid:
                continue
            heir = next(iter(self._users.get(key, ())), None)
            if heir is None:
                self._log.pop(self._payers, key)
            else:
                self._log.put(self._payers, key, heir)
                self.see(self._stakes[heir].pod)

    def _exchange(self, known: Stake, stake: Stake) -> None:
        """The same pod, with or without a node."""
        self._count_used(known, -1)
        self._stakes[stake.uid] = self._units[stake.unit][stake.uid] = stake
        self._count_used(stake, 1)

    def _count(self, stake: Stake, sign: int) -> None:
        self.revision += 1
        amounts = stake.amounts if sign > 0 else NOTHING.minus(stake.amounts)
        for sums, path in self._counting(stake.queue):
            add(sums.wanted, path, amounts)
        self._count_used(stake, sign)

    def _count_used(self, stake: Stake, sign: int) -> None:
        if not stake.is_placed:
            return
        leaf = stake.queue
        _change(self._running_in, leaf, stake.unit, sign)
        if leaf in self.tree:
            self.uses += 1
            self._used_at.pop(leaf, None)
            self._used_at[leaf] = self.uses
        amounts = stake.amounts if sign > 0 else NOTHING.minus(stake.amounts)
        for sums, path in self._counting(leaf):
            add(sums.used, path, amounts)
            if stake.is_firm:
                add(sums.firm, path, amounts)

    def _counting(self, leaf: str) -> Iterator[tuple[Sums, tuple[str, ...]]]:
        yield self._by_leaf, (leaf,)
        if self._kept_sums is not None:
            yield self._kept_sums, self.path(leaf)


def _claim_keys(pod: Pod) -> tuple[ClaimKey, ...]:
    if not pod.spec.resource_claims:
        return ()
    namespace = pod.metadata.namespace
    return tuple(dict.fromkeys((namespace, name) for _, name in entry_claims(pod) if name))


def _change(
    counts: dict[str, dict[GangKey | str, int]], key: str, item: GangKey | str, by: int
) -> None:
    """Count an item. One of which none is left is not kept."""
    inner = counts.setdefault(key, {})
    inner[item] = inner.get(item, 0) + by
    if not inner[item]:
        _discard(counts, key, item)


def _discard(mapping: dict[Any, dict[Any, Any]], key: Hashable, item: Hashable) -> None:
    """Remove an item, and what it was in if nothing is left of that."""
    inner = mapping[key]
    del inner[item]
    if not inner:
        del mapping[key]

"""Carries decisions out: devices and reservations to the claims, then the pod to its node.

Where the cluster has transactions, a whole batch of decisions is one: either all claims have their devices and all pods their nodes, or
nothing happened, and the batch is split to find the decision that failed. Elsewhere each pod is its own sequence of requests, in
Kubernetes' order, many pods at a time.

Binding waits for devices that their drivers must first make ready, and for volumes that others have to bind or provision (`awaiting`): the
first writes are made, and the pod is bound when everything is ready, or the decision is taken back if that fails or takes too long. Only
that pod waits; meanwhile it keeps its room and devices.

Where others may have been given the same devices at the same time, the pod is bound once it is certain that they were not (`rivals`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.cluster.breaks import Breaks
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import Write
from drayman.placement.claims import without_user
from drayman.placement.decision.placements import Placement, take_back
from drayman.placement.state import ClusterState
from drayman.scheduler.aftermath import find_out, is_bound, learn_holders
from drayman.scheduler.awaiting import (
    Awaited,
    Awaiting,
    WaitingPods,
    awaited_claim,
    awaited_volume_claim,
    awaited_with,
)
from drayman.scheduler.retrying import INTERNAL_ERROR
from drayman.scheduler.rivals import Rivals
from drayman.scheduler.volumes import volume_writes
from drayman.scheduler.writes import bind_write, claim_write, creation_writes, pod_writes

_log: Final = logging.getLogger(__name__)

_GRACE_S: Final = 0.05
"""After a deadline, so that a timer that fires early does not miss it."""
MOST_WRITES: Final = 256
"""Writes of one transaction: those of a round of pods with a claim or two each. Pods with hundreds of claims do not share one."""
CONCURRENT: Final = 32
"""Pods that are bound at the same time where there are no transactions."""


_Work = Callable[[], Coroutine[None, None, None]]


class Listener(Protocol):
    """Is notified of the outcome of decisions."""

    def bound(self, placement: Placement) -> None: ...

    def waiting(self, placement: Placement) -> None:
        """The devices are allocated and the volumes chosen, but they are not ready yet."""

    def failed(self, placement: Placement, why: str, *, overtaken: bool = False) -> None:
        """The decision was taken back. Overtaken: others have what the pod was to get, and the state knows that by now."""

    def is_under_way(self, uid: str) -> bool:
        """Whether the outcome of the decision about a pod is still open."""
        ...

    def settled(self, claims: Iterable[ResourceClaim]) -> None:
        """Writes for these claims are no longer under way."""


class Binder:
    """Writes decisions of one scheduler."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        listener: Listener,
        clock: Callable[[], float],
        binding_timeout_s: float,
        rivals: Rivals | None = None,
    ) -> None:
        """`rivals`: None where the writes of a decision are one transaction."""
        self._client = client
        self._rivals = rivals
        self._allocated: dict[str, Placement] = {}  # to be bound next, by uid of the pod
        self._state = state
        self._listener = listener
        self._clock = clock
        self._timeout_s = binding_timeout_s
        self._waiting = WaitingPods()
        self._to_look_at: dict[str, None] = {}  # by uid: pods for which something may have changed
        self._is_looking = False
        self._slots = asyncio.Semaphore(CONCURRENT)
        self._tasks: set[asyncio.Task[None]] = set()

    async def bind(self, batch: Sequence[Placement]) -> None:
        """Carry out decisions that were made together. In any case, each is bound, waits, or is taken back."""
        await self._survive(batch, lambda: self._carry_out(batch))

    async def _carry_out(self, batch: Sequence[Placement]) -> None:
        groups = _sharing(batch)
        if self._client.transactional:
            await self._together(groups)
            return
        one_by_one = (
            self._survive(group, partial(self._one_at_its_time, group)) for group in groups
        )
        await asyncio.gather(*one_by_one)

    async def _survive(self, batch: Sequence[Placement], work: _Work) -> None:
        """Take decisions back that a bug has left open: their pods must be tried again. Informers will show what was written anyway."""
        try:
            await work()
        except Exception:
            _log.exception("binding failed for %d pods", len(batch))
            for item in batch:
                self._allocated.pop(item.uid, None)
                if self._listener.is_under_way(item.uid) and not self.is_waiting(item.uid):
                    self._undo(item)
                    self._listener.failed(item, INTERNAL_ERROR)

    async def _one_at_its_time(self, group: Sequence[Placement]) -> None:
        async with self._slots:
            await self._together([group])
        allocated = [self._allocated.pop(item.uid) for item in group if item.uid in self._allocated]
        for item in allocated:
            if self._rivals is not None:
                await self._rivals.shown(item)  # meanwhile others have a turn
            async with self._slots:
                await self._bind_ready(item)

    async def _together(self, groups: Sequence[Sequence[Placement]]) -> None:
        refusals: list[tuple[Sequence[Placement], ClusterError]] = []
        bundles = [self._bundle(group, refusals) for group in groups]
        await write_together(self._client, bundles, largest=MOST_WRITES)
        for group, error in refusals:
            for item in group:
                await self._give_up(item, error)

    def _bundle(
        self,
        group: Sequence[Placement],
        refusals: list[tuple[Sequence[Placement], ClusterError]],
    ) -> Bundle:
        return Bundle(
            self._writes(group),
            lambda error: refusals.append((group, error)),
            lambda answers: self._confirm(group, answers),
        )

    def _writes(self, batch: Sequence[Placement]) -> list[Write]:
        """The writes of a batch, those of claims and volumes first."""
        wanted = {claim.metadata.uid: claim for item in batch for claim in item.claims}
        writes: list[Write] = []
        for claim in wanted.values():
            known = self._state.known_claim(claim) or claim
            # Pods of one batch may share a claim: the state after all of them counts.
            write = claim_write(known, self._state.latest_claim(claim))
            if write.parts:
                writes.append(write)
            else:  # an earlier attempt that seemed to fail had done it
                self._state.confirm_claim(known)
        for item in batch:
            for made in item.made:
                writes += creation_writes(made.claim)
            if item.volumes is not None:
                writes += volume_writes(item.volumes)
        for item in batch:
            writes += pod_writes(item)
            if not (item.waits or self._has_rivals(item)):
                writes.append(bind_write(item))
        return writes

    def _confirm(self, batch: Sequence[Placement], results: Sequence[object]) -> None:
        # A claim that is created and then allocated occurs twice: its last version counts.
        last = {c.metadata.uid: c for c in results if isinstance(c, ResourceClaim)}
        written = tuple(last.values())
        by_name = {(c.metadata.namespace, c.metadata.name): c for c in written}
        for item in batch:
            for made in item.made:
                self._state.adopt(made.holder, by_name[made.key])
        done = [item.with_claims_made(by_name) for item in batch]
        for claim in written:
            self._state.confirm_claim(claim)
        for result in results:
            if isinstance(result, PersistentVolume | PersistentVolumeClaim):
                self._state.volumes.confirm(result)
        self._listener.settled([*written, *(claim for item in done for claim in item.claims)])
        for item in done:
            if item.waits:
                self._wait(item)
            elif self._has_rivals(item):
                self._allocated[item.uid] = item
            else:
                self._listener.bound(item)

    def _has_rivals(self, placement: Placement) -> bool:
        """Whether it has to be found out if others have the same devices."""
        has_devices = placement.claims or placement.held or placement.made
        return self._rivals is not None and bool(has_devices)

    async def _give_up(self, placement: Placement, error: ClusterError) -> None:
        if not self._client.transactional and await find_out(self._client, self._state, placement):
            self._listener.settled(placement.claims)
            self._listener.bound(placement)
            return
        overtaken = await learn_holders(self._client, self._state, error)
        self._undo(placement)
        self._listener.failed(placement, str(error), overtaken=overtaken)

    def _undo(self, placement: Placement) -> None:
        take_back(self._state, placement)
        if placement.volumes is not None:
            for awaited in placement.volumes.awaited:  # others may have counted on it
                self.volume_claim_changed(awaited)
        self._listener.settled(placement.claims)

    # Devices and volumes that are not ready yet.

    def _wait(self, placement: Placement) -> None:
        uid, now = placement.uid, self._clock()
        waiting = Awaiting.of(self._state, placement, now, self._timeout_s)
        self._waiting.add(waiting)
        self._listener.waiting(placement)
        for deadline in waiting.deadlines:
            after = max(deadline - now, 0) + _GRACE_S
            asyncio.get_running_loop().call_later(after, self.look_again, uid)
        self.look_again(uid)

    def claim_changed(self, claim: ResourceClaim) -> None:
        """A claim may have become ready."""
        self._look_soon((awaited_claim(claim),))

    def volume_claim_changed(self, claim: PersistentVolumeClaim) -> None:
        """A volume claim may have got its volume."""
        self._look_soon((awaited_volume_claim(claim),))

    def volume_changed(self, volume: PersistentVolume) -> None:
        """A volume may have been bound to its claim, or taken from it."""
        self._look_soon(awaited_with(volume))

    def _look_soon(self, changed: Iterable[Awaited]) -> None:
        """Look at pods again, once for all that changes in the meantime: they may wait for very much, and it takes a look at all of it."""
        for each in changed:
            self._to_look_at.update(dict.fromkeys(self._waiting.that_await(each)))
        if self._to_look_at and not self._is_looking:
            self._is_looking = True
            self._keep(asyncio.create_task(self._look_at_changed()))

    async def _look_at_changed(self) -> None:
        breaks = Breaks()
        try:
            while self._to_look_at:
                changed, self._to_look_at = self._to_look_at, {}
                for uid in changed:
                    await breaks.between()
                    self.look_again(uid)
        finally:
            self._is_looking = False

    def look_again(self, uid: str) -> None:
        """Bind a pod if its devices and volumes are ready, or give up if they will not be."""
        waiting = self._waiting.get(uid)
        if waiting is None:
            return
        is_ready, failure = waiting.outcome(self._state, self._clock())
        if failure:
            self._waiting.pop(uid)
            self._spawn(waiting.placement, lambda: self._unreserve(waiting.placement, failure))
        elif is_ready:
            self._waiting.pop(uid)
            self._spawn(waiting.placement, lambda: self._bind_ready(waiting.placement))

    def pod_gone(self, uid: str) -> None:
        """The pod was deleted, or bound by another scheduler: stop waiting for its devices and volumes."""
        waiting = self._waiting.pop(uid)
        if waiting is not None:
            self._undo(waiting.placement)
            self._listener.failed(waiting.placement, "the pod no longer waits for a node")

    def is_waiting(self, uid: str) -> bool:
        return uid in self._waiting

    async def _bind_ready(self, placement: Placement) -> None:
        try:
            if self._rivals is not None:
                overtaken = await self._rivals.overtook(placement)
                if overtaken:
                    self._undo(placement)
                    self._listener.failed(placement, overtaken, overtaken=True)
                    return
            await self._client.write_many([bind_write(placement)])
        except ClusterError as error:
            if self._client.transactional or not await is_bound(self._client, placement):
                await self._unreserve(placement, str(error))
                return
        self._listener.bound(placement)

    async def _unreserve(self, placement: Placement, why: str) -> None:
        """Remove the pod from its claims. They keep their devices until another attempt frees them."""
        for claim in placement.claims:
            known = self._state.known_claim(claim)
            if known is None:
                continue
            released = without_user(known, placement.pod)
            if released.status != known.status:
                await self._write_claim(known, released)
        self._undo(placement)
        self._listener.failed(placement, why)

    def _spawn(self, placement: Placement, work: _Work) -> None:
        self._keep(asyncio.create_task(self._survive([placement], work)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel everything under way. What is written stays written; another scheduler continues from there."""
        self._waiting.clear()  # so that neither a deadline nor a change of a claim starts anything more
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write_claim(self, known: ResourceClaim, wanted: ResourceClaim) -> None:
        """Give a claim another status. If that fails, the next attempt deals with it."""
        try:
            (written,) = await self._client.write_many([claim_write(known, wanted)])
        except (ConflictError, NotFoundError) as error:
            _log.info("resource claim %s: %s", known.metadata.name, error)
            return
        except ClusterError as error:
            _log.warning("resource claim %s: %s", known.metadata.name, error)
            return
        if isinstance(written, ResourceClaim):
            self._state.confirm_claim(written)


def _sharing(batch: Sequence[Placement]) -> list[list[Placement]]:
    """Split the batch into groups that share no claim: pods of one group can only be bound together."""
    groups: list[list[Placement]] = []
    group_of_claim: dict[str, list[Placement]] = {}
    for item in batch:
        uids = [claim.metadata.uid for claim in item.claims]
        touched = {id(group_of_claim[u]): group_of_claim[u] for u in uids if u in group_of_claim}
        mine, *others = list(touched.values()) or [[]]
        if not mine:
            groups.append(mine)
        newcomers = [*(member for other in others for member in other), item]
        mine += newcomers
        for member in newcomers:
            group_of_claim.update((claim.metadata.uid, mine) for claim in member.claims)
        if others:
            groups = [group for group in groups if all(group is not other for other in others)]
    return groups

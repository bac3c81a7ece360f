"""Carries out a proposal: step by step, each after a look at whether the rest still works in the cluster as it is.

What is to be given to those that wait is kept for them from the beginning (`keeping`). Pods are evicted, so that disruption budgets have
their say, and the next step waits until others are there in their place and have nodes. Those may be other nodes than were foreseen: what
counts is that the rest of the proposal works. Where it does not, it ends, and nothing more is moved.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.meta import controller_of
from drayman.api.pods import is_finished, is_leaving, used_claims
from drayman.api.resource import ResourceClaim
from drayman.cli.defrag.keeping import Keeping
from drayman.cluster import Client
from drayman.cluster.errors import ConflictError, NotFoundError, TooManyRequestsError
from drayman.cluster.options import DeleteOptions
from drayman.questions.defrag import defrag, read_for_moves
from drayman.questions.followed_world import FollowedWorld, followed
from drayman.simulate.moving.remaining import Changed, Rest, remaining
from drayman.simulate.moving.report import Application, DefragReport, Room
from drayman.simulate.moving.sequence import Step

TIMEOUT_S: Final = 300.0
"""How long pods may take to be replaced, unless told otherwise."""
_RENEWAL_S: Final = 20.0
"""How often it is seen to that room stays kept, while something is awaited."""
_GATHER_S: Final = 0.02
"""Changes come in groups: those of a pod, its claims and its owner."""
_BUDGET_PAUSE_S: Final = 1.0
"""Between two attempts to evict a pod whose budget does not allow it yet."""


async def applied(
    client: Client, namespace: str, *, at_once: int, timeout_s: float = TIMEOUT_S
) -> DefragReport:
    """Make room for everything that waits. Raises MayNotListError, QuestionError and ClusterError."""
    world = await read_for_moves(client, None, namespace)
    report = defrag(world, None, namespace)
    async with followed(client, world, namespace) as now:
        applying = Applying(client, now, at_once=at_once, timeout_s=timeout_s)
        return replace(report, applied=await applying.carry_out(report.rooms))


class _Stopped(Exception):
    """It goes no further; the message says why."""


class Applying:
    """One proposal that is carried out."""

    def __init__(
        self,
        client: Client,
        world: FollowedWorld,
        *,
        at_once: int,
        timeout_s: float,
        say: Callable[[str], None] = lambda _: None,
        stopping: asyncio.Event | None = None,
    ) -> None:
        """`at_once`: how many pods are moved at a time; `timeout_s`: how long to wait for them; `stopping`: somebody wants it to end."""
        self._client = client
        self._world = world
        self._at_once = at_once
        self._timeout_s = timeout_s
        self._say = say
        self._stopping = stopping or asyncio.Event()
        self._keeping = Keeping(client, time.time)
        self._moved = 0
        self._known: set[str] = set()  # pods that were there before, by uid

    async def carry_out(self, rooms: Sequence[Room]) -> Application:
        """Move the pods of these rooms, and wait until what waits has its place. Raises ClusterError."""
        rooms = [room for room in rooms if room.fits and room.steps]
        stopped = ""
        try:
            while True:
                rest = self._rest(rooms)
                await self._keeping.keep(rest.moves)
                if not rest.next:
                    break
                await self._make(rest.next, rest)
            await self._until_started(rooms)
        except _Stopped as reason:
            stopped = str(reason)
        finally:
            await self._keeping.end()
        waiting = self._waiting(rooms)
        started = tuple(room.name for room in rooms if room.name not in waiting)
        return Application(moved=self._moved, started=started, stopped=stopped)

    def _rest(self, rooms: Sequence[Room]) -> Rest:
        if self._stopping.is_set():
            raise _Stopped("interrupted")
        rest = remaining(self._world.now(), rooms, self._at_once, self._keeping.promised)
        if isinstance(rest, Changed):
            raise _Stopped(f"the cluster has changed: {rest.reason}")
        return rest

    async def _make(self, steps: Sequence[Step], rest: Rest) -> None:
        """Evict the pods of some steps, and wait until others have come in their place."""
        pods = [pod for step in steps for pod in step.mover.pods]
        self._known |= {pod.metadata.uid for pod in self._world.pods()}
        evicted = await asyncio.gather(*(self._evict(pod) for pod in pods))
        gone = [pod for pod, was_evicted in zip(pods, evicted, strict=True) if was_evicted]
        claims = [claim for step in steps for claim in step.mover.claims]
        what = f"others in place of {_names(gone)}"
        await self._until(lambda: self._are_replaced(gone, claims), what, rest)
        self._moved += len(gone)

    async def _evict(self, pod: Pod) -> bool:
        """Returns whether it was there to be evicted."""
        metadata = pod.metadata
        options = DeleteOptions(uid=metadata.uid)
        ends = time.monotonic() + self._timeout_s
        while True:
            try:
                await self._client.evict(metadata.name, metadata.namespace, options=options)
            except (NotFoundError, ConflictError):
                return False
            except TooManyRequestsError as error:
                if time.monotonic() >= ends or self._stopping.is_set():
                    name = f"{metadata.namespace}/{metadata.name}"
                    raise _Stopped(f"pod {name} may not be evicted: {error}") from error
                await asyncio.sleep(_BUDGET_PAUSE_S)
            else:
                self._say(f"pod/{metadata.name} evicted from node {pod.spec.node_name}")
                return True

    def _are_replaced(self, gone: Sequence[Pod], claims: Sequence[ResourceClaim]) -> bool:
        """Whether pods are gone, their claims have given back their devices, and others have a place."""
        if any(self._holds(claim) for claim in claims):
            return False
        uids = {pod.metadata.uid for pod in gone}
        missing = Counter(map(_owner, gone))
        come: Counter[str] = Counter()
        for pod in self._world.pods():
            if pod.metadata.uid in uids and not is_finished(pod):
                return False  # it has yet to go
            if pod.metadata.uid not in self._known and self._has_place(pod):
                come[_owner(pod)] += 1
        return all(come[owner] >= number for owner, number in missing.items())

    def _holds(self, before: ResourceClaim) -> bool:
        """Whether a claim still has the devices that it had."""
        claim = self._world.claim(before.metadata.namespace, before.metadata.name)
        if claim is None or claim.metadata.uid != before.metadata.uid:
            return False
        return claim.status.results == before.status.results

    def _has_place(self, pod: Pod) -> bool:
        """Whether a pod has its node and devices. The claims of a pod are followed apart from it, and may be seen later."""
        if not pod.spec.node_name:
            return False
        for name in used_claims(pod):
            claim = self._world.claim(pod.metadata.namespace, name)
            if claim is None or claim.status.allocation is None:
                return False
        return True

    async def _until_started(self, rooms: Sequence[Room]) -> None:
        """Wait until everything for which room was made has it."""
        waiting = self._waiting(rooms)
        if waiting:
            what = f"{waiting[0]} to get its room"
            await self._until(lambda: not self._waiting(rooms), what, self._rest(rooms))

    def _waiting(self, rooms: Sequence[Room]) -> list[str]:
        pods = {pod.metadata.uid: pod for pod in self._world.pods()}
        found = []
        for room in rooms:
            own = [pods.get(each.uid) for each in room.pods]
            if any(pod is None or is_leaving(pod) or not self._has_place(pod) for pod in own):
                found.append(room.name)
        return found

    async def _until(self, is_so: Callable[[], bool], what: str, rest: Rest) -> None:
        """Wait for something, and see to it that room stays kept meanwhile."""
        stopping = asyncio.create_task(self._stopping.wait())
        ends = time.monotonic() + self._timeout_s
        renewal = time.monotonic() + _RENEWAL_S
        try:
            while not is_so():
                left = ends - time.monotonic()
                if left <= 0:
                    raise _Stopped(f"waited {self._timeout_s:g} s in vain for {what}")
                changing = asyncio.create_task(self._world.change())
                await asyncio.wait(
                    (changing, stopping),
                    timeout=min(left, _RENEWAL_S),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                changing.cancel()
                with suppress(asyncio.CancelledError):
                    await changing
                if stopping.done():
                    raise _Stopped(f"interrupted while waiting for {what}")
                if time.monotonic() >= renewal:
                    renewal = time.monotonic() + _RENEWAL_S
                    await self._keeping.keep(
                        each for each in rest.moves if not self._is_placed(each.unit.pods)
                    )
                await asyncio.sleep(_GATHER_S)
        finally:
            stopping.cancel()

    def _is_placed(self, pods: Sequence[Pod]) -> bool:
        now = {pod.metadata.uid: pod for pod in self._world.pods()}
        return all((p := now.get(pod.metadata.uid)) is None or p.spec.node_name for pod in pods)


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return "" if owner is None else owner.uid


def _names(pods: Sequence[Pod]) -> str:
    first = pods[0].metadata.name if pods else "pods that are gone"
    return first if len(pods) <= 1 else f"{first} and {len(pods) - 1} more"

"""What the scheduler does for a pod that fits nowhere: it frees devices that a claim holds in the wrong place.

A claim that was allocated for a pod but is not in use need not stay where it is; nor need one that is reserved for the pod's group while
none of its pods has a node. If the pod cannot run there, the claim loses its devices and is allocated again in the next attempt. This is
done one claim at a time, since the change puts the pod back in the queue. A claim for extended resources that an attempt left behind is
removed, since the next attempt makes its own.

A claim that has a device which another claim has as well (`placement.rivals`) is deallocated as soon as other schedulers cannot take the
device for free because of that (`rivals`).

A claim that is being deleted stays as long as it is reserved. It may be reserved for a pod without a node, if the scheduler ended before it
bound the pod; the pod can no longer begin to use the claim, and nothing else would remove the reservation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Final

import msgspec

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError, StatusError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.placement.claims import (
    FINALIZER,
    ClaimLack,
    ClaimsNotReadyError,
    consumer_of,
    without_devices,
    without_user,
)
from drayman.placement.decision.outcomes import Lacking, NoNode, NoPlacement
from drayman.placement.demand import HELD_ELSEWHERE, Demand
from drayman.placement.placing import NotFound
from drayman.placement.rivals import contested, held_twice
from drayman.placement.state import ClusterState
from drayman.scheduler.rivals import Rivals
from drayman.scheduler.writes import claim_write

_log: Final = logging.getLogger(__name__)
_PAUSE_S: Final = 1.0
_SERVER_ERRORS: Final = 500
"""Statuses from here on say nothing about the request."""


class Freeing:
    """Frees what blocks pods that were refused."""

    def __init__(self, client: Client, state: ClusterState, rivals: Rivals | None = None) -> None:
        """`rivals`: None where the server does not let two claims have one device."""
        self._client = client
        self._state = state
        self._rivals = rivals
        self._waiting: set[str] = set()
        """The uids of claims that are to be deallocated when that is safe."""

    def plan(self, pod: Pod, why: NoPlacement | None) -> Coroutine[None, None, None] | None:
        """What can be done for a pod that was refused; None if nothing can."""
        match why:
            case Lacking(error):
                claim = self._leaving(pod, error)
                if claim is not None:
                    return _until_answered(partial(self._let_go, pod), claim)
                if error.lack is ClaimLack.CONTESTED:
                    return self._yielding(pod, error)
            case NoNode(demand, not_found):
                claim = self.movable(demand, not_found)
                if claim is not None:
                    return _until_answered(self._deallocate, claim)
                if demand.stale_extended is not None:
                    return _until_answered(self._remove, demand.stale_extended)
        return None

    def _leaving(self, pod: Pod, error: ClaimsNotReadyError) -> ResourceClaim | None:
        """A claim that is being deleted but is reserved for the pod, which has no node."""
        if error.lack is not ClaimLack.DELETING:
            return None
        claim = self._state.find_claim(pod.metadata.namespace, error.name)
        if claim is None or self._state.is_under_way(claim):
            return None
        return claim if consumer_of(pod) in claim.status.reserved_for else None

    def _yielding(self, pod: Pod, error: ClaimsNotReadyError) -> Coroutine[None, None, None] | None:
        claim = self._state.find_claim(pod.metadata.namespace, error.name)
        if claim is None or self._rivals is None or claim.metadata.uid in self._waiting:
            return None
        self._waiting.add(claim.metadata.uid)
        return self._until_released(self._rivals, pod, claim)

    async def _until_released(self, rivals: Rivals, pod: Pod, claim: ResourceClaim) -> None:
        why = contested(self._state, claim)
        try:
            await rivals.until_safe(claim)
            await _until_answered(partial(rivals.take_back, pod=pod, why=why), claim)
        finally:
            self._waiting.discard(claim.metadata.uid)

    def movable(self, demand: Demand, not_found: NotFound) -> ResourceClaim | None:
        """A claim that keeps the pod from some node and that no other pod uses."""
        blocked = [name for name, v in not_found.verdicts.items() if v is HELD_ELSEWHERE]
        for claim in demand.held:
            if not self._state.gangs.uses_alone(demand.pod, claim):
                continue
            if self._state.is_under_way(claim) or held_twice(self._state, claim):
                continue
            for name in blocked:
                node = self._state.nodes.get(name)
                if node is not None and claim in demand.unavailable_on(node.node):
                    return claim
        return None

    async def _deallocate(self, claim: ResourceClaim) -> None:
        known = self._state.known_claim(claim)
        if known is not None and known.status == claim.status:
            self._state.confirm_claim(await self._write(known, without_devices(known)))

    async def _let_go(self, pod: Pod, claim: ResourceClaim) -> None:
        known = self._state.known_claim(claim)
        if known is None or consumer_of(pod) not in known.status.reserved_for:
            return
        released = without_user(known, pod)
        if not released.status.reserved_for:
            if self._rivals is not None:
                await self._rivals.until_safe(known)
            released = without_devices(known)
        self._state.confirm_claim(await self._write(known, released))

    async def _remove(self, claim: ResourceClaim) -> None:
        if self._rivals is not None:
            await self._rivals.until_safe(claim)
        # The devices first: a claim that has some must be protected.
        claim = await self._write(claim, without_devices(claim))
        kept = tuple(name for name in claim.metadata.finalizers if name != FINALIZER)
        metadata = msgspec.structs.replace(claim.metadata, finalizers=kept)
        claim = await self._write(claim, msgspec.structs.replace(claim, metadata=metadata))
        await self._client.delete(
            RESOURCE_CLAIMS,
            claim.metadata.name,
            claim.metadata.namespace,
            options=DeleteOptions(uid=claim.metadata.uid),
        )

    async def _write(self, known: ResourceClaim, wanted: ResourceClaim) -> ResourceClaim:
        """The claim after the write. An attempt may have ended before the claim had anything to free."""
        write = claim_write(known, wanted)
        if not write.parts:
            return known
        (written,) = await self._client.write_many([write])
        assert isinstance(written, ResourceClaim)
        return written


async def _until_answered(
    work: Callable[[ResourceClaim], Awaitable[None]], claim: ResourceClaim
) -> None:
    """Asks again if the server gives no answer: nothing else would put the pod back in the queue."""
    while True:
        try:
            await work(claim)
        except (NotFoundError, ConflictError) as error:
            # The claim was changed first by another client, and that change brings the pod back.
            _log.info("resource claim %s: %s", claim.metadata.name, error)
        except ClusterError as error:
            _log.warning("resource claim %s: %s", claim.metadata.name, error)
            if not isinstance(error, StatusError) or error.code >= _SERVER_ERRORS:
                await asyncio.sleep(_PAUSE_S)
                continue
        return

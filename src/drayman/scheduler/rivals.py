"""On a server that lets two claims have the same device: no pod of ours is bound with one, and what is so already is reported.

An allocation is written first, and the pod is bound only when the watch of the claims has shown that write, and so every allocation that
came before it. If one of those is for the same device, ours is taken back: `placement.rivals` has the rule, by which another Drayman
decides in the same way. Other schedulers do not look back. Theirs wins where it is seen in time.

A server that refuses the second allocation makes this needless, but does not say that it does. It costs the time that a write takes to be
shown by the watch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Informer, Notice
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.inventory.ledger import holder_of
from drayman.placement.claims import resource_of, runs_with, without_devices
from drayman.placement.decision.placements import Placement
from drayman.placement.rivals import Clash, clash, gives_way
from drayman.placement.state import ClusterState
from drayman.scheduler.tally import Tally
from drayman.scheduler.writes import claim_write

_log: Final = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a device may have two holders before that is reported: one of them may be about to give way."""
TAKEN_BACK: Final = "DeviceTakenBack"
HELD_TWICE: Final = "DeviceHeldTwice"


class Rivals:
    """Looks at what others hold, for one scheduler."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        claims: Informer[ResourceClaim],
        pods: Informer[Pod],
        recorder: EventRecorder,
        tally: Tally,
    ) -> None:
        self._client = client
        self._state = state
        self._claims = claims
        self._pods = pods.cache
        self._recorder = recorder
        self._tally = tally
        self._suspected: dict[str, asyncio.TimerHandle] = {}  # by holder
        self._reported: dict[str, Clash] = {}  # by holder

    async def shown(self, placement: Placement) -> None:
        """Returns when everything that was allocated before the claims of a decision is known."""
        for claim in self._known(placement.claims):
            await self._claims.wait_seen(claim.metadata.resource_version)

    async def overtook(self, placement: Placement) -> str:
        """Why a pod cannot be bound to its node with what its claims have, in words; empty if it can. Raises ClusterError.

        Claims that have to give way have given back their devices by then.
        """
        await self.shown(placement)
        reasons = [
            await self._take_back(known, found, placement.pod)
            for known in self._known((*placement.claims, *placement.held))
            if (found := gives_way(self._state, known, self._is_in_use)) is not None
        ]
        return "; ".join(reasons)

    def notice(self, notice: Notice[ResourceClaim]) -> None:
        """Look at a claim that has changed."""
        claim = notice.object
        holder = holder_of(claim)
        if notice.type == "DELETED" or claim.status.allocation is None:
            self._reported.pop(holder, None)
        elif holder not in self._suspected and clash(self._state, claim) is not None:
            loop = asyncio.get_running_loop()
            self._suspected[holder] = loop.call_later(PATIENCE_S, self._judge, claim)

    def stop(self) -> None:
        for timer in self._suspected.values():
            timer.cancel()
        self._suspected.clear()

    def _known(self, claims: Iterable[ResourceClaim]) -> Iterator[ResourceClaim]:
        for claim in claims:
            known = self._state.known_claim(claim)
            if known is not None and known.status.allocation is not None:
                yield known

    async def _take_back(self, claim: ResourceClaim, found: Clash, pod: Pod) -> str:
        (written,) = await self._client.write_many([claim_write(claim, without_devices(claim))])
        assert isinstance(written, ResourceClaim)
        self._state.confirm_claim(written)
        self._tally.taken_back += 1
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        why = f"{found.what} is held by {self._named(found.others)} too, which was first"
        note = f"claim {name} has given back its devices: {why}"
        _log.warning("%s", note)
        for about in (Reference.to(PODS, pod), Reference.to(RESOURCE_CLAIMS, claim)):
            self._recorder.record(about, "Warning", TAKEN_BACK, note, "Scheduling")
        return note

    def _judge(self, claim: ResourceClaim) -> None:
        """Report what is still held twice, by pods on nodes or by claims that are not ours to take back."""
        holder = holder_of(claim)
        self._suspected.pop(holder, None)
        known = self._state.known_claim(claim)
        found = None if known is None else self._lasting(known)
        if known is None or found is None or self._reported.get(holder) == found:
            return
        self._reported[holder] = found
        self._tally.held_twice += 1
        name = f"{known.metadata.namespace}/{known.metadata.name}"
        note = f"{found.what} is held by claim {name} and by {self._named(found.others)}"
        _log.error("%s", note)
        about = [Reference.to(PODS, pod) for pod in self._users(known)]
        for each in (*about, Reference.to(RESOURCE_CLAIMS, known)):
            self._recorder.record(each, "Warning", HELD_TWICE, note, "Scheduling")

    def _lasting(self, claim: ResourceClaim) -> Clash | None:
        """What others hold too by what the server shows. A decision of ours that is not written yet will be refused, or give way."""
        if clash(self._state, claim) is None:  # nearly always
            return None
        shown = {holder_of(each) for each in self._state.allocated_claims()}
        shown |= {users.claim.holder for users in self._state.lost_claims()}
        return clash(self._state, claim, shown)

    def _named(self, holders: Iterable[str]) -> str:
        wanted = set(holders)
        named = [
            f"claim {claim.metadata.namespace}/{claim.metadata.name}"
            for claim in self._state.allocated_claims()
            if holder_of(claim) in wanted
        ]
        lost = [users.claim for h in wanted if (users := self._state.lost_claim(h)) is not None]
        named += [f"a pod whose claim {c.namespace}/{c.name} was {c.how}" for c in lost]
        return ", ".join(sorted(named)) or "another decision"

    def _is_in_use(self, claim: ResourceClaim) -> bool:
        return any(True for _ in self._users(claim))

    def _users(self, claim: ResourceClaim) -> Iterator[Pod]:
        """The pods with a node that a claim is reserved for, as the server shows them."""
        namespace = claim.metadata.namespace
        for consumer in claim.status.reserved_for:
            if resource_of(consumer) == "pods":
                found = self._pods.get(consumer.name, namespace)
                pods: Iterable[Pod] = () if found is None else (found,)
            else:
                pods = self._pods
            yield from (pod for pod in pods if runs_with(pod, namespace, consumer))

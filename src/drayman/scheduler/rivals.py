"""Conflicts with other schedulers on a server that lets two claims have the same device.

An allocation is written first. The pod is bound only when the watch of the claims has shown that write, and with it all earlier
allocations. If one of those is for the same device, `placement.rivals` determines which claim yields, and another Drayman determines the
same. Other schedulers do not check again: their claim wins where it is seen in time.

The yielding claim is not deallocated at once. kube-scheduler keeps the allocated devices in a set and removes a device when any claim that
holds it is deallocated: it would give the winner's device to a third claim. So the device is shielded first, by a DeviceTaintRule that
keeps schedulers from allocating it, for as long as any claim holds it. The yielding claim is deallocated when the rule has existed for a
few seconds. Where the server has no such rules, the claim keeps the device and its pod waits until no other claim holds it.

A server that refuses the second allocation makes all of this unnecessary, but does not announce that it does. It costs the time that the
watch takes to show a write.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import DeviceTaintRule, ResourceClaim
from drayman.api.struct import Json
from drayman.cluster.background import in_background
from drayman.cluster.client import Client
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ForbiddenError,
    NotFoundError,
)
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Informer, Notice
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.inventory.identity import DeviceId
from drayman.inventory.ledger import holder_of, whole_devices
from drayman.placement.claims import resource_of, runs_with, without_devices
from drayman.placement.decision.placements import Placement
from drayman.placement.rivals import Clash, clash, held_twice, named_holders, yields
from drayman.placement.state import ClusterState
from drayman.scheduler.tally import Tally
from drayman.scheduler.writes import claim_write

_log: Final = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a device may have two holders before that is reported: one of them may be about to yield."""
SHIELD: Final = "drayman.dev/held-twice"
"""The key of the taint that shields a device, and the beginning of the names of its rules."""
SHIELDED_AFTER_S: Final = 5.0
"""How long a rule must have existed before other schedulers are taken to know it. Watches are far faster."""
_GRACE_S: Final = 0.05
"""After a moment, so that a timer that fires early does not miss it."""
_AGAIN_S: Final = 1.0
"""Pause after a write of a rule that failed."""
TAKEN_BACK: Final = "DeviceTakenBack"
HELD_TWICE: Final = "DeviceHeldTwice"


class Rivals:
    """Detects and resolves conflicts about devices, for one scheduler."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        claims: Informer[ResourceClaim],
        pods: Informer[Pod],
        rules: Informer[DeviceTaintRule],
        recorder: EventRecorder,
        tally: Tally,
        shielded_after_s: float = SHIELDED_AFTER_S,
    ) -> None:
        self._client = client
        self._state = state
        self._claims = claims
        self._pods = pods.cache
        self._rules = rules
        self._recorder = recorder
        self._tally = tally
        self._shielded_after_s = shielded_after_s
        self._suspected: dict[str, asyncio.TimerHandle] = {}  # by holder
        self._reported: dict[str, Clash] = {}  # by holder
        self._shields: dict[DeviceId, float] = {}  # when other schedulers know the rule
        self._writing: dict[DeviceId, asyncio.Task[None]] = {}
        self._may_shield = True
        self._has_begun = False
        self._changed = asyncio.Event()

    async def shown(self, placement: Placement) -> None:
        """Returns when everything that was allocated before the claims of a decision is known."""
        for claim in self._known(placement.claims):
            await self._claims.wait_seen(claim.metadata.resource_version)

    async def overtook(self, placement: Placement) -> str:
        """Why a pod cannot be bound to its node with what its claims have, in words; empty if it can. Raises ClusterError.

        Yielding claims whose devices no other claim has, but only parts of the same capacity or counter, are deallocated by then. The
        others are when that is safe: the next decision about the pod waits for it.
        """
        await self.shown(placement)
        reasons = []
        for known in self._known((*placement.claims, *placement.held)):
            found = yields(self._state, known, self._is_in_use)
            if found is None:
                continue
            named = ", ".join(named_holders(self._state, found.others))
            why = f"{found.what} is held by {named} too, which was first"
            if not held_twice(self._state, known):
                await self.take_back(known, placement.pod, why)
            reasons.append(why)
        return "; ".join(reasons)

    async def until_safe(self, claim: ResourceClaim) -> None:
        """Returns when the deallocation of a claim makes no scheduler give the device of another claim to a third one."""
        while True:
            known = self._state.known_claim(claim)
            if known is None or all(map(self._is_shielded, held_twice(self._state, known))):
                return
            self._changed.clear()
            await self._changed.wait()

    async def take_back(self, claim: ResourceClaim, pod: Pod, why: str) -> None:
        """Deallocate a claim that no pod on a node uses. Raises ClusterError."""
        known = self._state.known_claim(claim)
        if known is None or known.status.allocation is None or self._is_in_use(known):
            return
        (written,) = await self._client.write_many([claim_write(known, without_devices(known))])
        assert isinstance(written, ResourceClaim)
        await self._claims.wait_seen(written.metadata.resource_version)  # which wakes its pods
        self._tally.taken_back += 1
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        note = f"claim {name} has released its devices: {why}"
        _log.warning("%s", note)
        for about in (Reference.to(PODS, pod), Reference.to(RESOURCE_CLAIMS, claim)):
            self._recorder.record(about, "Warning", TAKEN_BACK, note, "Scheduling")

    def notice(self, notice: Notice[ResourceClaim]) -> None:
        """Examine a claim that has changed."""
        claim = notice.object
        # The last state of a deleted claim need not show the devices that it had.
        for device in {*whole_devices(claim), *self._shields}:
            self._look_at(device)
        self._changed.set()
        holder = holder_of(claim)
        if notice.type == "DELETED" or claim.status.allocation is None:
            self._reported.pop(holder, None)
        elif holder not in self._suspected and clash(self._state, claim) is not None:
            loop = asyncio.get_running_loop()
            self._suspected[holder] = loop.call_later(PATIENCE_S, self._judge, claim)

    def rule_notice(self, notice: Notice[DeviceTaintRule]) -> None:
        """Examine a taint rule that has changed."""
        rule = notice.object
        selector = rule.spec.device_selector
        if rule.spec.taint.key != SHIELD or selector is None:
            return
        device = DeviceId(selector.driver or "", selector.pool or "", selector.device or "")
        if notice.type == "DELETED":
            self._shields.pop(device, None)
        else:
            self._is_shown(device)
        self._look_at(device)

    def begin(self) -> None:
        """Write rules from now on. Before all claims have been shown, devices seem to have no holders."""
        self._has_begun = True
        held = (
            device for claim in self._state.allocated_claims() for device in whole_devices(claim)
        )
        for device in {*self._shields, *held}:
            self._look_at(device)

    async def stop(self) -> None:
        for timer in self._suspected.values():
            timer.cancel()
        self._suspected.clear()
        writing = tuple(self._writing.values())
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)

    def _is_shielded(self, device: DeviceId) -> bool:
        known_at = self._shields.get(device)
        return known_at is not None and known_at <= asyncio.get_running_loop().time()

    def _look_at(self, device: DeviceId) -> None:
        """Shield a device that two claims hold, or held until one of them released it; until none holds it."""
        if device not in self._shields and len(self._state.ledger.holders_of(device)) < 2:
            return  # nearly always
        if self._has_begun and device not in self._writing and self._is_wrong(device):
            name = f"the shield of device {device}"
            task = self._writing[device] = in_background(self._correct(device), name, _log)
            task.add_done_callback(lambda _: self._writing.pop(device, None))

    def _is_wrong(self, device: DeviceId) -> bool:
        """Whether a device lacks its shield, or has one that it no longer needs."""
        claims = self._state.claims_with(device)
        if device in self._shields:
            return not claims
        return len(claims) > 1 and self._may_shield and not self._rules.is_absent

    async def _correct(self, device: DeviceId) -> None:
        while self._is_wrong(device):
            try:
                if device in self._shields:
                    await self._unshield(device)
                else:
                    await self._shield(device)
            except (NotFoundError, ForbiddenError) as error:
                self._may_shield = False
                _log.warning("devices that two claims hold cannot be shielded: %s", error)
            except ClusterError as error:
                _log.warning("the shield of device %s: %s", device, error)
                await asyncio.sleep(_AGAIN_S)

    async def _shield(self, device: DeviceId) -> None:
        resource = self._rules.resource  # in the version that the server has
        rule: dict[str, Json] = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": _rule_name(device)},
            "spec": {
                "deviceSelector": device._asdict(),
                "taint": {"key": SHIELD, "effect": "NoSchedule"},
            },
        }
        with suppress(AlreadyExistsError):  # of another scheduler
            await self._client.create(resource.as_values(), rule)
        self._is_shown(device)

    async def _unshield(self, device: DeviceId) -> None:
        with suppress(NotFoundError):  # another scheduler was faster
            await self._client.delete(self._rules.resource, _rule_name(device))
        self._shields.pop(device, None)

    def _is_shown(self, device: DeviceId) -> None:
        if device not in self._shields:
            loop = asyncio.get_running_loop()
            self._shields[device] = loop.time() + self._shielded_after_s
            loop.call_later(self._shielded_after_s + _GRACE_S, self._changed.set)

    def _known(self, claims: Iterable[ResourceClaim]) -> Iterator[ResourceClaim]:
        for claim in claims:
            known = self._state.known_claim(claim)
            if known is not None and known.status.allocation is not None:
                yield known

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
        others = ", ".join(named_holders(self._state, found.others))
        note = f"{found.what} is held by claim {name} and by {others}"
        _log.error("%s", note)
        about = [Reference.to(PODS, pod) for pod in self._users(known)]
        for each in (*about, Reference.to(RESOURCE_CLAIMS, known)):
            self._recorder.record(each, "Warning", HELD_TWICE, note, "Scheduling")

    def _lasting(self, claim: ResourceClaim) -> Clash | None:
        """The lasting conflict of a claim, by what the server shows. A decision that is not written yet will be refused, or yields."""
        if clash(self._state, claim) is None:  # nearly always
            return None
        shown = {holder_of(each) for each in self._state.allocated_claims()}
        shown |= {users.claim.holder for users in self._state.lost_claims()}
        return clash(self._state, claim, shown)

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


def _rule_name(device: DeviceId) -> str:
    """The name of the rule that shields a device: the same for all schedulers."""
    digest = hashlib.sha256(str(device).encode()).hexdigest()[:16]
    return f"{SHIELD.replace('/', '-')}-{digest}"

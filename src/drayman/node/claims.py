"""Which claims are prepared on a node, and for which pods: the rules that real and simulated nodes share.

A claim is prepared for its first pod, and taken down when its last one has ended. It is held, and written down where that matters, before a
driver is asked, so that whoever comes after a crash knows every device that a driver may have prepared. Each driver gets one call for all
claims of a pod. Where one fails, what the others have prepared stays so, for the next attempt.

What differs is passed in: where claims are read, who the drivers are, and whether anything outlives the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.claim_generation import is_made_for
from drayman.api.core import Pod
from drayman.api.pods import entry_claims, used_claims
from drayman.api.resource import ResourceClaim
from drayman.node.preparing import NotRegisteredError, Preparer
from drayman.placement.claims import is_reserved_for
from drayman.plugins.errors import CallError, NoAnswerError
from drayman.plugins.model import ClaimRef, Failed, ReadyDevice


class ClaimsError(Exception):
    """Claims cannot be prepared or taken down. The message is for the pod's owner."""


class HeldDevice(Struct, frozen=True):
    """A device that is ready for containers."""

    driver: str
    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()


class Held(Struct, frozen=True):
    """A claim that drivers have prepared, or may have."""

    namespace: str
    name: str
    uid: str
    drivers: tuple[str, ...]
    pods: tuple[str, ...]
    devices: tuple[HeldDevice, ...] = ()
    """Those that are ready; none before drivers have said so."""

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(self.namespace, self.name, self.uid)


Devices = Mapping[str, tuple[ReadyDevice, ...]]
"""The devices of a pod's claims, by the name of the claim."""


class ClaimReader(Protocol):
    """Where claims are read."""

    async def read(self, namespace: str, names: Sequence[str]) -> Sequence[ResourceClaim | None]:
        """One for each name; None where there is none. Raises ClaimsError if that cannot be told."""


class ClaimRecords(Protocol):
    """What outlives the process."""

    def read(self) -> Iterable[Held]:
        """What an earlier process held."""

    def changed(self) -> None:
        """Other claims are held, or for other pods."""

    async def save(self, held: Mapping[str, Held]) -> None:
        """Returns when all changes so far are safe."""


@dataclass(slots=True)
class _Turn:
    """A claim that somebody works on."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    """Who has the lock, and who waits for it."""


class NodeClaims:
    """The claims of a node, or of all nodes that one process simulates."""

    def __init__(self, records: ClaimRecords, reader: ClaimReader, preparer: Preparer) -> None:
        """Raises what reading the records raises."""
        self._records = records
        self._reader = reader
        self._preparer = preparer
        self._held: dict[str, Held] = {}
        self._by_pod: dict[str, dict[str, None]] = {}
        """Uids of claims by that of the pod, in the order in which they were held."""
        self._turns: dict[str, _Turn] = {}
        for held in records.read():
            self._put(held)

    @property
    def held(self) -> tuple[Held, ...]:
        return tuple(self._held.values())

    def of_pod(self, pod: str) -> list[Held]:
        """What is prepared for a pod, or may be."""
        return [self._held[uid] for uid in self._by_pod.get(pod, ())]

    def pods_of(self, claim: str) -> tuple[str, ...]:
        """The pods for which a claim is held."""
        held = self._held.get(claim)
        return () if held is None else held.pods

    async def prepare(self, pod: Pod) -> Devices:
        """Have all claims of a pod prepared. Raises ClaimsError."""
        claims = await self._read_claims(pod)
        if not claims:
            return {}
        uids = [claim.metadata.uid for claim in claims]
        await self._lock(uids)
        try:
            for claim in claims:
                self._hold(claim, pod.metadata.uid)
            await self._records.save(self._held)
            devices = await self._call(claims)
            await self._records.save(self._held)
            return devices
        finally:
            self._unlock(uids)

    async def unprepare(self, pod: str) -> None:
        """A pod has ended: take down its claims, except those that others still use. Raises ClaimsError."""
        if pod not in self._by_pod:
            return
        uids = [held.uid for held in self.of_pod(pod)]
        await self._lock(uids)
        try:
            last = []
            for held in self.of_pod(pod):
                others = tuple(user for user in held.pods if user != pod)
                if others:
                    self._remove(held)
                    self._put(replace(held, pods=others))
                    self._records.changed()
                else:
                    last.append(held)
            await self._take_down(last)
            await self._records.save(self._held)
        finally:
            self._unlock(uids)

    async def _read_claims(self, pod: Pod) -> list[ResourceClaim]:
        generated = set()
        for entry, name in entry_claims(pod):
            if name is None:
                raise ClaimsError(f"the claim for {entry.name!r} has not been created yet")
            if not entry.resource_claim_name:
                generated.add(name)
        names = used_claims(pod)
        if not names:
            return []
        found = await self._reader.read(pod.metadata.namespace, names)
        claims: dict[str, ResourceClaim] = {}
        for name, claim in zip(names, found, strict=True):
            problem = _obstacle(claim, pod, is_generated=name in generated)
            if claim is None or problem:
                raise ClaimsError(f"claim {name} {problem}")
            claims[claim.metadata.uid] = claim
        return list(claims.values())

    def _hold(self, claim: ResourceClaim, pod: str) -> None:
        meta = claim.metadata
        known = self._held.get(meta.uid)
        drivers, pods, devices = (
            (known.drivers, known.pods, known.devices) if known is not None else ((), (), ())
        )
        # A claim that was allocated anew may have left a driver; that one still has to take it down.
        held = Held(
            meta.namespace,
            meta.name,
            meta.uid,
            tuple(dict.fromkeys((*drivers, *_drivers_of(claim)))),
            tuple(dict.fromkeys((*pods, pod))),
            devices,
        )
        if held != known:
            self._put(held)
            self._records.changed()

    async def _call(self, claims: Sequence[ResourceClaim]) -> Devices:
        wanted: dict[str, list[ClaimRef]] = {}
        for claim in claims:
            for driver in _drivers_of(claim):
                wanted.setdefault(driver, []).append(self._held[claim.metadata.uid].ref)
        names = {claim.metadata.uid: claim.metadata.name for claim in claims}
        devices: dict[str, tuple[ReadyDevice, ...]] = dict.fromkeys(names.values(), ())
        ready: dict[str, tuple[HeldDevice, ...]] = dict.fromkeys(names, ())
        for driver, refs in wanted.items():
            try:
                answers = await self._preparer.prepare(driver, refs)
            except (CallError, NotRegisteredError) as error:
                raise ClaimsError(_unanswered(driver, refs, error)) from error
            for uid, answer in answers.items():
                if isinstance(answer, Failed):
                    raise ClaimsError(f"claim {names[uid]}: driver {driver}: {answer.message}")
                devices[names[uid]] += answer.devices
                ready[uid] += tuple(
                    HeldDevice(driver, each.pool, each.device, each.requests, each.cdi_ids)
                    for each in answer.devices
                )
        for uid, found in ready.items():
            if self._held[uid].devices != found:
                self._held[uid] = replace(self._held[uid], devices=found)
                self._records.changed()
        return devices

    async def _take_down(self, last: Sequence[Held]) -> None:
        wanted: dict[str, list[Held]] = {}
        for held in last:
            for driver in held.drivers:
                wanted.setdefault(driver, []).append(held)
        for driver, several in wanted.items():
            try:
                removals = await self._preparer.unprepare(driver, [held.ref for held in several])
            except (CallError, NotRegisteredError) as error:
                raise ClaimsError(_unanswered(driver, several, error)) from error
            for held in several:
                removal = removals[held.uid]
                if removal is not None:
                    raise ClaimsError(f"claim {held.name}: driver {driver}: {removal.message}")
        for held in last:
            self._remove(held)
            self._records.changed()

    def _put(self, held: Held) -> None:
        self._held[held.uid] = held
        for pod in held.pods:
            self._by_pod.setdefault(pod, {})[held.uid] = None

    def _remove(self, held: Held) -> None:
        del self._held[held.uid]
        for pod in held.pods:
            claims = self._by_pod[pod]
            del claims[held.uid]
            if not claims:
                del self._by_pod[pod]

    async def _lock(self, uids: Iterable[str]) -> None:
        """One at a time for each claim. In order, so that two pods with the same claims do not wait for each other."""
        taken: list[str] = []
        for uid in sorted(uids):
            turn = self._turns.setdefault(uid, _Turn())
            turn.users += 1
            try:
                await turn.lock.acquire()
            except BaseException:
                self._leave(uid)
                self._unlock(taken)
                raise
            taken.append(uid)

    def _unlock(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._turns[uid].lock.release()
            self._leave(uid)

    def _leave(self, uid: str) -> None:
        turn = self._turns[uid]
        turn.users -= 1
        if not turn.users:
            del self._turns[uid]


def _drivers_of(claim: ResourceClaim) -> tuple[str, ...]:
    return tuple(dict.fromkeys(result.driver for result in claim.status.results))


def _unanswered(driver: str, claims: Sequence[ClaimRef | Held], error: Exception) -> str:
    """Why a call has no answer. Of one that takes too long, its owner wants to know whose it is and with what, not on which socket."""
    if not isinstance(error, NoAnswerError):
        return str(error)
    names = f"claim{'s' * (len(claims) > 1)} {', '.join(claim.name for claim in claims)}"
    return f"{names}: driver {driver} has not answered within {error.waited_s:g} s"


def _obstacle(claim: ResourceClaim | None, pod: Pod, *, is_generated: bool) -> str:
    """Why a claim is not for a pod, as the end of a sentence; empty if it is."""
    if claim is None:
        return "does not exist"
    if is_generated and not is_made_for(claim, pod):
        return "was not made for the pod"
    if claim.status.allocation is None:
        return "is not allocated"
    if not is_reserved_for(claim, pod):
        return "is not reserved for the pod"
    return ""

"""Which claims are prepared on this node, and for which pods: on disk before a driver is asked, and until it has taken them down.

A claim is prepared for its first pod, and taken down when its last one has ended. Whoever finds the file after a crash knows every device
that a driver may have prepared, so nothing stays behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.pods import claim_of, entry_claims, used_claims
from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.node.preparing import NotRegisteredError, Preparer
from drayman.placement.claims import is_reserved_for
from drayman.plugins.errors import CallError
from drayman.plugins.files import write_atomically
from drayman.plugins.model import ClaimRef, Failed, ReadyDevice

VERSION: Final = 1


class ClaimsError(Exception):
    """Claims cannot be prepared or taken down. The message is for the pod's owner."""


class StateError(Exception):
    """The file that says what is prepared makes no sense."""


class Held(Struct, frozen=True):
    """A claim that drivers have prepared, or may have."""

    namespace: str
    name: str
    uid: str
    drivers: tuple[str, ...]
    pods: tuple[str, ...]

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(self.namespace, self.name, self.uid)


class _File(Struct, frozen=True):
    version: int
    claims: tuple[Held, ...]


Devices = Mapping[str, tuple[ReadyDevice, ...]]
"""The devices of a pod's claims, by the name of the claim."""


class NodeClaims:
    """The claims of one node."""

    def __init__(self, path: Path, client: Client, preparer: Preparer) -> None:
        """Raises StateError."""
        self._path = path
        self._client = client
        self._preparer = preparer
        self._held = _read(path)
        self._locks: dict[str, asyncio.Lock] = {}
        self._saving = asyncio.Lock()
        self._changes = 0
        self._saved = 0

    @property
    def held(self) -> tuple[Held, ...]:
        return tuple(self._held.values())

    def of_pod(self, pod: str) -> list[Held]:
        """What is prepared for a pod, or may be."""
        return [held for held in self._held.values() if pod in held.pods]

    async def prepare(self, pod: Pod) -> Devices:
        """Have all claims of a pod prepared. Raises ClaimsError; what has been prepared by then stays so, for the next attempt."""
        claims = await self._read_claims(pod)
        async with self._locked(claim.metadata.uid for claim in claims):
            for claim in claims:
                self._hold(claim, pod.metadata.uid)
            await self._save()
            return await self._call(claims)

    async def unprepare(self, pod: str) -> None:
        """A pod has ended: take down its claims, except those that others still use. Raises ClaimsError."""
        async with self._locked(held.uid for held in self.of_pod(pod)):
            last = []
            for held in self.of_pod(pod):
                others = tuple(user for user in held.pods if user != pod)
                if others:
                    self._held[held.uid] = replace(held, pods=others)
                    self._changes += 1
                else:
                    last.append(held)
            await self._take_down(last)
            await self._save()

    async def _read_claims(self, pod: Pod) -> list[ResourceClaim]:
        for entry, name in entry_claims(pod):
            if name is None:
                raise ClaimsError(f"the claim for {entry.name!r} has not been created yet")
        found = await asyncio.gather(*(self._read_claim(pod, name) for name in used_claims(pod)))
        return list({claim.metadata.uid: claim for claim in found}.values())

    async def _read_claim(self, pod: Pod, name: str) -> ResourceClaim:
        try:
            claim = await self._client.get(RESOURCE_CLAIMS, name, pod.metadata.namespace)
        except ClusterError as error:
            raise ClaimsError(f"claim {name}: {error}") from error
        if claim.status.allocation is None:
            raise ClaimsError(f"claim {name} is not allocated")
        if not is_reserved_for(claim, pod):
            raise ClaimsError(f"claim {name} is not reserved for the pod")
        return claim

    def _hold(self, claim: ResourceClaim, pod: str) -> None:
        meta = claim.metadata
        drivers = tuple(dict.fromkeys(result.driver for result in claim.status.results))
        known = self._held.get(meta.uid)
        pods = known.pods if known is not None else ()
        # A claim that was allocated anew may have left a driver; that one still has to take it down.
        drivers = tuple(dict.fromkeys((*(known.drivers if known is not None else ()), *drivers)))
        held = Held(
            meta.namespace, meta.name, meta.uid, drivers, tuple(dict.fromkeys((*pods, pod)))
        )
        if held != known:
            self._held[meta.uid] = held
            self._changes += 1

    async def _call(self, claims: Sequence[ResourceClaim]) -> Devices:
        """One call for each driver, for all its claims."""
        wanted: dict[str, list[ClaimRef]] = {}
        for claim in claims:
            for driver in dict.fromkeys(result.driver for result in claim.status.results):
                wanted.setdefault(driver, []).append(self._held[claim.metadata.uid].ref)
        names = {claim.metadata.uid: claim.metadata.name for claim in claims}
        devices: dict[str, tuple[ReadyDevice, ...]] = dict.fromkeys(names.values(), ())
        for driver, refs in wanted.items():
            try:
                answers = await self._preparer.prepare(driver, refs)
            except (CallError, NotRegisteredError) as error:
                raise ClaimsError(str(error)) from error
            for uid, answer in answers.items():
                if isinstance(answer, Failed):
                    raise ClaimsError(f"claim {names[uid]}: {driver}: {answer.message}")
                devices[names[uid]] += answer.devices
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
                raise ClaimsError(str(error)) from error
            for held in several:
                removal = removals[held.uid]
                if removal is not None:
                    raise ClaimsError(f"claim {held.name}: {driver}: {removal.message}")
        for held in last:
            del self._held[held.uid]
            self._changes += 1

    @asynccontextmanager
    async def _locked(self, uids: Iterable[str]) -> AsyncIterator[None]:
        """One at a time for each claim. In order, so that two pods with the same claims do not wait for each other."""
        async with AsyncExitStack() as stack:
            for uid in sorted(set(uids)):
                await stack.enter_async_context(self._locks.setdefault(uid, asyncio.Lock()))
            yield
        for uid in [uid for uid, lock in self._locks.items() if uid not in self._held]:
            if not self._locks[uid].locked():
                del self._locks[uid]

    async def _save(self) -> None:
        """Returns when the changes so far are on disk. Those of several pods are written together."""
        change = self._changes
        async with self._saving:
            if self._saved >= change:
                return
            change = self._changes
            data = msgspec.json.encode(_File(VERSION, self.held))
            await asyncio.to_thread(write_atomically, self._path, data, 0o600)
            self._saved = change


def _read(path: Path) -> dict[str, Held]:
    if not path.exists():
        return {}
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except (msgspec.DecodeError, OSError) as error:
        raise StateError(f"{path}: {error}; it says which devices are prepared") from error
    if found.version != VERSION:
        raise StateError(f"{path}: version {found.version} is not known to this version of drayman")
    return {held.uid: held for held in found.claims}


def cdi_ids(pod: Pod, container: str, devices: Devices) -> list[str]:
    """The ids of the devices that a container of a pod uses."""
    found: list[str] = []
    entries = {entry.name: entry for entry in pod.spec.resource_claims}
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        if each.name != container:
            continue
        for use in each.resources.claims:
            name = claim_of(pod, entries[use.name])
            if name:
                found += _ids(devices[name], use.request)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        for mapping in extended.request_mappings:
            if mapping.container_name == container:
                found += _ids(devices[extended.resource_claim_name], mapping.request_name)
    return list(dict.fromkeys(found))


def _ids(devices: Iterable[ReadyDevice], request: str) -> list[str]:
    return [
        name
        for device in devices
        if not request or not device.requests or request in device.requests
        for name in device.cdi_ids
    ]

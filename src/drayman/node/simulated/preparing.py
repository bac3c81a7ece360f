"""The drivers of simulated nodes: they look at claims as real ones do, and are the last check that no device is used twice.

A driver gives a device to one claim at a time. A claim that asks for a device which another one still has must wait if that one is being
taken down, because this takes time; if it is not, the device was allocated twice, and this is where that is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from drayman.api.resource import DeviceRequestAllocationResult, ResourceClaim
from drayman.cluster.cache import Cache
from drayman.driver_configs.known import FindDevice, refusal_of_allocation
from drayman.driver_configs.memory_limits import Programs, refusal_of_limits, reserved_pods
from drayman.inventory import DeviceId
from drayman.node.claims import Held
from drayman.plugins.model import Answers, ClaimRef, Failed, Ready, ReadyDevice, Removals

HeldTwice = Callable[[ClaimRef, str], None]
"""Told that a claim has a device which another one has, and is not giving back."""


@dataclass(frozen=True, slots=True)
class CachedClaims:
    """Claims as the informers have them."""

    cache: Cache[ResourceClaim]

    async def read(self, namespace: str, names: Sequence[str]) -> Sequence[ResourceClaim | None]:
        return [self.cache.get(name, namespace) for name in names]


class NothingKept:
    """A process that begins finds the pods of its nodes, and what they hold with them."""

    def read(self) -> Iterable[Held]:
        return ()

    def changed(self) -> None:
        pass

    async def save(self, held: Mapping[str, Held]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A claim whose devices are set up by one driver."""

    claim: ClaimRef
    answer: Ready
    exclusive: tuple[DeviceId, ...]


class SimulatedDrivers:
    """Every driver on every simulated node."""

    def __init__(
        self,
        claims: Cache[ResourceClaim],
        find: FindDevice,
        is_leaving: Callable[[str], bool],
        held_twice: HeldTwice,
        programs: Programs = reserved_pods,
    ) -> None:
        """`find` says which devices there are; `is_leaving` says of the uid of a claim whether it is being taken down."""
        self._programs = programs
        self._claims = claims
        self._find = find
        self._is_leaving = is_leaving
        self._held_twice = held_twice
        self._prepared: dict[tuple[str, str], _Prepared] = {}
        self._holders: dict[DeviceId, ClaimRef] = {}

    def holdings(self) -> dict[tuple[str, str], tuple[DeviceId, ...]]:
        """The devices that claims have to themselves, by driver and uid of the claim."""
        return {key: prepared.exclusive for key, prepared in self._prepared.items()}

    async def prepare(self, driver: str, claims: Sequence[ClaimRef]) -> Answers:
        return {ref.uid: self._prepare(driver, ref) for ref in claims}

    async def unprepare(self, driver: str, claims: Sequence[ClaimRef]) -> Removals:
        for ref in claims:
            known = self._prepared.pop((driver, ref.uid), None)
            if known is not None:
                for device in known.exclusive:
                    del self._holders[device]
        return dict.fromkeys((ref.uid for ref in claims), None)

    def _prepare(self, driver: str, ref: ClaimRef) -> Ready | Failed:
        known = self._prepared.get((driver, ref.uid))
        claim = self._claims.get(ref.name, ref.namespace)
        if known is not None:
            problem = "" if claim is None else self._beyond_memory(driver, claim)
            return Failed(problem) if problem else known.answer
        if claim is None or claim.metadata.uid != ref.uid:
            return Failed("the claim is not there any more")
        results = [result for result in claim.status.results if result.driver == driver]
        exclusive = tuple(
            dict.fromkeys(DeviceId.of(result) for result in results if result.is_exclusive)
        )
        problem = (
            self._refusal(driver, claim, results)
            or self._busy(ref, exclusive)
            or self._beyond_memory(driver, claim)
        )
        if problem:
            return Failed(problem)
        answer = Ready(tuple(map(_ready, results)))
        self._prepared[driver, ref.uid] = _Prepared(ref, answer, exclusive)
        for device in exclusive:
            self._holders[device] = ref
        return answer

    def _refusal(
        self, driver: str, claim: ResourceClaim, results: Sequence[DeviceRequestAllocationResult]
    ) -> str:
        for result in results:
            if self._find(result) is None:
                return f"device {DeviceId.of(result)} is not there"
        return refusal_of_allocation(driver, claim, self._find)

    def _beyond_memory(self, driver: str, claim: ResourceClaim) -> str:
        """Why the programs that share a device may use more memory than it has; empty if they do not."""
        prepared = (each.claim for (of, _), each in self._prepared.items() if of == driver)
        found = (self._claims.get(ref.name, ref.namespace) for ref in prepared)
        others = [other for other in found if other is not None]
        return refusal_of_limits(driver, claim, others, self._find, self._programs)

    def _busy(self, ref: ClaimRef, devices: Sequence[DeviceId]) -> str:
        for device in devices:
            holder = self._holders.get(device)
            if holder is None:
                continue
            if self._is_leaving(holder.uid):
                return f"{device} is not yet given back by {holder}"
            problem = f"{device} is in use by claim {holder}"
            self._held_twice(ref, problem)
            return problem
        return ""


def _ready(result: DeviceRequestAllocationResult) -> ReadyDevice:
    """Nothing is added to containers: what they see of the device is simulated, too."""
    request = result.request.partition("/")[0]
    return ReadyDevice((request,), result.pool, result.device, (), result.share_id)

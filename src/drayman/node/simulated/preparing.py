"""Which claims are prepared on the simulated nodes, and for which pods: the last check that no device is used twice.

A driver gives a device to one claim at a time. A claim that asks for a device which another one still has must wait if that one is being
taken down, because this takes time; if it is not, the device was allocated twice, and this is where that is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drayman.api.resource import ResourceClaim
from drayman.inventory import DeviceId


@dataclass(slots=True)
class _Prepared:
    """A claim whose devices are set up."""

    name: str
    devices: tuple[DeviceId, ...]
    pods: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)

    @property
    def is_leaving(self) -> bool:
        return self.pods <= self.leaving


@dataclass(frozen=True, slots=True)
class Busy:
    """Why a claim cannot be prepared: another one has one of its devices."""

    device: DeviceId
    claim: str
    is_leaving: bool
    """Whether the other one is being taken down. If not, the device was allocated twice."""


class PreparedClaims:
    """Claims by uid, and the devices that each has to itself."""

    def __init__(self) -> None:
        self._claims: dict[str, _Prepared] = {}
        self._holders: dict[DeviceId, str] = {}

    def __len__(self) -> int:
        return len(self._claims)

    def prepare(self, claim: ResourceClaim, pod: str) -> Busy | None:
        """Set a claim up for a pod, which may share it with others. Nothing is changed where a device is busy."""
        uid = claim.metadata.uid
        known = self._claims.get(uid)
        if known is not None:
            known.pods.add(pod)
            return None
        devices = tuple(exclusive_devices(claim))
        for device in devices:
            holder = self._holders.get(device)
            if holder is not None:
                other = self._claims[holder]
                return Busy(device, other.name, other.is_leaving)
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        self._claims[uid] = _Prepared(name, devices, {pod})
        for device in devices:
            self._holders[device] = uid
        return None

    def leave(self, claims: Iterable[str], pod: str) -> None:
        """A pod has ended; its claims are being taken down."""
        for uid in claims:
            if uid in self._claims:
                self._claims[uid].leaving.add(pod)

    def unprepare(self, claims: Iterable[str], pod: str) -> None:
        """A pod's claims are taken down, except those that other pods still use. An unknown claim is not an error."""
        for uid in claims:
            known = self._claims.get(uid)
            if known is None:
                continue
            known.pods.discard(pod)
            known.leaving.discard(pod)
            if not known.pods:
                del self._claims[uid]
                for device in known.devices:
                    del self._holders[device]


def exclusive_devices(claim: ResourceClaim) -> Iterator[DeviceId]:
    """The devices that a claim has to itself: not those it shares by capacity, nor those it only looks at."""
    for result in claim.status.results:
        if result.is_exclusive:
            yield DeviceId.of(result)

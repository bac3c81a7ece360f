"""Room that somebody asks the scheduler to keep for a pod that waits, until a given time.

Whoever makes room for a pod, such as `drayman defrag`, must keep others from taking it before all of it is free. It says so in a condition
of the pod: on which node, which devices, and until when. The scheduler then treats it like room that it has promised itself
(`nominations`). The time is short, and is extended while the work goes on: if whoever asked is gone, so is the promise, soon.

It is a condition because the right to write the status of pods is not given to everybody who may create some.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import field

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from drayman.api.struct import ApiStruct, Json
from drayman.api.times import timestamp_at
from drayman.inventory.identity import DeviceId
from drayman.placement.joint.seating import Seat

CONDITION: Final = "drayman.dev/RoomKept"
LONGEST_S: Final = 600.0
"""For how long room can be kept at a time. What asks for more is not followed: it would outlive whoever asked for it."""
_REQUEST: Final = "kept"


class KeptDevice(ApiStruct):
    driver: str
    pool: str
    device: str
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] = field(default_factory=dict)
    """Of a device that several claims share: what is kept of it."""


class KeptRoom(ApiStruct):
    """What is kept for a pod."""

    node: str
    until: int
    """In whole seconds since the epoch."""
    devices: tuple[KeptDevice, ...] = ()

    @classmethod
    def of(cls, node: str, devices: tuple[DeviceId, ...], until: float) -> KeptRoom:
        return cls(
            node=node, until=int(until), devices=tuple(KeptDevice(**d._asdict()) for d in devices)
        )

    @classmethod
    def for_allocations(
        cls, node: str, allocations: Iterable[AllocationResult], until: float
    ) -> KeptRoom:
        """Room for a pod whose claims will get these devices. Those it only has admin access to need not be kept."""
        devices = tuple(
            KeptDevice(
                driver=result.driver,
                pool=result.pool,
                device=result.device,
                share_id=result.share_id,
                consumed_capacity=result.consumed_capacity,
            )
            for allocation in allocations
            for result in allocation.devices.results
            if not result.admin_access
        )
        return cls(node=node, until=int(until), devices=devices)

    @property
    def allocations(self) -> tuple[AllocationResult, ...]:
        """The devices as if they had been given to a claim."""
        if not self.devices:
            return ()
        results = tuple(
            DeviceRequestAllocationResult(
                request=_REQUEST,
                driver=each.driver,
                pool=each.pool,
                device=each.device,
                share_id=each.share_id,
                consumed_capacity=each.consumed_capacity,
            )
            for each in self.devices
        )
        return (AllocationResult(devices=DeviceAllocationResult(results=results)),)


def room_of(seat: Seat, until: float) -> KeptRoom:
    """What a pod gets that has a seat, to be kept for it."""
    given = () if seat.found.plan is None else seat.found.plan.claims
    allocations = (item.allocation for item in given)
    return KeptRoom.for_allocations(seat.found.node.facts.name, allocations, until)


def kept_room_of(pod: Pod) -> KeptRoom | None:
    """What is to be kept for a pod, by its condition. A condition that cannot be read says nothing."""
    for condition in pod.status.conditions:
        if condition.type_ == CONDITION:
            record = (condition.message or "").rpartition("\n")[2]
            if condition.status != "True" or not record:
                return None
            try:
                return codec.decode(KeptRoom, record.encode())
            except DecodeError:
                return None
    return None


def condition_of(kept: KeptRoom, now: float) -> dict[str, Json]:
    """The condition that asks for it: a sentence, and in the last line all of it as JSON."""
    number = len(kept.devices)
    devices = f" and {number} of its devices are" if number else " is"
    sentence = (
        f"Room on node {kept.node}{devices} kept for the pod until {timestamp_at(kept.until)}."
    )
    return {
        "type": CONDITION,
        "status": "True",
        "reason": "MakingRoom",
        "message": f"{sentence}\n{codec.encode(kept).decode()}",
        "lastTransitionTime": timestamp_at(now),
    }


def is_over(kept: KeptRoom, now: float) -> bool:
    """Whether its time has passed, or it asks for more time than anybody gets."""
    return kept.until <= now or kept.until > now + LONGEST_S

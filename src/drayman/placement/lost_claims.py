"""Claims that pods on nodes still use, though the server no longer shows them with their devices.

Kubernetes protects a claim in use by a finalizer, and leaves it to its users not to strip that, nor the reservation, nor the allocation. If
one does, the pod goes on computing on its devices. So they stay held, for the pod, until it has ended; whoever gets them next could
otherwise read what the first one left in their memory.

The loss is recorded in a condition of the pod. A user who may edit pods could write an annotation, and so keep devices from others; the
status is written by schedulers and nodes only. The next scheduler, and every explanation, knows of the loss from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from drayman.api.struct import ApiStruct
from drayman.inventory.identity import DeviceId

CONDITION: Final = "drayman.dev/ClaimLost"
How = Literal["deleted", "deallocated"]
Results = tuple[DeviceRequestAllocationResult, ...]


class LostClaim(ApiStruct):
    """A claim that was taken from pods which use it."""

    namespace: str
    name: str
    uid: str
    how: str
    """What became of it: `deleted` or `deallocated`."""
    results: Results
    """What its pods still use."""

    @classmethod
    def of(cls, claim: ResourceClaim, how: How) -> LostClaim:
        metadata = claim.metadata
        return cls(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            how=how,
            results=claim.status.results,
        )

    def joined_with(self, later: LostClaim) -> LostClaim:
        """A claim that had got other devices, and was then taken away once more."""
        more = tuple(result for result in later.results if result not in self.results)
        return replace(self, results=(*self.results, *more)) if more else self

    @property
    def holder(self) -> str:
        """The name under which its devices are held: one that no claim can have."""
        return f"<lost> {self.uid}"

    @property
    def allocation(self) -> AllocationResult:
        return AllocationResult(devices=DeviceAllocationResult(results=self.results))

    def __str__(self) -> str:
        """As in `claim default/train was deleted while its pod uses driver/pool/gpu-0`."""
        devices = ", ".join(str(DeviceId.of(result)) for result in self.results)
        return f"claim {self.namespace}/{self.name} was {self.how} while its pod uses {devices}"


class _Record(ApiStruct):
    claims: tuple[LostClaim, ...] = ()


class Users(Struct, frozen=True):
    """A lost claim, and the pods that use its devices."""

    claim: LostClaim
    pods: frozenset[str]
    """By uid."""


def message_of(lost: Iterable[LostClaim]) -> str:
    """The message of a pod's condition: a sentence for each claim, and the whole as JSON in the last line."""
    record = _Record(claims=tuple(lost))
    sentences = [f"{each}; they stay with the pod until it has ended." for each in record.claims]
    return "\n".join((*sentences, codec.encode(record).decode()))


def lost_claims_of(pod: Pod) -> tuple[LostClaim, ...]:
    """The claims that a pod has lost, as its condition says. A condition that cannot be read says nothing."""
    for condition in pod.status.conditions:
        if condition.type_ == CONDITION and condition.status == "True":
            record = (condition.message or "").rpartition("\n")[2]
            try:
                return codec.decode(_Record, record.encode()).claims
            except DecodeError:
                return ()
    return ()

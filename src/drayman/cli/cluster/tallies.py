"""What a running cluster holds, in numbers that are maintained rather than counted again each time.

The numbers are read once a second; in between, thousands of objects may change, or none of a hundred thousand. So each tally is taken once
and then follows the changes, and only the relevant member of every object is decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from drayman.cluster.embedded import EventType, Store, TooOldError

PODS: Final = "pods"
NODES: Final = "nodes"
CLAIMS: Final = "resourceclaims.resource.k8s.io"
SLICES: Final = "resourceslices.resource.k8s.io"
NAMESPACES: Final = "namespaces"
LEASES: Final = "leases.coordination.k8s.io"

Read = Callable[[bytes], Mapping[str, int]]


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Pod(msgspec.Struct, frozen=True):
    status: _PodStatus | None = None


class _NodeStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class _Node(msgspec.Struct, frozen=True):
    status: _NodeStatus | None = None


class _Allocation(msgspec.Struct, frozen=True):
    """Only whether there is one matters."""


class _ClaimStatus(msgspec.Struct, frozen=True):
    allocation: _Allocation | None = None


class _Claim(msgspec.Struct, frozen=True):
    status: _ClaimStatus | None = None


class _SliceSpec(msgspec.Struct, frozen=True):
    devices: tuple[msgspec.Raw, ...] | None = None


class _Slice(msgspec.Struct, frozen=True):
    spec: _SliceSpec | None = None


# Members of the same name differ between kinds, `spec.devices` for one, so each kind has its own decoder.
_decode_pod: Final = msgspec.json.Decoder(_Pod).decode
_decode_node: Final = msgspec.json.Decoder(_Node).decode
_decode_claim: Final = msgspec.json.Decoder(_Claim).decode
_decode_slice: Final = msgspec.json.Decoder(_Slice).decode


def pod_phase(data: bytes) -> Mapping[str, int]:
    status = _decode_pod(data).status
    return {(status and status.phase) or "Unknown": 1}


def node_readiness(data: bytes) -> Mapping[str, int]:
    status = _decode_node(data).status
    conditions = (status and status.conditions) or ()
    return {"ready": 1} if _Condition("Ready", "True") in conditions else {}


def claim_allocation(data: bytes) -> Mapping[str, int]:
    status = _decode_claim(data).status
    return {"allocated": 1} if status and status.allocation is not None else {}


def slice_devices(data: bytes) -> Mapping[str, int]:
    spec = _decode_slice(data).spec
    return {"devices": len((spec and spec.devices) or ())}


class Tally:
    """The sums of what is read from the objects of one resource."""

    def __init__(self, store: Store, resource: str, read: Read) -> None:
        self._store = store
        self._resource = resource
        self._read = read
        self._count()

    def _count(self) -> None:
        self._changes = self._store.watch(self._resource, since=self._store.revision)
        self._sums: Counter[str] = Counter()
        for stored in self._store.list(self._resource):
            self._sums.update(self._read(stored.data))

    def refresh(self) -> Mapping[str, int]:
        """The current sums, without those that are zero."""
        try:
            for event in self._changes.pending():
                if event.previous is not None:
                    self._sums.subtract(self._read(event.previous.data))
                if event.type is not EventType.DELETED:
                    self._sums.update(self._read(event.stored.data))
        except TooOldError:
            self._count()
        return {name: number for name, number in sorted(self._sums.items()) if number}

    @property
    def total(self) -> int:
        """How many objects there are."""
        return self._store.count(self._resource)

    def close(self) -> None:
        self._changes.close()

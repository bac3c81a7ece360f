"""What the engine decides. A decision names workloads by key, `namespace/name`; whoever asked writes it into objects."""

from __future__ import annotations

from msgspec import Struct

from drayman.api.kueue_workload import Admission
from drayman.quota.claims.users import ClaimUse


class Reserved(Struct, frozen=True):
    """A workload gets quota. The engine counts it from now on."""

    key: str
    admission: Admission
    claims: tuple[ClaimUse, ...] = ()
    """The claims that others may use as well, with what the workload pays for them. It is written together with the admission."""


class Preempted(Struct, frozen=True):
    """A workload has to give up its quota to another one."""

    key: str
    by: str
    reason: str
    """That of the condition Preempted."""
    message: str


class Evicted(Struct, frozen=True):
    """A workload has to give up its quota, or its place in the queue, for a reason of its own or of its queue."""

    key: str
    reason: str
    message: str


class Refused(Struct, frozen=True):
    """A workload gets no quota now."""

    key: str
    reason: str
    """That of the condition QuotaReserved=False."""
    message: str


Decision = Reserved | Preempted | Evicted | Refused
